//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

// clusters returns Envoy's clusters by name, with the interval of their first health check.
func (w *environment) clusters(ctx context.Context) (map[string]string, error) {
	dump, err := w.Admin(ctx, "/config_dump?resource=dynamic_active_clusters")
	if err != nil {
		return nil, err
	}
	var content struct {
		Configs []struct {
			Cluster struct {
				Name         string `json:"name"`
				HealthChecks []struct {
					Interval string `json:"interval"`
				} `json:"health_checks"`
			} `json:"cluster"`
		} `json:"configs"`
	}
	if err := json.Unmarshal(dump, &content); err != nil {
		return nil, errors.Wrap(err, "cannot read Envoy's clusters")
	}
	out := map[string]string{}
	for _, c := range content.Configs {
		out[c.Cluster.Name] = ""
		if len(c.Cluster.HealthChecks) > 0 {
			out[c.Cluster.Name] = c.Cluster.HealthChecks[0].Interval
		}
	}
	return out, nil
}

// checksEach returns a check that Envoy checks a cluster's health at this interval.
func (w *environment) checksEach(cluster, interval string) func(context.Context) error {
	return func(ctx context.Context) error {
		got, err := w.clusters(ctx)
		if err == nil && got[cluster] != interval {
			err = errors.Errorf("Envoy checks %s each %q, want %s", cluster, got[cluster], interval)
		}
		return err
	}
}

// followsSettings checks that a setting of a target reaches Envoy although Envoy Gateway does not
// watch the target of such routes, and that nothing is written at rest.
func followsSettings(t *testing.T, w *environment) {
	for _, tc := range []struct{ name, cluster, interval string }{
		{name: "grpc", cluster: "tailscale/services/default/grpc/80/grpc", interval: "7s"},
		{name: "tcp", cluster: "tailscale/services/default/tcp/9000/tcp", interval: "8s"},
		{name: "tls", cluster: "tailscale/services/default/tls/9443/tcp", interval: "9s"},
	} {
		w.reshapes(t, tc.name, tc.cluster, tc.interval)
	}
	w.answersTCP(t, "127.0.0.1:8900", "192.0.2.10:9000")
	w.answersGRPC(t, "grpc.example.com", "192.0.2.10:8001")

	err := w.Until(within(t), func(ctx context.Context) error {
		r, err := w.revision(ctx)
		if err != nil {
			return err
		}
		ancestors, _, err := unstructured.NestedSlice(r.Object, "status", "ancestors")
		if err == nil && len(ancestors) != 1 {
			err = errors.Errorf("Envoy Gateway has no status for the TailscaleRevision: %v", r.Object["status"])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	current := w.atRest(t)
	t.Logf("generation %d of the TailscaleRevision after three settings and all that came before", current.GetGeneration())
}

// reshapes changes a TailscaleServices, and waits until its cluster has the new interval.
func (w *environment) reshapes(t *testing.T, name, cluster, interval string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gatewayv1alpha1.SchemeGroupVersion.WithKind(gatewayv1alpha1.TailscaleServicesKind))
	u.SetNamespace("default")
	u.SetName(name)
	began := time.Now()
	w.patch(t, u, `{"spec":{"loadBalancing":{"healthCheck":{"interval":"`+interval+`"}}}}`)
	w.until(t, w.checksEach(cluster, interval))
	t.Logf("a setting of %s reaches Envoy after %s", name, time.Since(began).Round(time.Millisecond))
}

// agrees checks that two replicas together write a change once, and nothing at rest.
func agrees(t *testing.T, w *environment) {
	args := append(slices.Clone(w.command[1:]), "--hooks-address=unix:"+filepath.Join(t.TempDir(), "hooks.sock"), "--eds-address=127.0.0.1:5008", "--observe-address=127.0.0.1:5009")
	second, err := w.Run(w.log, w.command[0], args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, second.Stop(limit)) })
	if err := w.Answers(within(t), "http://127.0.0.1:5009/ready", ""); err != nil {
		t.Fatal(err)
	}
	// A replica triggers one more translation when it starts.
	previous := w.atRest(t)
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gatewayv1alpha1.SchemeGroupVersion.WithKind(gatewayv1alpha1.TailscaleServicesKind))
	u.SetNamespace("default")
	u.SetName("tcp")
	w.patch(t, u, `{"spec":{"loadBalancing":{"healthCheck":{"interval":"12s"}}}}`)
	w.until(t, w.checksEach("tailscale/services/default/tcp/9000/tcp", "12s"))
	current := w.atRest(t)
	// The hooks' replica may have lagged, and triggered another translation.
	if n := current.GetGeneration() - previous.GetGeneration(); n < 1 || n > 2 {
		t.Errorf("two replicas wrote %d times for one change", n)
	}
	if n := len(w.placeholders(t.Context(), t)); n != 1 {
		t.Errorf("two replicas keep %d placeholders, not one", n)
	}
}

// atRest waits until the TailscaleRevision has not been written for longer than any wait between
// two writes.
func (w *environment) atRest(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	var last *unstructured.Unstructured
	w.until(t, func(ctx context.Context) error {
		previous, err := w.revision(ctx)
		if err != nil {
			return err
		}
		pause(t, 5*time.Second)
		if last, err = w.revision(ctx); err != nil {
			return err
		}
		if previous.GetGeneration() != last.GetGeneration() {
			return errors.Errorf("the TailscaleRevision is written at rest: generation %d after %d", last.GetGeneration(), previous.GetGeneration())
		}
		return nil
	})
	return last
}

// pause waits, to check that something does not happen.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// triggersTranslation checks that changes while no extension runs arrive with the next one, and
// that an ending extension triggers a translation for its successor.
func triggersTranslation(t *testing.T, w *environment) {
	previous := w.atRest(t)
	if err := w.extension.Stop(limit); err != nil {
		t.Fatal(err)
	}
	current, err := w.revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if current.GetGeneration() != previous.GetGeneration()+1 {
		t.Errorf("an ending extension is to trigger a translation: generation %d after %d", current.GetGeneration(), previous.GetGeneration())
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gatewayv1alpha1.SchemeGroupVersion.WithKind(gatewayv1alpha1.TailscaleServicesKind))
	u.SetNamespace("default")
	u.SetName("tcp")
	w.patch(t, u, `{"spec":{"loadBalancing":{"healthCheck":{"interval":"11s"}}}}`)
	w.startExtension(t)
	began := time.Now()
	w.until(t, w.checksEach("tailscale/services/default/tcp/9000/tcp", "11s"))
	t.Logf("a setting that changed without an extension reaches Envoy %s after the extension serves again", time.Since(began).Round(time.Millisecond))
}

// cleansUp checks that a Gateway without routes to the extension's backends has no
// TailscaleRevision and no placeholder.
func cleansUp(t *testing.T, w *environment) {
	for _, kind := range []string{"HTTPRoute", "GRPCRoute", "TCPRoute", "UDPRoute", "TLSRoute"} {
		w.remove(t, objectOf(kind, "services"))
	}
	w.remove(t, objectOf("HTTPRoute", "endpoints"))
	w.remove(t, objectOf("HTTPRoute", "split"))
	err := w.Until(within(t), func(ctx context.Context) error {
		if n := len(w.placeholders(ctx, t)); n > 0 {
			return errors.Errorf("there are %d placeholders", n)
		}
		if _, err := w.revision(ctx); !apierrors.IsNotFound(err) {
			return errors.Errorf("the TailscaleRevision still exists: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// revision returns the Gateway's TailscaleRevision.
func (w *environment) revision(ctx context.Context) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gatewayv1alpha1.SchemeGroupVersion.WithKind(gatewayv1alpha1.TailscaleRevisionKind))
	return u, w.kube.Get(ctx, client.ObjectKey{Namespace: "default", Name: "gw"}, u)
}
