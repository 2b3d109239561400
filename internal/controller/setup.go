// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package controller registers the provider's controllers. Each kind has a
// package of its own beneath.
package controller

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/authkey"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/common"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/config"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/contacts"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/device"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/discovery"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/dns"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/federatedidentity"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/logstreamconfiguration"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/machine"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/machineset"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/oauthclient"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/policyfragment"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/postureintegration"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/splitdns"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/tailnet"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/vipservice"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/webhook"
)

// A registration is a controller and the kinds that must be installed before it
// starts.
type registration struct {
	setup func(ctrl.Manager, common.Options) error
	needs []schema.GroupVersionKind
}

// registrations are all controllers of the provider.
func registrations() []registration {
	configs := []schema.GroupVersionKind{
		v1alpha1.ClusterProviderConfigGroupVersionKind,
		v1alpha1.ProviderConfigGroupVersionKind,
		v1alpha1.ProviderConfigUsageGroupVersionKind,
	}
	with := func(more ...schema.GroupVersionKind) []schema.GroupVersionKind {
		return append(more, configs...)
	}
	return []registration{
		{setup: config.Setup, needs: config.Watched()},
		{setup: tailnet.Setup, needs: with(v1alpha1.TailnetGroupVersionKind)},
		{setup: dns.Setup, needs: with(v1alpha1.DNSGroupVersionKind)},
		{setup: splitdns.Setup, needs: with(v1alpha1.SplitDNSGroupVersionKind, v1alpha1.DNSGroupVersionKind)},
		{setup: contacts.Setup, needs: with(v1alpha1.ContactsGroupVersionKind)},
		{setup: vipservice.Setup, needs: with(v1alpha1.VIPServiceGroupVersionKind, v1alpha1.MachineGroupVersionKind)},
		{setup: machine.Setup, needs: with(v1alpha1.MachineGroupVersionKind)},
		{setup: machineset.Setup, needs: with(v1alpha1.MachineSetGroupVersionKind, v1alpha1.MachineGroupVersionKind)},
		{setup: webhook.Setup, needs: with(v1alpha1.WebhookGroupVersionKind)},
		{setup: postureintegration.Setup, needs: with(v1alpha1.PostureIntegrationGroupVersionKind)},
		{setup: oauthclient.Setup, needs: with(v1alpha1.OAuthClientGroupVersionKind)},
		{setup: logstreamconfiguration.Setup, needs: with(v1alpha1.LogstreamConfigurationGroupVersionKind)},
		{setup: federatedidentity.Setup, needs: with(v1alpha1.FederatedIdentityGroupVersionKind)},
		{setup: authkey.Setup, needs: with(v1alpha1.AuthKeyGroupVersionKind)},
		{setup: device.Setup, needs: with(v1alpha1.DeviceGroupVersionKind)},
		{setup: discovery.Setup, needs: with(v1alpha1.DiscoveryGroupVersionKind)},
		{setup: policyfragment.Setup, needs: with(v1alpha1.PolicyFragmentGroupVersionKind)},
	}
}

// Setup adds all controllers to a manager at once.
func Setup(mgr ctrl.Manager, o common.Options) error {
	for _, r := range registrations() {
		if err := r.setup(mgr, o); err != nil {
			return err
		}
	}
	return nil
}

// SetupGated adds each controller as soon as the kinds that it needs are
// installed. fail is told why one could not be added.
func SetupGated(mgr ctrl.Manager, o common.Options, fail func(error)) {
	for _, r := range registrations() {
		o.Gate.Register(func() {
			if err := r.setup(mgr, o); err != nil {
				fail(err)
			}
		}, r.needs...)
	}
}
