// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// ownUID returns the key of an object's own service in a hostsCache.
func ownUID(uid types.UID) types.UID { return uid + "/own" }

// observeOwnHosts records which hosts of the cluster's own service Update must approve. The status
// does not list them, because they also host the shared service. So the API is only asked while an
// agent offers the service and control has not accepted that.
func (e *sharing) observeOwnHosts(ctx context.Context, mg *v1alpha1.VIPService, v registry.View) error {
	name, uid := e.ownService(mg), ownUID(mg.GetUID())
	if v.Service(name) == nil || !mayApprove(mg.Spec.ForProvider) {
		e.hosts.forget(uid)
		return nil
	}
	rs, err := e.reports(ctx, mg.GetNamespace(), name)
	if err != nil {
		return errors.Wrap(err, "cannot list machines")
	}
	e.hosts.keep(uid, rs)
	if rs.accepted() && !slices.ContainsFunc(rs.unlisted(nil), func(id string) bool { return !e.hosts.isPreapproved(uid, id) }) {
		e.hosts.settle(uid)
		return nil
	}
	hosts, staleness := e.hosts.known(uid), tailscale.Cached
	if !rs.accepted() && e.hosts.due(uid, rs, hosts) {
		if hosts, err = e.api.services.Hosts(ctx, name); err != nil {
			return errors.Wrap(err, "cannot list hosts of the cluster's own service")
		}
		e.hosts.asked(uid, rs, hosts)
		staleness = tailscale.Recent
	}
	devices, _, err := e.api.devices.DevicesAt(ctx, staleness)
	if err != nil {
		return errors.Wrap(err, "cannot list devices")
	}
	e.approveOwn = toApprove(mg.Spec.ForProvider, rs, hosts, devices)
	e.preapproveOwn, err = e.toPreapprove(ctx, mg, uid, name, rs.unlisted(hosts), devices)
	return err
}

// approveOwnHosts approves the waiting hosts that observeOwnHosts recorded.
func (e *sharing) approveOwnHosts(ctx context.Context, mg *v1alpha1.VIPService) error {
	if err := e.preapproveMachines(ctx, mg, ownUID(mg.GetUID()), e.ownService(mg), e.preapproveOwn); err != nil {
		return err
	}
	for _, id := range e.approveOwn {
		if err := e.approveHost(ctx, mg, e.ownService(mg), id); err != nil {
			return err
		}
		e.hosts.approved(ownUID(mg.GetUID()), id)
	}
	return nil
}

// ownService returns the name of the cluster's own service.
func (e *sharing) ownService(mg *v1alpha1.VIPService) string {
	return registry.RecordName(string(mg.Spec.ForProvider.Name), e.clusterID)
}

// accepted reports whether control has accepted all hosts whose agents offer a service, as far as
// that is known.
func (c reports) accepted() bool {
	for _, r := range c {
		if r.notAccepted() {
			return false
		}
	}
	return true
}
