// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/observe"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

// newGateways returns the controller of the extension's part of TailscaleGateways, and adds it to
// the leader's duties.
func newGateways(c *CLI, src *kubeSource, l *leader, store *index.Store, hooks func(gateway string) observe.Hooks, log logging.Logger) (*gateways.Controller, error) {
	s, err := parse.Scheme()
	if err != nil {
		return nil, err
	}
	cfg := rest.CopyConfig(src.cfg)
	// Hundreds of routes may be due at once. The API server has its own priorities.
	cfg.QPS = -1
	kube, err := client.New(cfg, client.Options{Scheme: s, Mapper: src.mapper})
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a client of the Kubernetes API")
	}
	o := gateways.Options{
		Version: version.Version,
		Gateway: c.only(),
		Permitted: func(r ir.RouteKey, b ir.BackendRef) bool {
			return store.Snapshot().Permitted(r, b)
		},
		Hooks: func(gateway string) *tailnetv1alpha1.ReportedHooks { return reportedHooks(hooks(gateway)) },
		Log:   log,
	}
	if o.Gateway == nil {
		o.Dedicated = func(dedicated map[types.NamespacedName]bool) {
			store.Serve(func(n types.NamespacedName) bool { return !dedicated[n] })
		}
	}
	out := gateways.NewController(src.informers, kube, o)
	l.duties = append(l.duties, out.Write)
	return out, nil
}

func reportedHooks(h observe.Hooks) *tailnetv1alpha1.ReportedHooks {
	if h.Total == 0 {
		return nil
	}
	last := metav1.NewTime(h.Last).Rfc3339Copy()
	return &tailnetv1alpha1.ReportedHooks{Total: int64(h.Total), Failed: int64(h.Failed), LastCall: &last}
}
