//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/load"
)

const gateway = "http://127.0.0.1:8888/"

// TestRoutes checks that a route of each kind answers through a real Envoy with the extension's
// backends, and that Envoy follows changes of the backends.
func TestRoutes(t *testing.T) { //nolint:tparallel // Its steps share one environment.
	t.Parallel()
	w := newEnvironment(t)
	w.apply(t, "backends.yaml")
	w.apply(t, "routes.yaml")

	t.Run("HTTPRouteToServices", func(t *testing.T) { w.answers(t, "services.example.com", "192.0.2.10:8000") })
	t.Run("HTTPRouteToEndpoints", func(t *testing.T) { w.answers(t, "endpoints.example.com", "192.0.2.20:10007") })
	t.Run("Split", func(t *testing.T) { splits(t, w) })
	t.Run("GRPCRoute", func(t *testing.T) { w.answersGRPC(t, "grpc.example.com", "192.0.2.10:8001") })
	t.Run("TCPRoute", func(t *testing.T) { w.answersTCP(t, "127.0.0.1:8900", "192.0.2.10:9000") })
	t.Run("UDPRoute", func(t *testing.T) { w.answersUDP(t, "127.0.0.1:8901", "192.0.2.10:9001") })
	t.Run("TLSRoute", func(t *testing.T) { w.answersTLS(t, "example.com", "192.0.2.10:9444") })
	t.Run("Status", func(t *testing.T) { statuses(t, w) })
	t.Run("FollowsSettings", func(t *testing.T) { followsSettings(t, w) })
	t.Run("FollowsEndpoints", func(t *testing.T) { follows(t, w) })
	t.Run("ServesWithoutExtension", func(t *testing.T) { servesWithoutExtension(t, w) })
	t.Run("FailsOver", func(t *testing.T) { failsOver(t, w) })
	t.Run("TriggersTranslation", func(t *testing.T) { triggersTranslation(t, w) })
	t.Run("ReplicasAgree", func(t *testing.T) { agrees(t, w) })
	t.Run("CleansUp", func(t *testing.T) { cleansUp(t, w) })
}

// get returns the backend that answers for HOST or HOST/PATH, on a new connection.
func (w *environment) get(ctx context.Context, target string) (string, error) {
	c := w.Client()
	defer c.CloseIdleConnections()
	got := send(ctx, c, target)
	return got.backend, got.err
}

// A response to a request.
type response struct {
	// backend is the address that answered.
	backend string
	// Protocols between client and Envoy, and between Envoy and the backend.
	spoken, behind string
	err            error
}

// send sends a request to HOST or HOST/PATH.
func send(ctx context.Context, c *http.Client, target string) response {
	out := response{}
	request := targetOf(target)
	request.Check = func(r load.Response) error {
		out.spoken, out.behind = r.Proto, r.Header.Get(behindHeader)
		return nil
	}
	out.backend, out.err = load.Get(ctx, c, request)
	return out
}

// answers waits until a backend answers for HOST or HOST/PATH.
func (w *environment) answers(t *testing.T, target, want string) {
	t.Helper()
	err := w.Until(within(t), func(ctx context.Context) error {
		got, err := w.get(ctx, target)
		if err == nil && got != want {
			err = errors.Errorf("%q answers, not %q", got, want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// splits checks a split of one quarter to services and the rest to endpoints.
func splits(t *testing.T, w *environment) {
	const total = 1000
	if err := w.Until(within(t), func(ctx context.Context) error { _, err := w.get(ctx, "split.example.com"); return err }); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	ctx := within(t)
	for range total {
		backend, err := w.get(ctx, "split.example.com")
		if err != nil {
			t.Fatal(err)
		}
		got[backend]++
	}
	// Four standard deviations of a thousand fair choices.
	if n := got["192.0.2.10:8000"]; n < 195 || n > 305 || n+got["192.0.2.20:10007"] != total {
		t.Errorf("want a quarter of %d at 192.0.2.10:8000, got %v", total, got)
	}
}

// follows moves the backend, which needs no translation. Requests may fail until the new backend is
// healthy in Envoy, because it is the only one.
func follows(t *testing.T, w *environment) {
	slice := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice"}}
	slice.SetNamespace("default")
	slice.SetName("app")
	patch := `{"endpoints":[{"addresses":["192.0.2.11"],"conditions":{"ready":true}}]}`
	began := time.Now()
	if err := w.kube.Patch(t.Context(), slice, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	failed := 0
	ctx := within(t)
	for {
		got, err := w.get(ctx, "services.example.com")
		if got == "192.0.2.11:8000" && err == nil {
			break
		}
		if err != nil {
			failed++
		}
		if ctx.Err() != nil {
			t.Fatalf("the new backend does not answer: %q, %v", got, err)
		}
	}
	t.Logf("the new backend answers after %s; %d requests failed meanwhile", time.Since(began).Round(time.Millisecond), failed)
}

// servesWithoutExtension checks that traffic continues without the extension, and that later changes arrive when
// it runs again.
func servesWithoutExtension(t *testing.T, w *environment) {
	if err := w.extension.Kill(); err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute"}}
	u.SetNamespace("default")
	u.SetName("endpoints")
	patch := `{"spec":{"hostnames":["endpoints.example.com","new.example.com"]}}`
	if err := w.kube.Patch(t.Context(), u, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		if _, err := w.get(within(t), "services.example.com"); err != nil {
			t.Fatalf("without the extension: %v", err)
		}
	}
	w.startExtension(t)
	began := time.Now()
	w.answers(t, "new.example.com", "192.0.2.20:10007")
	t.Logf("the new hostname answers %s after the extension serves again", time.Since(began).Round(time.Millisecond))
	w.answers(t, "services.example.com", "192.0.2.11:8000")
}

// failsOver ends the only local backend, so that the other cluster's backend answers, and restarts
// it.
func failsOver(t *testing.T, w *environment) {
	const local, remote = "192.0.2.11:8000", "192.0.2.20:10008"
	w.answers(t, "services.example.com", local)
	w.http[local].CloseClientConnections()
	w.http[local].Close()
	began := time.Now()
	failed := 0
	ctx := within(t)
	for {
		got, err := w.get(ctx, "services.example.com")
		if err == nil && got == remote {
			break
		}
		failed++
		if ctx.Err() != nil {
			t.Fatalf("the other cluster does not answer: %q, %v", got, err)
		}
	}
	t.Logf("the other cluster answers after %s; %d requests failed meanwhile", time.Since(began).Round(time.Millisecond), failed)

	w.serve(t, local, respond(local))
	began = time.Now()
	w.answers(t, "services.example.com", local)
	t.Logf("the local backend answers again %s after its restart", time.Since(began).Round(time.Millisecond))
}
