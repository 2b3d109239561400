// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package watch

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// waitLimit is longer than any wait of a successful test.
const waitLimit = time.Minute

// TestSourceOfAPIServer runs against a real API server that has no Gateway API CRDs at
// first, as when the extension is installed before them.
func TestSourceOfAPIServer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server, err := apiserver.Start(ctx, apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	informers, err := NewCache(server.Config, nil)
	if err != nil {
		t.Fatal(err)
	}
	st := index.NewStore()
	src := NewSource(informers, parse.Kinds(), st, logging.NewNopLogger())
	ended := make(chan error, 2)
	go func() { ended <- informers.Start(ctx) }()
	go func() { ended <- src.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})

	select {
	case <-src.Synced():
	case <-time.After(waitLimit):
		t.Fatalf("not synced: %v", src.Waiting())
	}
	if got := strings.Join(src.Waiting(), "\n"); !strings.Contains(got, "HTTPRoute: ") || strings.Contains(got, "ProxySet") {
		t.Errorf("waiting for\n%s", got)
	}

	crds, err := apiserver.GatewayAPICRDs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, err = envtest.InstallCRDs(server.Config, envtest.CRDInstallOptions{
		Paths:   []string{filepath.Join(crds, "gateway.networking.k8s.io_httproutes.yaml")},
		MaxTime: waitLimit,
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := parse.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	kube, err := client.New(server.Config, client.Options{Scheme: s})
	if err != nil {
		t.Fatal(err)
	}
	if err := kube.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	route := objects(t, routeToWeb)[0]
	if err := kube.Create(ctx, route); err != nil {
		t.Fatal(err)
	}
	key := ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: name("web")}
	sub := st.Subscribe()
	defer sub.Close()
	until(t, sub, func() bool { return st.Snapshot().Route(key) != nil }, "the route whose CRD came later")
	if got := st.Snapshot().Route(key).Rules[0].Matches; len(got) != 1 || got[0].Path != "/" {
		b, err := json.Marshal(got)
		t.Errorf("the API server's default match is missing: %s %v", b, err)
	}
	if err := kube.Delete(ctx, route); err != nil {
		t.Fatal(err)
	}
	until(t, sub, func() bool { return st.Snapshot().Route(key) == nil }, "the route to go")
}

// until waits until ok returns true, and checks it again after each change of the
// subscription.
func until(t *testing.T, sub *index.Subscription, ok func() bool, description string) {
	t.Helper()
	deadline := time.After(waitLimit)
	for !ok() {
		select {
		case <-sub.Changed():
		case <-deadline:
			t.Fatalf("timed out waiting for %s", description)
		}
	}
}
