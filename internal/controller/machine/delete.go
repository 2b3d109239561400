// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// clockSkew that this cluster and Tailscale may have, at most.
const clockSkew = time.Minute

// left tells whether anything of a machine that is being deleted is left.
func (e *external) left(ctx context.Context, mg *v1alpha1.Machine, s secrets) (bool, error) {
	if s.state != nil || s.config != nil {
		return true, nil
	}
	if id := meta.NodeIDOf(mg); id != "" {
		_, err := e.api.Device(ctx, id)
		if err == nil {
			return true, nil
		}
		if !tailscale.IsNotFound(err) {
			return false, errors.Wrap(err, "cannot get device")
		}
	}
	ks, err := e.api.KeysByDescription(ctx, keyDescription(e.clusterID, mg))
	return len(ks) > 0, errors.Wrap(err, "cannot list auth keys")
}

// Delete the machine's keys, its devices and its Secrets. The keys go first:
// from then on no pod can make a device that the next steps do not see.
func (e *external) Delete(ctx context.Context, mg *v1alpha1.Machine) (managed.ExternalDelete, error) {
	mg.SetConditions(xpv2.Deleting())
	s, err := getSecrets(ctx, e.kube, mg)
	if err != nil {
		return managed.ExternalDelete{}, err
	}
	unused, err := e.deleteKeys(ctx, mg, s)
	if err != nil {
		return managed.ExternalDelete{}, err
	}
	// The node may have logged in and written its state meanwhile.
	if s, err = getSecrets(ctx, e.kube, mg); err != nil {
		return managed.ExternalDelete{}, err
	}
	ids, err := e.nodeIDs(ctx, mg, s)
	if err != nil {
		return managed.ExternalDelete{}, err
	}
	if len(ids) == 0 && !unused {
		if ids, err = e.unrecorded(ctx, mg); err != nil {
			return managed.ExternalDelete{}, err
		}
	}
	for _, id := range ids {
		if err := e.api.DeleteDevice(ctx, id); err != nil {
			return managed.ExternalDelete{}, errors.Wrapf(err, "cannot delete device %q", id)
		}
	}
	return managed.ExternalDelete{}, deleteSecrets(ctx, e.kube, s)
}

// nodeIDs of all devices that are known to be the machine's. One that its state names and
// that was not adopted yet is judged now.
func (e *external) nodeIDs(ctx context.Context, mg *v1alpha1.Machine, s secrets) ([]string, error) {
	ids := []string{meta.NodeIDOf(mg)}
	if s.config != nil {
		ids = append(ids, s.config.GetAnnotations()[annotationRetired])
	}
	if s.state != nil {
		d, err := e.device(ctx, nodeID(s.state))
		if err != nil {
			return nil, err
		}
		why, err := e.strange(ctx, mg, d, s.config)
		if err != nil {
			return nil, err
		}
		if why != "" {
			e.record.Event(mg, event.Warning(reasonDeviceRefused, errors.Errorf("device %s, which the pod names, is left: %s", d.NodeID, why)))
		} else if d != nil {
			ids = append(ids, d.NodeID)
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return slices.DeleteFunc(ids, func(id string) bool { return id == "" }), nil
}

// unrecorded finds a device that used the machine's key, but whose node ID was
// lost with the state Secret. Devices do not tell their key, so it is one that
// looks like ours and is younger than the machine. If several do, one may be
// another cluster's, and all are left.
func (e *external) unrecorded(ctx context.Context, mg *v1alpha1.Machine) ([]string, error) {
	all, err := e.api.Devices(ctx, time.Nanosecond)
	if err != nil {
		return nil, errors.Wrap(err, "cannot list devices")
	}
	tags := wantedTags(e.tags, mg)
	var ids []string
	for _, d := range all {
		young := d.Created.After(mg.GetCreationTimestamp().Add(-clockSkew))
		if d.Hostname != mg.Spec.ForProvider.Hostname || !young || !slices.Equal(slices.Sorted(slices.Values(d.Tags)), tags) {
			continue
		}
		other, err := e.claimed(ctx, mg, d.NodeID)
		if err != nil {
			return nil, err
		}
		if other == "" {
			ids = append(ids, d.NodeID)
		}
	}
	if len(ids) > 1 {
		e.record.Event(mg, event.Warning(reasonDeviceUnclear, errors.Errorf("%d devices look like this machine's and none was deleted: %v", len(ids), ids)))
		return nil, nil
	}
	return ids, nil
}
