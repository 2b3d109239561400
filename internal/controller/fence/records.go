// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/fence"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// publish writes to the record of this cluster what its witnesses have lost, and its fence. A service that is
// not shared has no record.
func (r *reconciler) publish(ctx context.Context, v *v1alpha1.VIPService, conn connection, s situation, f *v1alpha1.HostFence, at time.Time) error {
	name := v.Status.AtProvider.OwnServiceName
	if !v.Spec.ForProvider.Sharing.IsShared() || name == "" {
		r.stated.Set(v.GetUID(), false, checkRecord)
		return nil
	}
	current, err := conn.api.Service(ctx, name)
	if tailscale.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return errors.Wrapf(err, "cannot get service %q", name)
	}
	statement := registry.Fencing{Leaving: s.leaving}
	lost := lostHosts(s.votes)
	for _, host := range slices.Sorted(maps.Keys(lost)) {
		statement.Lost = append(statement.Lost, registry.LostHost{Node: host, Witnesses: lost[host]})
	}
	if f != nil {
		statement.Fence = &fence.Fence{Node: f.NodeID, Cluster: f.ClusterID, Reason: f.Message, Deadline: f.Deadline.Time}
	}
	updated, changed, err := registry.SetFencing(*current, statement, at)
	if err != nil {
		return err
	}
	if changed {
		if _, err := conn.api.PutService(ctx, updated); err != nil {
			return errors.Wrapf(err, "cannot write the record %q", name)
		}
	}
	r.stated.Set(v.GetUID(), s.notable() || f != nil, checkRecord)
	return nil
}

// others adds what other clusters record about the watched hosts. A cluster whose record cannot be read says nothing.
func others(ctx context.Context, v *v1alpha1.VIPService, conn connection, s situation, f *fence.Facts) error {
	if !v.Spec.ForProvider.Sharing.IsShared() {
		return nil
	}
	for _, c := range v.Status.AtProvider.Consumers {
		if c.ClusterID == conn.cluster || !c.Fencing || !c.Online {
			continue
		}
		theirs, err := conn.api.Service(ctx, c.ServiceName)
		if tailscale.IsNotFound(err) {
			continue
		}
		if err != nil {
			return errors.Wrapf(err, "cannot get service %q", c.ServiceName)
		}
		rec, ok, err := registry.RecordOf(theirs)
		if err != nil || !ok || rec.Fencing == nil || rec.Cluster != c.ClusterID {
			continue
		}
		for _, vote := range rec.Votes(f.Time) {
			if s.watched[vote.Host] {
				f.Votes = append(f.Votes, vote)
			}
		}
		for i := range f.Hosts {
			if slices.Contains(c.NodeIDs, f.Hosts[i].Node) && slices.Contains(rec.Fencing.Leaving, f.Hosts[i].Node) {
				f.Hosts[i].Serves = false
			}
		}
		if rec.Fencing.Fence != nil {
			other := *rec.Fencing.Fence
			other.Cluster = rec.Cluster
			f.Fences = append(f.Fences, other)
		}
	}
	return nil
}
