// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	egv1a1 "github.com/envoyproxy/gateway/api/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// TestPolicyKinds fails if Envoy Gateway's API has a kind that nobody has looked at.
func TestPolicyKinds(t *testing.T) {
	// These have no targets. Routes name an HTTPRouteFilter by ExtensionRef.
	others := []string{"Backend", "EnvoyProxy", "HTTPRouteFilter"}
	s := runtime.NewScheme()
	if err := egv1a1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	var policies []string
	for kind, typ := range s.KnownTypes(egv1a1.GroupVersion) {
		if !strings.HasPrefix(typ.PkgPath(), "github.com/envoyproxy/gateway/") || strings.HasSuffix(kind, "List") || slices.Contains(others, kind) {
			continue
		}
		policies = append(policies, kind)
	}
	slices.Sort(policies)
	if got := PolicyKinds(); !slices.Equal(policies, got) {
		t.Errorf("want all kinds of Envoy Gateway's policies, %v, got %v: decide whether the new ones may protect backends", policies, got)
	}
}

// TestPolicyFields fails if Envoy Gateway's policies have a field that nobody has looked at.
func TestPolicyFields(t *testing.T) {
	cases := map[string]struct {
		spec reflect.Type

		// protect are the fields that protect backends.
		protect []string
	}{
		kindClientPolicy:  {spec: reflect.TypeFor[egv1a1.ClientTrafficPolicySpec](), protect: []string{"clientIPDetection", "headers", "tls.clientValidation"}},
		KindTrafficPolicy: {spec: reflect.TypeFor[egv1a1.BackendTrafficPolicySpec](), protect: []string{"rateLimit", "bandwidthLimit", "requestBuffer"}},
	}
	for kind, tc := range cases {
		t.Run(kind, func(t *testing.T) {
			var want []string
			for _, f := range fieldsOf(tc.spec) {
				switch {
				case isTarget(f):
				case f == "tls":
					for _, sub := range fieldsOf(reflect.TypeFor[egv1a1.ClientTLSSettings]()) {
						want = append(want, f+"."+sub)
					}
				default:
					want = append(want, f)
				}
			}
			got := append(slices.Clone(tc.protect), policyKinds[kind]...)
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(want, got) {
				t.Errorf("want each field either in the table or as one that protects: %v, got %v", want, got)
			}
		})
	}
}

// fieldsOf returns the names of the JSON fields of a struct.
func fieldsOf(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if options == "inline" {
			out = append(out, fieldsOf(t.Field(i).Type)...)
			continue
		}
		out = append(out, name)
	}
	return out
}

func TestProtects(t *testing.T) {
	const target = "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}], "
	cases := map[string]struct {
		reason string
		kind   string
		spec   string
		want   bool
	}{
		"Security":           {reason: "A SecurityPolicy protects.", kind: "SecurityPolicy", spec: "{" + target + "cors: {}}", want: true},
		"SecurityEmpty":      {reason: "Its content does not matter.", kind: "SecurityPolicy", spec: "{}", want: true},
		"ExtProc":            {reason: "An external processor may refuse requests.", kind: "EnvoyExtensionPolicy", spec: "{" + target + "extProc: []}", want: true},
		"Wasm":               {reason: "A program may, too.", kind: "EnvoyExtensionPolicy", spec: "{" + target + "wasm: []}", want: true},
		"Lua":                {reason: "In any language.", kind: "EnvoyExtensionPolicy", spec: "{" + target + "lua: []}", want: true},
		"Patch":              {reason: "A patch may add any filter.", kind: "EnvoyPatchPolicy", spec: "{targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: web}}", want: true},
		"NewKind":            {reason: "A kind that is newer than this may protect.", kind: "EnvoyAccessPolicy", spec: "{" + target + "}", want: true},
		"ClientCertificates": {reason: "Listeners may require certificates of clients.", kind: "ClientTrafficPolicy", spec: "{" + target + "tls: {minVersion: '1.3', clientValidation: {caCertificateRefs: [{name: ca}]}}}", want: true},
		"ClientHeaders":      {reason: "Headers that clients may not send can be removed.", kind: "ClientTrafficPolicy", spec: "{" + target + "headers: {earlyRequestHeaders: {remove: [x-user]}}}", want: true},
		"ClientAddress":      {reason: "Requests without an address of the client can be refused.", kind: "ClientTrafficPolicy", spec: "{" + target + "clientIPDetection: {customHeader: {name: x-ip, failClosed: true}}}", want: true},
		"ClientNew":          {reason: "A field that is newer than this may protect.", kind: "ClientTrafficPolicy", spec: "{" + target + "access: {}}", want: true},
		"ClientNewTLS":       {reason: "At any depth.", kind: "ClientTrafficPolicy", spec: "{" + target + "tls: {access: {}}}", want: true},
		"ClientSettings":     {reason: "Other settings of listeners protect nothing.", kind: "ClientTrafficPolicy", spec: "{" + target + "tls: {minVersion: '1.3'}, timeout: {}, http2: {}, proxyProtocol: {}}"},
		"RateLimit":          {reason: "A limit of rates protects.", kind: "BackendTrafficPolicy", spec: "{" + target + "rateLimit: {}}", want: true},
		"BackendSettings":    {reason: "Other settings of backends protect nothing.", kind: "BackendTrafficPolicy", spec: "{" + target + "retry: {}, loadBalancer: {}}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte("kind: "+tc.kind+"\nspec: "+tc.spec), &o.Object); err != nil {
				t.Fatal(err)
			}
			if got := Protects(o); got != tc.want {
				t.Errorf("%s\nwant %t, got %t", tc.reason, tc.want, got)
			}
			if _, err := Strip(o); err != nil {
				t.Fatal(err)
			}
			if got := Protects(o); got != tc.want {
				t.Errorf("%s\nin the cache: want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}
