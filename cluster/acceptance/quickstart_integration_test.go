// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	tsclient "tailscale.com/client/tailscale/v2"
	"tailscale.com/tsnet"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// A stand replaces the product: for a TailscaleServices it creates the Tailscale Service, lets a
// node host it, and sets the conditions. It removes all with the object.
type stand struct {
	t   *testing.T
	sim *simtest.Running
	c   client.Client

	prefix  string
	node    *tsnet.Server
	nodeID  string
	created bool
	removed chan struct{}
}

// object returns one of the quickstart's objects, or nil.
func (s *stand) object(ctx context.Context, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "gateway.tailscale.com", Version: "v1alpha1", Kind: kind})
	err := s.c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, u)
	if client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
		s.t.Errorf("cannot get %s: %v", kind, err)
	}
	if err != nil {
		return nil
	}
	return u
}

// run runs until ctx ends, or the object is removed again.
func (s *stand) run(ctx context.Context) {
	defer close(s.removed)
	service := s.prefix + "-quick"
	for pauseFor(ctx, 50*time.Millisecond) == nil {
		u := s.object(ctx, "TailscaleServices", s.prefix, service)
		switch {
		case u == nil && s.created:
			s.withdraw(ctx, service)
			return
		case u != nil && !s.created:
			s.serve(ctx, service, u)
			s.created = true
		}
	}
}

func (s *stand) serve(ctx context.Context, service string, u *unstructured.Unstructured) {
	api := s.sim.Client(s.t).VIPServices()
	if err := api.CreateOrUpdate(ctx, tsclient.VIPService{Name: "svc:" + service, Ports: []string{"tcp:80"}, Tags: []string{"tag:k8s"}}); err != nil {
		s.t.Errorf("cannot create the service: %v", err)
		return
	}
	ln, err := s.node.ListenService("svc:"+service, tsnet.ServiceModeHTTP{Port: 80})
	if err != nil {
		s.t.Errorf("cannot host the service: %v", err)
		return
	}
	hs := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "web-0")
	})}
	go func() { _ = hs.Serve(ln) }()
	s.t.Cleanup(func() { _ = hs.Close() })
	// The policy file may approve it, too.
	raw := simSession(s.t, s.sim)
	approved := map[string]bool{"approved": true}
	if r, err := raw.send(ctx, http.MethodPost, approved, raw.tn("services", "svc:"+service, "device", s.nodeID, "approved")...); err != nil || !r.ok() {
		s.t.Errorf("cannot approve the host: %v", err)
	}
	v, err := api.Get(ctx, "svc:"+service)
	if err != nil {
		s.t.Errorf("cannot get the service: %v", err)
		return
	}
	addrs := []any{v.Addrs[0], v.Addrs[1]}
	s.become(ctx, s.object(ctx, "TailscaleTailnet", "", s.prefix), nil, "Authenticated")
	s.become(ctx, s.object(ctx, "TailscaleEndpoints", s.prefix, "proxies"), nil, "StatefulSetsReady")
	s.become(ctx, u, map[string]any{"vipServiceStatus": map[string]any{
		"serviceName": "svc:" + service, "addresses": addrs, "created": true, "backendCount": int64(1), "healthyBackendCount": int64(1),
	}}, "Advertised", "Ready")
}

// become sets an object's status.
func (s *stand) become(ctx context.Context, u *unstructured.Unstructured, status map[string]any, conditions ...string) {
	if u == nil {
		s.t.Error("an object of the quickstart is missing")
		return
	}
	if status == nil {
		status = map[string]any{}
	}
	var all []any
	for _, c := range conditions {
		all = append(all, map[string]any{"type": c, "status": "True", "reason": "Test", "lastTransitionTime": "2026-01-02T03:04:05Z"})
	}
	status["conditions"] = all
	u.Object["status"] = status
	if err := s.c.Status().Update(ctx, u); err != nil {
		s.t.Errorf("cannot set the status of %s: %v", u.GetKind(), err)
	}
}

func (s *stand) withdraw(ctx context.Context, service string) {
	api := s.sim.Client(s.t)
	if err := api.VIPServices().Delete(ctx, "svc:"+service); err != nil {
		s.t.Errorf("cannot remove the service: %v", err)
	}
	if err := api.Devices().Delete(ctx, s.nodeID); err != nil {
		s.t.Errorf("cannot remove the device: %v", err)
	}
}

// TestQuickstart runs the rows of the quickstart against a real API server, and a
// stand-in for the product.
func TestQuickstart(t *testing.T) {
	api, err := apiserver.Start(t.Context(), apiserver.Options{Controllers: apiserver.DeletionControllers(), Composites: true})
	if err != nil {
		t.Fatalf("cannot start an API server: %v", err)
	}
	t.Cleanup(func() {
		if err := api.Stop(); err != nil {
			t.Errorf("cannot stop the API server: %v", err)
		}
	})
	c, err := client.New(api.Config, client.Options{})
	if err != nil {
		t.Fatalf("cannot create a client: %v", err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, api.Kubeconfig, 0o600); err != nil {
		t.Fatalf("cannot write: %v", err)
	}

	const prefix = "tsgw-acc-quickstart"
	r := simtest.Start(t)
	s := &stand{t: t, sim: r, c: c, prefix: prefix, node: r.NewNode(t, "pod", "tag:k8s"), removed: make(chan struct{})}
	s.nodeID = simtest.NodeID(t, s.node)
	go s.run(t.Context())

	out := t.TempDir()
	if code, _ := accept(t, flags(r, out, "--write", "--prefix="+prefix, "--kubeconfig="+kubeconfig, "--only=quickstart/(installed|end-to-end)")); code != exitPass {
		t.Errorf("exit code %d", code)
	}
	if n := readSummary(t, out).Counts[outcomePass]; n != 2 {
		t.Errorf("want 2 rows to pass, got %d", n)
	}
	select {
	case <-s.removed:
	case <-time.After(simtest.Timeout):
		t.Error("the object of the service is not removed")
	}
	ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	if err := c.Get(t.Context(), client.ObjectKey{Name: prefix}, ns); !kerrors.IsNotFound(err) {
		t.Errorf("the namespace still exists: %v", err)
	}
	nothingLeft(t, r, out)
	noSecrets(t, out)
}
