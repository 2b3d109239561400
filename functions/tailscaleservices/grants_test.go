// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane/function-sdk-go/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/compose/composetest"
)

// TestForeignBackends runs the function for a service of namespace default whose proxies serve one
// host, with another host in the spec. The objects permit connections to Services of other namespaces.
func TestForeignBackends(t *testing.T) {
	const (
		own     = "web.default.svc"
		foreign = "api.shop.svc"
		front   = "envoy.envoy-gateway-system.svc"
	)
	external := func(host string) map[string]any {
		return map[string]any{"kind": "External", "name": "other", "host": host, "port": int64(8080)}
	}
	gateway := func(host string) map[string]any {
		return map[string]any{"kind": "TailscaleGateway", "name": "public", "host": host, "port": int64(8080)}
	}
	grant := func(namespace, from, fromNamespace, group, to string) map[string]any {
		return map[string]any{
			"apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "ReferenceGrant",
			"metadata": map[string]any{"name": "grant", "namespace": namespace},
			"spec": map[string]any{
				"from": []any{map[string]any{"group": "gateway.tailscale.com", "kind": from, "namespace": fromNamespace}},
				"to":   []any{map[string]any{"group": group, "kind": to}},
			},
		}
	}
	service := func(labels map[string]any) map[string]any {
		return map[string]any{
			"apiVersion": "v1", "kind": "Service",
			"metadata": map[string]any{"name": "envoy", "namespace": "envoy-gateway-system", "labels": labels},
		}
	}
	ofGateway := func(namespace string) map[string]any {
		return service(map[string]any{
			"gateway.envoyproxy.io/owning-gateway-namespace": namespace,
			"gateway.envoyproxy.io/owning-gateway-name":      "eg",
		})
	}
	ofClass := service(map[string]any{"gateway.envoyproxy.io/owning-gatewayclass": "eg"})
	shares := func(service string) map[string]any {
		return map[string]any{
			"apiVersion": "gateway.tailscale.com/v1alpha1", "kind": "TailscaleGateway",
			"metadata": map[string]any{"name": "public", "namespace": "default"},
			"spec":     map[string]any{"gatewayRef": map[string]any{"name": "eg"}},
			"status": map[string]any{"gateway": map[string]any{
				"service": map[string]any{"namespace": "envoy-gateway-system", "name": service},
			}},
		}
	}
	revoked := shares("envoy")
	delete(revoked, "status")
	ofInfra := shares("envoy")
	ofInfra["spec"] = map[string]any{"gatewayRef": map[string]any{"namespace": "infra", "name": "eg"}}
	delete(ofInfra, "status")
	mistake := map[string]any{"kind": "External", "name": "other", "host": "db.example.com", "port": int64(8080), "vipPort": int64(9)}
	tailnet := map[string]any{"tags": []any{"tag:not-granted"}}

	cases := map[string]struct {
		reason  string
		backend map[string]any
		served  string
		vip     map[string]any
		cluster []map[string]any

		// want is the reason of Accepted, and hosts are those that proxies connect to.
		want  string
		hosts []string
	}{
		"Own":               {reason: "A Service of the same namespace needs no grant.", backend: external(own), served: own, want: "Accepted", hosts: []string{own}},
		"Outside":           {reason: "A host outside of the cluster needs no grant.", backend: external("db.example.com"), served: own, want: "Accepted", hosts: []string{"db.example.com"}},
		"Address":           {reason: "An address has no namespace.", backend: external("192.0.2.1"), served: own, want: "Accepted", hosts: []string{"192.0.2.1"}},
		"None":              {reason: "A Service of another namespace needs a grant.", backend: external(foreign), served: own, want: "RefNotPermitted", hosts: []string{own}},
		"Upper":             {reason: "DNS names have no case.", backend: external("API.Shop.SVC."), served: own, want: "RefNotPermitted", hosts: []string{own}},
		"Domain":            {reason: "The cluster's domain may follow.", backend: external(foreign + ".cluster.local"), served: own, want: "RefNotPermitted", hosts: []string{own}},
		"OtherDomain":       {reason: "A cluster may have another domain.", backend: external(foreign + ".corp.internal."), served: own, want: "RefNotPermitted", hosts: []string{own}},
		"Pod":               {reason: "A pod of a Service is reached like the Service.", backend: external("api-0." + foreign), served: own, want: "RefNotPermitted", hosts: []string{own}},
		"KindGateway":       {reason: "A backend of kind TailscaleGateway names a host, too.", backend: gateway(foreign), served: own, want: "RefNotPermitted", hosts: []string{own}},
		"Granted":           {reason: "A grant permits it.", backend: external(foreign), served: own, cluster: []map[string]any{grant("shop", "TailscaleServices", "default", "", "Service")}, want: "Accepted", hosts: []string{foreign}},
		"GrantedPod":        {reason: "A grant to the Service permits its pods.", backend: external("api-0." + foreign), served: own, cluster: []map[string]any{grant("shop", "TailscaleServices", "default", "", "Service")}, want: "Accepted", hosts: []string{"api-0." + foreign}},
		"GrantElsewhere":    {reason: "A grant in the tenant's namespace is the tenant's.", backend: external(foreign), served: own, cluster: []map[string]any{grant("default", "TailscaleServices", "default", "", "Service")}, want: "RefNotPermitted", hosts: []string{own}},
		"GrantOtherFrom":    {reason: "A grant to another namespace does not apply.", backend: external(foreign), served: own, cluster: []map[string]any{grant("shop", "TailscaleServices", "other", "", "Service")}, want: "RefNotPermitted", hosts: []string{own}},
		"GrantOtherKind":    {reason: "A grant to another kind does not apply.", backend: external(foreign), served: own, cluster: []map[string]any{grant("shop", "TailscaleEndpoints", "default", "", "Service")}, want: "RefNotPermitted", hosts: []string{own}},
		"Revoked":           {reason: "A host that no grant permits any more is not served.", backend: external(foreign), served: foreign, want: "RefNotPermitted"},
		"RevokedMistake":    {reason: "A mistake in the spec does not keep what no grant permits.", backend: mistake, served: foreign, want: "InvalidBackends"},
		"RevokedNotGranted": {reason: "Neither does a spec beyond the tailnet's grant.", backend: external(own), served: foreign, vip: tailnet, want: "Accepted"},
		"Mistake":           {reason: "A mistake keeps what is permitted.", backend: mistake, served: own, want: "InvalidBackends", hosts: []string{own}},
		"Front":             {reason: "The Service of a Gateway of the namespace needs no grant.", backend: gateway(front), served: own, cluster: []map[string]any{ofGateway("default")}, want: "Accepted", hosts: []string{front}},
		"FrontOfOther":      {reason: "That of a Gateway of another namespace needs the Gateway's permission.", backend: gateway(front), served: front, cluster: []map[string]any{ofGateway("infra")}, want: "RefNotPermitted"},
		"FrontGranted":      {reason: "TailscaleGateways of the namespace may share the Gateway.", backend: gateway(front), served: own, cluster: []map[string]any{ofGateway("infra"), grant("infra", "TailscaleGateway", "default", "gateway.networking.k8s.io", "Gateway")}, want: "Accepted", hosts: []string{front}},
		"FrontRevoked":      {reason: "A TailscaleGateway that may no longer share its Gateway reports none.", backend: map[string]any{"kind": "TailscaleGateway", "name": "public", "port": int64(8080)}, served: front, cluster: []map[string]any{ofGateway("infra"), revoked}, want: "GatewayNotValid"},
		"FrontNotValid":     {reason: "One that may share its Gateway may have lost it for another reason.", backend: map[string]any{"kind": "TailscaleGateway", "name": "public", "port": int64(8080)}, served: front, cluster: []map[string]any{ofGateway("default"), revoked}, want: "GatewayNotValid", hosts: []string{front}},
		"FrontGone":         {reason: "Envoy Gateway deletes the Service with the Gateway, and an attachment waits for the next.", backend: map[string]any{"kind": "TailscaleGateway", "name": "public", "port": int64(8080)}, served: front, cluster: []map[string]any{revoked}, want: "GatewayNotValid", hosts: []string{front}},
		"FrontGoneByHost":   {reason: "So does one of a backend with the host.", backend: gateway(front), served: front, cluster: []map[string]any{revoked}, want: "GatewayNotValid", hosts: []string{front}},
		"FrontGoneNew":      {reason: "A new attachment has to wait until the Service is there.", backend: gateway(front), served: own, cluster: []map[string]any{revoked}, want: "GatewayNotValid", hosts: []string{own}},
		"FrontGoneForeign":  {reason: "A TailscaleGateway that may not share its Gateway keeps nothing.", backend: gateway(front), served: front, cluster: []map[string]any{ofInfra}, want: "RefNotPermitted"},
		"FrontUnlabelled":   {reason: "Envoy Gateway's namespace has other Services.", backend: gateway(front), served: own, cluster: []map[string]any{service(nil), shares("envoy")}, want: "RefNotPermitted", hosts: []string{own}},
		"Merged":            {reason: "Several Gateways share the Service that the TailscaleGateway has found.", backend: gateway(front), served: own, cluster: []map[string]any{ofClass, shares("envoy")}, want: "Accepted", hosts: []string{front}},
		"MergedOther":       {reason: "The TailscaleGateway has found another Service.", backend: gateway(front), served: own, cluster: []map[string]any{ofClass, shares("other")}, want: "RefNotPermitted", hosts: []string{own}},
		"MergedNone":        {reason: "There is no TailscaleGateway that may share it.", backend: gateway(front), served: own, cluster: []map[string]any{ofClass}, want: "RefNotPermitted", hosts: []string{own}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all := append(objects(t, "foreign-backend"), tc.cluster...)
			for _, o := range all {
				var err error
				switch o["kind"] {
				case "TailscaleServices":
					err = unstructured.SetNestedSlice(o, []any{tc.backend}, "spec", "backends")
					for k, v := range tc.vip {
						if err == nil {
							err = unstructured.SetNestedField(o, v, "spec", "vipService", k)
						}
					}
				case "ServiceAttachment":
					port := map[string]any{"port": int64(80), "backend": map[string]any{"host": tc.served, "port": int64(8080)}}
					err = unstructured.SetNestedSlice(o, []any{port}, "spec", "ports")
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			rsp := composetest.Settle(t, &Function{log: logging.NewNopLogger()}, all...)
			got := ""
			for _, c := range rsp.GetConditions() {
				if c.GetType() == "Accepted" {
					got = c.GetReason()
				}
			}
			if got != tc.want {
				t.Errorf("%s\nAccepted: want reason %s, got %s", tc.reason, tc.want, got)
			}
			if diff := cmp.Diff(tc.hosts, dialled(t, rsp)); diff != "" {
				t.Errorf("%s\nhosts that proxies connect to: -want, +got:\n%s", tc.reason, diff)
			}
			if rsp.GetDesired().GetResources()[nameVIPService] == nil {
				t.Error("the Tailscale Service would lose its address")
			}
		})
	}
}

// dialled returns the hosts of the attachments in a response.
func dialled(t *testing.T, rsp *fnv1.RunFunctionResponse) []string {
	t.Helper()
	var out []string
	for _, r := range rsp.GetDesired().GetResources() {
		ports, _, err := unstructured.NestedSlice(r.GetResource().AsMap(), "spec", "ports")
		if r.GetResource().AsMap()["kind"] != "ServiceAttachment" {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range ports {
			host, _, err := unstructured.NestedString(p.(map[string]any), "backend", "host")
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, host)
		}
	}
	return out
}
