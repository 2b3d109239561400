// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package app

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/objecttest"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/internal/backendtls"
)

const trustingPolicy = `
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: web, namespace: shop}
spec:
  targetRefs: [{group: gateway.tailscale.com, kind: TailscaleServices, name: web}]
  validation: {hostname: web.example.com, caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]}
`

// A requestLog forwards requests to an API server, and records those for ConfigMaps.
type requestLog struct {
	mu    sync.Mutex
	paths map[string]bool
}

// record returns the path of a kubeconfig with which requests are recorded.
func (l *requestLog) record(t *testing.T, cfg *rest.Config) string {
	t.Helper()
	target, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	if forward.Transport, err = rest.TransportFor(cfg); err != nil {
		t.Fatal(err)
	}
	forward.FlushInterval = -1
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/configmaps") {
			l.mu.Lock()
			l.paths[r.URL.Path+" "+r.URL.Query().Get("fieldSelector")] = true
			l.mu.Unlock()
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	out := clientcmdapi.NewConfig()
	out.Clusters["c"] = &clientcmdapi.Cluster{Server: s.URL}
	out.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	out.CurrentContext = "c"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*out, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestUnnamedConfigMaps checks that the extension reads the ConfigMap that a BackendTLSPolicy names and
// that of Envoy Gateway's configuration before it answers, and none of a tenant who creates many.
func TestUnnamedConfigMaps(t *testing.T) {
	const count, size = 50, 200 << 10
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	ours := filepath.Join(t.TempDir(), "crd.yaml")
	if err := os.WriteFile(ours, []byte(crd), 0o600); err != nil {
		t.Fatal(err)
	}
	server := startAPIServer(ctx, t, ours)
	fast := rest.CopyConfig(server.Config)
	fast.QPS = -1
	c, err := client.New(fast, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"shop", "system", "hostile"} {
		if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n}}); err != nil {
			t.Fatal(err)
		}
	}
	create := func(namespace, name, key, text string) {
		t.Helper()
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{key: text}}
		if err := c.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	ca := string(objecttest.TLSSecret(t, objecttest.ECDSAKey(t)).Data[corev1.TLSCertKey])
	large := ca + strings.Repeat("x", size-len(ca))
	for i := range count {
		create("hostile", fmt.Sprintf("ca-%d", i), backendtls.CAKey, large)
	}
	create("shop", "ca", backendtls.CAKey, ca)
	create("system", "config", parse.ConfigKey, "extensionManager: {failOpen: true, backendResources: [{group: gateway.tailscale.com}]}")
	objecttest.Apply(ctx, t, c, route+"\n---\n"+slice("10.0.0.1")+"\n---\n"+trustingPolicy)

	l := &requestLog{paths: map[string]bool{}}
	o := Options{Kubeconfig: l.record(t, server.Config), EnvoyGatewayConfig: &types.NamespacedName{Namespace: "system", Name: "config"}}
	store := newStore(o)
	cfg, err := o.restConfig()
	if err != nil {
		t.Fatal(err)
	}
	src, _, err := newSource(o, cfg, store, logging.NewNopLogger())
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- src.Start(running) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-src.Synced():
	case <-ctx.Done():
		t.Fatalf("not synced: %v", src.Waiting())
	}
	target := store.Snapshot().Target(ir.TargetKey{Kind: ir.TargetServices, Namespace: "shop", Name: "web", Port: 80, Protocol: ir.ProtocolHTTP})
	if target == nil || target.Problem != "" || target.Shape.TLS == nil || target.Shape.TLS.CA != ca {
		t.Errorf("the certificates are not known at the start: %+v", target)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var got []string
	for p := range l.paths {
		got = append(got, p)
	}
	slices.Sort(got)
	want := []string{"/api/v1/namespaces/shop/configmaps metadata.name=ca", "/api/v1/namespaces/system/configmaps metadata.name=config"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests for ConfigMaps: -want, +got:\n%s", diff)
	}
}
