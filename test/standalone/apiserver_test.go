//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package standalone_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
	"github.com/tailscale-gateway/tailscale-gateway/test/standalone"
)

// serviceRoute goes to a Service, whose endpoints only the test writes.
const serviceRoute = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: web
  namespace: default
spec:
  parentRefs:
  - name: gw
  hostnames:
  - www.example.com
  rules:
  - backendRefs:
    - name: web
      port: 80
---
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: default
spec:
  ports:
  - port: 80
    targetPort: 8000
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: web
  namespace: default
  labels:
    kubernetes.io/service-name: web
addressType: IPv4
ports:
- name: ""
  port: 8000
  protocol: TCP
endpoints:
- addresses: [192.0.2.10]
  conditions:
    ready: true
`

// TestAPIServer checks a route to a Service, and its status, with objects in an API server.
func TestAPIServer(t *testing.T) {
	t.Parallel()
	crds, err := standalone.CRDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := apiserver.Start(t.Context(), apiserver.Options{CRDs: crds})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	kube, err := client.New(s.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	g := start(t, standalone.Options{Kubeconfig: s.Kubeconfig})
	ctx := within(t)
	manifests := strings.Replace(gatewayManifest, "name: gw\n", "name: gw\n  namespace: default\n", 1) + "---\n" + serviceRoute
	for _, doc := range bytes.Split([]byte(manifests), []byte("---\n")) {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, u); err != nil {
			t.Fatal(err)
		}
		if err := kube.Create(ctx, u); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Answers(ctx, gateway, host); err != nil {
		t.Fatal(err)
	}
	t.Logf("answers %s after the start", time.Since(began).Round(time.Millisecond))
	err = g.Until(ctx, func(ctx context.Context) error {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute"}}
		if err := kube.Get(ctx, client.ObjectKey{Namespace: "default", Name: "web"}, u); err != nil {
			return err
		}
		if parents, _, err := unstructured.NestedSlice(u.Object, "status", "parents"); err != nil || len(parents) != 1 {
			return errors.Errorf("the route has no status: %v", u.Object["status"])
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
