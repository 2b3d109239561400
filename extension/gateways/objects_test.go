// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwapiv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
)

// decoder is made once, for it takes long.
var decoder = sync.OnceValues(func() (runtime.Decoder, error) { //nolint:gochecknoglobals // It never changes.
	s, err := index.Scheme()
	if err != nil {
		return nil, err
	}
	return serializer.NewCodecFactory(s, serializer.EnableStrict).UniversalDeserializer(), nil
})

// objects of manifests, in the namespace shop unless they say another. Each has an UID.
func objects(t testing.TB, manifests ...string) []client.Object {
	t.Helper()
	d, err := decoder()
	if err != nil {
		t.Fatal(err)
	}
	var out []client.Object
	for _, m := range manifests {
		r := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(m)))
		for {
			doc, err := r.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(bytes.TrimSpace(doc)) == 0 {
				continue
			}
			decoded, _, err := d.Decode(doc, nil, nil)
			if err != nil {
				t.Fatalf("cannot decode\n%s\n%v", doc, err)
			}
			o, ok := decoded.(client.Object)
			if !ok {
				t.Fatalf("%T is no object", decoded)
			}
			if o.GetNamespace() == "" {
				o.SetNamespace("shop")
			}
			o.SetUID(types.UID(o.GetObjectKind().GroupVersionKind().Kind + "/" + o.GetNamespace() + "/" + o.GetName()))
			out = append(out, o)
		}
	}
	return out
}

// inputOf objects, of which each kind goes where it belongs, for the only TailscaleGateway.
// Services of namespace open may be named from everywhere.
func inputOf(t testing.TB, of ...client.Object) input {
	t.Helper()
	return inputFor(t, types.NamespacedName{Namespace: "shop", Name: "web"}, of...)
}

// inputFor one of several TailscaleGateways.
func inputFor(t testing.TB, n types.NamespacedName, of ...client.Object) input {
	t.Helper()
	in := input{
		permitted: func(r index.RouteKey, b index.BackendRef) bool {
			return b.Namespace == r.Namespace || b.Namespace == "open"
		},
		extension: tailnetv1alpha1.ReportedExtension{Version: "v1"},
	}
	for _, o := range of {
		switch o := o.(type) {
		case *gatewayv1alpha1.TailscaleGateway:
			in.peers = append(in.peers, o)
			if client.ObjectKeyFromObject(o) == n {
				in.object = o
			}
		case *gwapiv1.Gateway:
			in.gateway = o
		case *gwapiv1beta1.ReferenceGrant:
			if in.grants == nil {
				in.grants = index.ReferenceGrants{}
			}
			in.grants[client.ObjectKeyFromObject(o)] = &o.Spec
		case *gwapiv1.ListenerSet:
			in.sets = append(in.sets, o)
		case *gatewayv1alpha1.TailscaleServices:
			in.services = append(in.services, o)
		case *gatewayv1alpha1.TailscaleEndpoints:
			if ownerByLabels(o) == n {
				in.endpoints = append(in.endpoints, o)
			}
		default:
			if r, ok := o.(*gwapiv1.HTTPRoute); ok && isOurs(r) && ownerByLabels(r) == n {
				in.generated = append(in.generated, r)
			}
			in.routes = append(in.routes, o)
		}
	}
	return in
}

const (
	tailscaleGateway = `
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleGateway
metadata: {name: web}
spec:
  gatewayRef: {name: web}
  tailnets:
  - name: prod
`

	gateway = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web}
spec:
  gatewayClassName: eg
  listeners:
  - {name: http, port: 80, protocol: HTTP}
  - {name: https, port: 443, protocol: HTTPS, hostname: "*.example.com", allowedRoutes: {namespaces: {from: All}}}
  - {name: tls, port: 8443, protocol: TLS, tls: {mode: Passthrough}}
  - {name: db, port: 5432, protocol: TCP}
  - {name: dns, port: 53, protocol: UDP}
`

	listenerSet = `
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: extra, namespace: team}
spec:
  parentRef: {name: web, namespace: shop}
  listeners:
  - {name: extra, port: 8080, protocol: HTTP}
`
)
