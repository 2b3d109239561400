// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package controller registers the provider's controllers. Each kind has a package below this one.
package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/authkey"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/composite"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/config"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/contacts"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/device"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/discovery"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/dns"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/extension"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/federatedidentity"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/fence"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/firsttailnet"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/handover"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/logstreamconfiguration"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/machine"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/machineset"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/multicluster"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/oauthclient"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/policyfragment"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/postureintegration"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/publish"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/splitdns"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/tailnet"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/vipservice"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/webhook"
)

// managedKinds returns all kinds that the provider manages. A new kind is added here, and
// nowhere else.
func managedKinds(o setup.Options) []kinds.Registration {
	return []kinds.Registration{
		tailnet.Kind(o),
		dns.Kind(o),
		splitdns.Kind(o),
		contacts.Kind(o),
		vipservice.Kind(o),
		machine.Kind(o),
		webhook.Kind(o),
		postureintegration.Kind(o),
		oauthclient.Kind(o),
		logstreamconfiguration.Kind(o),
		federatedidentity.Kind(o),
		authkey.Kind(o),
		device.Kind(o),
		discovery.Kind(o),
		policyfragment.Kind(o),
	}
}

// A registration is a controller and the kinds that must be installed before it
// starts.
type registration struct {
	setup func(ctrl.Manager, setup.Options) error
	needs []schema.GroupVersionKind
}

// registrations returns all controllers of the provider: those of provider configs, of MachineSets,
// of handovers, of dedicated extensions, of exported and published Services and of the first tailnet, and one
// for each managed kind.
func registrations(o setup.Options) []registration {
	managed := managedKinds(o)
	users := make([]kinds.User, 0, len(managed))
	for _, k := range managed {
		users = append(users, k.User())
	}
	out := []registration{
		{
			setup: func(mgr ctrl.Manager, o setup.Options) error { return config.Setup(mgr, o, users) },
			needs: config.Watched(),
		},
		{setup: machineset.Setup, needs: machineset.Needs()},
		{setup: handover.Setup, needs: handover.Needs()},
		{setup: extension.Setup, needs: extension.Needs()},
		{setup: multicluster.Setup, needs: multicluster.Needs()},
		{setup: publish.Setup, needs: publish.Needs()},
		// When the TailscaleTailnet is there, the user's next manifest has kinds that exist, too.
		{setup: firsttailnet.Setup, needs: composite.Kinds()},
	}
	for _, k := range managed {
		out = append(out, registration{setup: k.Setup, needs: k.Needs()})
	}
	return out
}

// Setup adds all controllers to a manager at once.
func Setup(mgr ctrl.Manager, o setup.Options) error {
	if err := fence.Setup(mgr, o); err != nil {
		return err
	}
	for _, r := range registrations(o) {
		if err := r.setup(mgr, o); err != nil {
			return err
		}
	}
	return nil
}

// SetupGated adds each controller as soon as the kinds that it needs are installed, also those of
// composite resources, which a Configuration installs. It calls fail with the reason if a controller
// could not be added.
func SetupGated(ctx context.Context, mgr ctrl.Manager, o setup.Options, fail func(error)) {
	if err := fence.Setup(mgr, o); err != nil {
		fail(err)
	}
	for _, r := range registrations(o) {
		o.Gate.Register(func() {
			if err := r.setup(mgr, o); err != nil {
				fail(err)
			}
		}, r.needs...)
	}
	for _, k := range composite.Kinds() {
		o.Gate.Register(func() {
			if err := composite.Setup(ctx, mgr, o, k); err != nil {
				fail(err)
			}
		}, k)
	}
}
