//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// checked is the cluster of the endpoints in lastResort.
const checked = "tailscale/services/default/checked/80/http"

// A backend answers requests with its address. While unhealthy it still does so for Envoy, but
// fails the probes of the extension: Envoy's reaction comes from the extension's probes alone.
// While failing it fails Envoy's checks, too.
type backend struct {
	address            string
	unhealthy, failing atomic.Bool
}

func (p *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/health" && (p.failing.Load() || p.unhealthy.Load() && !strings.HasPrefix(r.UserAgent(), "Envoy/")) {
		http.Error(w, "unhealthy", http.StatusInternalServerError)
		return
	}
	_, _ = w.Write([]byte(p.address)) // The client may have gone.
}

// TestHealth checks the effects of health on traffic in a real Envoy.
func TestHealth(t *testing.T) { //nolint:tparallel // Its steps share one environment.
	t.Parallel()
	w := newEnvironment(t)
	w.apply(t, "health.yaml")
	w.apply(t, "failover.yaml")
	w.apply(t, "resets.yaml")
	t.Run("LastResort", func(t *testing.T) { lastResort(t, w) })
	t.Run("AllFail", func(t *testing.T) { allFail(t, w) })
	t.Run("Delays", func(t *testing.T) { delays(t, w) })
	t.Run("Threshold", func(t *testing.T) { threshold(t, w) })
	t.Run("Resets", func(t *testing.T) { resets(t, w) })
}

// backend serves a backend at an address.
func (w *environment) backend(t *testing.T, address string) *backend {
	t.Helper()
	p := &backend{address: address}
	w.serve(t, address, p)
	return p
}

// lastResort checks the use of an endpoint that accepts connections and returns errors for its
// health path, and its recovery.
func lastResort(t *testing.T, w *environment) {
	a, b := w.backend(t, "192.0.2.10:8010"), w.backend(t, "192.0.2.11:8010")
	w.stand(t, checked, map[string]string{a.address: "0 HEALTHY", b.address: "0 HEALTHY"})
	// Listeners come after clusters.
	w.answers(t, "checked.example.com", a.address)
	w.spread(t, "checked", a.address, b.address)

	a.unhealthy.Store(true)
	w.stand(t, checked, map[string]string{a.address: "1 DEGRADED", b.address: "0 HEALTHY"})
	w.spread(t, "checked", b.address)
	w.reported(t, "Local 1 of 2: checked 192.0.2.10 HTTP status 500")

	b.unhealthy.Store(true)
	w.stand(t, checked, map[string]string{a.address: "0 HEALTHY", b.address: "0 HEALTHY"})
	w.spread(t, "checked", a.address, b.address)

	b.unhealthy.Store(false)
	w.stand(t, checked, map[string]string{a.address: "1 DEGRADED", b.address: "0 HEALTHY"})
	a.unhealthy.Store(false)
	w.stand(t, checked, map[string]string{a.address: "0 HEALTHY", b.address: "0 HEALTHY"})
	w.spread(t, "checked", a.address, b.address)
}

// allFail checks that requests reach endpoints that all fail Envoy's checks: a check may be wrong, or fail
// because Envoy has no time for it. One endpoint that passes gets all requests.
func allFail(t *testing.T, w *environment) {
	a, b := w.backend(t, "192.0.2.10:8010"), w.backend(t, "192.0.2.11:8010")
	w.stand(t, checked, map[string]string{a.address: "0 HEALTHY", b.address: "0 HEALTHY"})
	w.spread(t, "checked", a.address, b.address)
	a.failing.Store(true)
	b.failing.Store(true)
	w.stand(t, checked, map[string]string{a.address: "0 FAILING", b.address: "0 FAILING"})
	w.spread(t, "checked", a.address, b.address)

	b.failing.Store(false)
	w.stand(t, checked, map[string]string{a.address: "1 FAILING", b.address: "0 HEALTHY"})
	w.spread(t, "checked", b.address)
	a.failing.Store(false)
	w.stand(t, checked, map[string]string{a.address: "0 HEALTHY", b.address: "0 HEALTHY"})
}

// resets checks that an endpoint is ejected that accepts connections and closes them without a response,
// which a check that connects does not notice: a proxy does so whose own backend is gone.
func resets(t *testing.T, w *environment) {
	const cluster = "tailscale/services/default/resets/80/http"
	good := w.backend(t, "192.0.2.15:8010")
	bad := "192.0.2.16:8010"
	w.serve(t, bad, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	w.answers(t, "resets.example.com", good.address)
	// A check that succeeds ends the ejection, and the next requests repeat it.
	err := w.Until(within(t), func(ctx context.Context) error {
		for range 10 {
			// Retries hide most failures.
			if backend, err := w.get(ctx, "resets.example.com"); err == nil && backend != good.address {
				t.Fatalf("%s answered", backend)
			}
		}
		got, err := w.standing(ctx, cluster)
		if diff := cmp.Diff(map[string]string{good.address: "0 HEALTHY", bad: "0 EJECTED"}, got); err == nil && diff != "" {
			err = errors.Errorf("endpoints: -want, +got:\n%s", diff)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// reported waits until the HealthReport has this content.
func (w *environment) reported(t *testing.T, want string) {
	t.Helper()
	err := w.Until(within(t), func(ctx context.Context) error {
		r := &tailnetv1alpha1.HealthReport{}
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(tailnetv1alpha1.SchemeGroupVersion.WithKind(tailnetv1alpha1.HealthReportKind))
		if err := w.kube.Get(ctx, types.NamespacedName{Namespace: "default", Name: names.HealthReport("TailscaleServices", "checked")}, u); err != nil {
			return err
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, r); err != nil {
			return err
		}
		content := &strings.Builder{}
		for _, p := range r.Spec.Ports {
			fmt.Fprintf(content, "%s %d of %d:", p.Tier, p.Healthy, p.Endpoints)
			for _, e := range p.UnhealthyEndpoints {
				fmt.Fprintf(content, " %s %s %s", e.Name, e.Address, e.Reason)
			}
		}
		if got := content.String(); len(r.OwnerReferences) != 1 || got != want {
			return errors.Errorf("the report is %q with %d owners, want %q", got, len(r.OwnerReferences), want)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// stand waits until a cluster's endpoints have these priorities and healths in Envoy.
func (w *environment) stand(t *testing.T, cluster string, want map[string]string) {
	t.Helper()
	err := w.Until(within(t), func(ctx context.Context) error {
		got, err := w.standing(ctx, cluster)
		if err == nil && !cmp.Equal(want, got) {
			err = errors.Errorf("endpoints have %v, want %v", got, want)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (w *environment) standing(ctx context.Context, cluster string) (map[string]string, error) {
	b, err := w.Admin(ctx, "/clusters?format=json")
	if err != nil {
		return nil, err
	}
	var content struct {
		Clusters []struct {
			Name  string `json:"name"`
			Hosts []struct {
				Priority int `json:"priority"`
				Address  struct {
					Socket struct {
						Address string      `json:"address"`
						Port    json.Number `json:"port_value"`
					} `json:"socket_address"`
				} `json:"address"`
				Health struct {
					EDS     string `json:"eds_health_status"`
					Failing bool   `json:"failed_active_health_check"`
					Ejected bool   `json:"failed_outlier_check"`
				} `json:"health_status"`
			} `json:"host_statuses"`
		} `json:"cluster_statuses"`
	}
	if err := json.Unmarshal(b, &content); err != nil {
		return nil, errors.Wrap(err, "cannot read Envoy's clusters")
	}
	out := map[string]string{}
	for _, c := range content.Clusters {
		if c.Name != cluster {
			continue
		}
		for _, h := range c.Hosts {
			health := h.Health.EDS
			switch {
			case h.Health.Failing:
				health = "FAILING"
			case h.Health.Ejected:
				health = "EJECTED"
			}
			out[h.Address.Socket.Address+":"+h.Address.Socket.Port.String()] = string(rune('0'+h.Priority)) + " " + health
		}
	}
	return out, nil
}

// spread waits until exactly these backends answer requests to a host of example.com. Envoy's
// workers get a change a little later than the admin page.
func (w *environment) spread(t *testing.T, host string, want ...string) {
	t.Helper()
	const total = 100
	wanted := map[string]bool{}
	for _, a := range want {
		wanted[a] = true
	}
	w.until(t, func(ctx context.Context) error {
		got := map[string]bool{}
		for range total {
			backend, err := w.get(ctx, host+".example.com")
			if err != nil {
				t.Fatal(err)
			}
			got[backend] = true
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			return errors.Errorf("who answers: -want, +got\n%s", diff)
		}
		return nil
	})
}
