//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	stockHost      = "stock.example.com"
	stockCluster   = "httproute/default/stock/rule/0"
	stockAggregate = "tailscale/aggregate/" + stockCluster
)

// TestServiceFailsOver lets a route to a Service fail over under load, while Envoy Gateway and Envoy are
// real: when failover begins, when the last endpoint drains, when it is gone, and when another is ready.
// No request is lost.
func TestServiceFailsOver(t *testing.T) {
	w := newEnvironment(t)
	w.apply(t, "servicefailover.yaml")
	w.answers(t, stockHost, localBackend)
	check(t, w.vacant(0)(t.Context()))
	l := w.load(t, stockHost)

	gateway := objectFrom(t, "apiVersion: gateway.tailscale.com/v1alpha1\nkind: TailscaleGateway\nmetadata: {name: gw, namespace: default}\nspec:\n  gatewayRef: {name: gw}\n  failover: {}\n")
	w.createObject(t, gateway)
	w.until(t, w.has(stockAggregate, true))
	w.stand(t, stockCluster, map[string]string{localBackend: "0 HEALTHY"})
	l.more(t, w)

	w.endpoints(t, `[{"addresses":["192.0.2.10"],"conditions":{"ready":false,"serving":true,"terminating":true}}]`)
	w.answers(t, stockHost, remoteBackend)
	w.until(t, w.vacant(1))
	l.more(t, w)

	w.endpoints(t, `[]`)
	w.stand(t, stockCluster, map[string]string{"192.0.2.1:80": "0 DRAINING"})
	w.answers(t, stockHost, remoteBackend)
	l.more(t, w)

	w.endpoints(t, `[{"addresses":["192.0.2.10"],"conditions":{"ready":true,"serving":true,"terminating":false}}]`)
	w.until(t, w.vacant(0))
	w.stand(t, stockCluster, map[string]string{localBackend: "0 HEALTHY"})
	w.spread(t, "stock", localBackend)
	all := l.end()
	answers := map[string]int{}
	for _, r := range all {
		if r.Err != nil {
			t.Errorf("a request is lost: %v", r.Err)
		}
		answers[r.Answer]++
	}
	if answers[localBackend] == 0 || answers[remoteBackend] == 0 {
		t.Errorf("want answers of both clusters, got %v", answers)
	}
	t.Logf("%v answered", answers)

	w.remove(t, gateway)
	w.until(t, w.has(stockAggregate, false))
	w.answers(t, stockHost, localBackend)
}

// endpoints replaces the endpoints of the Service.
func (w *environment) endpoints(t *testing.T, endpoints string) {
	t.Helper()
	w.patch(t, objectFrom(t, "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: stock, namespace: default}\n"), `{"endpoints":`+endpoints+`}`)
}

// has returns a check that Envoy has a cluster, or has it not.
func (w *environment) has(cluster string, want bool) func(context.Context) error {
	return func(ctx context.Context) error {
		all, err := w.clusters(ctx)
		if _, ok := all[cluster]; err == nil && ok != want {
			err = errors.Errorf("Envoy has cluster %s: %t, want %t", cluster, ok, want)
		}
		return err
	}
}

// vacant returns a check of the number of the extension's EndpointSlices.
func (w *environment) vacant(want int) func(context.Context) error {
	return func(ctx context.Context) error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(discoveryv1.SchemeGroupVersion.WithKind("EndpointSliceList"))
		if err := w.kube.List(ctx, list, client.MatchingLabels{discoveryv1.LabelServiceName: "stock", "gateway.tailscale.com/vacant": "installed"}); err != nil {
			return err
		}
		if got := len(list.Items); got != want {
			return errors.Errorf("there are %d EndpointSlices of the extension, want %d", got, want)
		}
		return nil
	}
}
