//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tailscale-gateway/tailscale-gateway/internal/identity"
	"github.com/tailscale-gateway/tailscale-gateway/test/standalone"
)

// TestMergedGateways checks that one Envoy keeps the requests of its Gateways apart: each has its own
// client certificate, and its own trust in identity headers, at one port.
func TestMergedGateways(t *testing.T) { //nolint:tparallel // Its steps share one environment.
	t.Parallel()
	w := newEnvironmentOf(t, standalone.Options{Merge: true})
	w.serve(t, "192.0.2.30:8000", http.HandlerFunc(returnHeaders))
	authority := newAuthority(t, "authority")
	w.serveMTLS(t, ledger, authority)
	w.createObject(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "ledger-ca"}, Data: map[string]string{"ca.crt": string(authority.pem())}})
	for _, name := range []string{"first", "second"} {
		w.createObject(t, authority.issue(t, "of "+name, time.Hour).secret(name))
	}
	w.apply(t, "merged-apart.yaml")

	t.Run("Certificates", func(t *testing.T) {
		w.until(t, w.responds(query{host: "ledger.first.example.com"}, "200 of first"))
		w.until(t, w.responds(query{host: "ledger.second.example.com"}, "200 of second"))
		// The third has none, and the backend requires one.
		w.until(t, w.responds(query{host: "ledger.third.example.com"}, "503"))
	})
	t.Run("Identity", func(t *testing.T) {
		header := http.Header{identity.Login: {"ann"}, "tailscale.user.login": {"ann"}, "X-Other": {"kept"}}
		passed, dropped := http.Header{identity.Login: {"ann"}, "Tailscale.user.login": {"ann"}, "X-Other": {"kept"}}, http.Header{"X-Other": {"kept"}}
		passed["X-Rule"] = []string{"ann"}
		first, second := joins(`[{"name": "corp", "listeners": [{"name": "http", "identity": "Headers"}]}]`), joins(`[{"name": "corp", "listeners": [{"name": "tailnet", "identity": "Headers"}]}]`)
		for name, u := range map[string]*unstructured.Unstructured{"first": first, "second": second} {
			u.SetName(name)
			if err := unstructured.SetNestedField(u.Object, name, "spec", "gatewayRef", "name"); err != nil {
				t.Fatal(err)
			}
		}
		for _, host := range []string{"first", "second", "third"} {
			w.until(t, w.passesAt(gateway, "echo."+host+".example.com", header, passed))
		}
		w.create(t, second)
		w.until(t, w.passesAt(gateway, "echo.second.example.com", header, dropped))
		w.create(t, first)
		for range 3 {
			for host, want := range map[string]http.Header{"first": passed, "second": dropped, "third": passed} {
				w.until(t, w.passesAt(gateway, "echo."+host+".example.com", header, want))
			}
		}
	})
}
