// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/nodestate"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const (
	// clockSkew is the maximum difference between the clocks of this cluster and of Tailscale.
	clockSkew = time.Minute

	// offlineGrace is how long a machine that is being deleted waits for a device that looks like
	// its own to go offline.
	offlineGrace = 2 * time.Minute
)

// remains reports whether anything is left of a machine that is being deleted.
func (e *external) remains(ctx context.Context, mg *v1alpha1.Machine, s podSecrets) (bool, error) {
	if s.state != nil || s.config != nil {
		return true, nil
	}
	if id := meta.NodeIDOf(mg); id != "" {
		_, err := e.api.devices.Device(ctx, id)
		if err == nil {
			return true, nil
		}
		if !tailscale.IsNotFound(err) {
			return false, errors.Wrap(err, "cannot get device")
		}
	}
	ks, err := e.api.keys.KeysByDescription(ctx, keyDescription(e.clusterID, mg))
	return len(ks) > 0, errors.Wrap(err, "cannot list auth keys")
}

// Delete deletes the machine's keys, its devices and its Secrets. The keys go first: afterwards no
// pod can make a device that the next steps miss.
func (e *external) Delete(ctx context.Context, mg *v1alpha1.Machine) (managed.ExternalDelete, error) {
	mg.SetConditions(xpv2.Deleting())
	s, err := getSecrets(ctx, e.kube, mg)
	if err != nil {
		return managed.ExternalDelete{}, err
	}
	r, err := recordOf(mg)
	if err != nil {
		return managed.ExternalDelete{}, err
	}
	if r, err = e.adoptHint(ctx, mg, r, s.config); err != nil {
		return managed.ExternalDelete{}, err
	}
	if r, err = e.deleteKeys(ctx, mg, r); err != nil {
		return managed.ExternalDelete{}, err
	}
	// The node may have logged in and written its state in the meantime.
	if s, err = getSecrets(ctx, e.kube, mg); err != nil {
		return managed.ExternalDelete{}, err
	}
	ids, err := e.nodeIDs(ctx, mg, r, s)
	if err != nil {
		return managed.ExternalDelete{}, err
	}
	if at, ok := r.mayBeUsed(); ok && len(ids) == 0 {
		if ids, err = e.unrecorded(ctx, mg, at); err != nil {
			return managed.ExternalDelete{}, err
		}
	}
	for _, id := range ids {
		if err := e.api.devices.DeleteDevice(ctx, id); err != nil {
			return managed.ExternalDelete{}, errors.Wrapf(err, "cannot delete device %q", id)
		}
	}
	return managed.ExternalDelete{}, deleteSecrets(ctx, e.kube, s)
}

// nodeIDs returns the node IDs of all known devices of the machine. It checks those that were not
// adopted: the device that the machine's state names, and a retired device, which may have been
// adopted once.
func (e *external) nodeIDs(ctx context.Context, mg *v1alpha1.Machine, r record, s podSecrets) ([]string, error) {
	var ids []string
	if id := meta.NodeIDOf(mg); id != "" {
		ids = append(ids, id)
	}
	candidates := []candidate{{id: r.Retired, source: "its record", issued: mg.GetCreationTimestamp().Time}}
	if s.state != nil {
		candidates = append(candidates, candidate{id: nodestate.NodeID(s.state.Data), source: "the pod", issued: firstUse(mg, r)})
	}
	for _, c := range candidates {
		if slices.Contains(ids, c.id) {
			continue
		}
		d, err := e.device(ctx, c.id, tailscale.Cached)
		if err != nil {
			return nil, err
		}
		reason, err := e.strange(ctx, mg, d, r, c.issued)
		if err != nil {
			return nil, err
		}
		if reason != "" {
			e.record.Event(mg, event.Warning(reasonDeviceRefused, errors.Errorf("device %s, which %s names, is left: %s", d.NodeID, c.source, reason)))
		} else if d != nil {
			ids = append(ids, d.NodeID)
		}
	}
	return ids, nil
}

// A candidate is a device that may be the machine's.
type candidate struct {
	id     string
	source string // The source of the ID, for messages.

	// issued is when a key was issued that the device can have used.
	issued time.Time
}

// unrecorded finds a device that used the machine's key, but whose node ID was lost with the state
// Secret. Devices do not show their key, so it finds a device that looks like the machine's, was
// made while the key was valid, and belongs to no other Machine. If several match, or if another
// Machine has the same hostname, it returns none of them: another cluster may have made a device
// from the same manifests at the same time. For the same reason it returns no device that is
// online; the machine's pod has some time to end.
func (e *external) unrecorded(ctx context.Context, mg *v1alpha1.Machine, issued time.Time) ([]string, error) {
	all, err := e.api.devices.Devices(ctx, tailscale.Current)
	if err != nil {
		return nil, errors.Wrap(err, "cannot list devices")
	}
	others, err := e.heldByOthers(ctx, mg)
	if err != nil {
		return nil, err
	}
	tags := wantedTags(e.tags, mg)
	first, last := issued.Add(-clockSkew), issued.Add(keyExpiry+clockSkew)
	var ids []string
	online := false
	for _, d := range all {
		if !strings.EqualFold(d.Hostname, mg.Spec.ForProvider.Hostname) || !slices.Equal(slices.Sorted(slices.Values(d.Tags)), tags) {
			continue
		}
		if others.devices[d.NodeID] || d.Created.Before(first) || d.Created.After(last) {
			continue
		}
		ids = append(ids, d.NodeID)
		online = online || d.ConnectedToControl
	}
	switch {
	case len(ids) == 0:
		return nil, nil
	case len(ids) > 1 || others.hostname:
		e.record.Event(mg, event.Warning(reasonDeviceUnclear, errors.Errorf("%d devices look like this machine's and none was deleted: %v", len(ids), ids)))
		return nil, nil
	case online && e.clock().Before(mg.GetDeletionTimestamp().Add(offlineGrace)):
		return nil, errors.Errorf("device %s looks like this machine's and is online; waiting for its pod to end", ids[0])
	case online:
		e.record.Event(mg, event.Warning(reasonDeviceUnclear, errors.Errorf("device %s looks like this machine's and was not deleted, for it is still online", ids[0])))
		return nil, nil
	}
	return ids, nil
}

// held describes what other Machines of this cluster have.
type held struct {
	devices  map[string]bool // By node ID.
	hostname bool            // One has the machine's hostname.
}

// heldByOthers returns the devices that other Machines have adopted, and those that their states
// name and that were not adopted yet.
func (e *external) heldByOthers(ctx context.Context, mg *v1alpha1.Machine) (held, error) {
	h := held{devices: map[string]bool{}}
	machines := &v1alpha1.MachineList{}
	if err := e.kube.List(ctx, machines, client.UnsafeDisableDeepCopy); err != nil {
		return h, errors.Wrap(err, "cannot list Machines")
	}
	for i := range machines.Items {
		o := &machines.Items[i]
		if o.GetUID() == mg.GetUID() {
			continue
		}
		h.devices[meta.NodeIDOf(o)] = true
		h.devices[o.Status.AtProvider.NodeID] = true
		h.hostname = h.hostname || strings.EqualFold(o.Spec.ForProvider.Hostname, mg.Spec.ForProvider.Hostname)
	}
	states := &corev1.SecretList{}
	if err := e.kube.List(ctx, states, client.MatchingLabels{meta.LabelSecretType: meta.SecretTypeState}, client.UnsafeDisableDeepCopy); err != nil {
		return h, errors.Wrap(err, "cannot list state Secrets")
	}
	for i := range states.Items {
		if s := &states.Items[i]; !metav1.IsControlledBy(s, mg) {
			h.devices[nodestate.NodeID(s.Data)] = true
		}
	}
	return h, nil
}
