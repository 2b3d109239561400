// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package device holds the controller of Devices: nodes of the tailnet that the product does not
// run. The controller changes only fields that the object names; it never creates a device. Nodes
// that the product runs are Machines; see internal/controller/machine.
package device

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// ReasonConflict of Ready means that another, older object manages the device.
const ReasonConflict xpv2.ConditionReason = "Conflict"

// indexNodeID indexes Devices by their node ID.
const indexNodeID = "nodeID"

// An api is the part of a tailnet's client that this controller uses.
type api interface {
	attributesAPI

	Devices(ctx context.Context, staleness tailscale.Staleness) ([]tailscale.Device, error)
	Device(ctx context.Context, nodeID string) (*tailscale.Device, error)
	DeleteDevice(ctx context.Context, nodeID string) error
	SetDeviceTags(ctx context.Context, nodeID string, tags []string) error
	SetDeviceAuthorized(ctx context.Context, nodeID string, authorized bool) error
	SetDeviceKeyExpiryDisabled(ctx context.Context, nodeID string, disabled bool) error
	SetDeviceName(ctx context.Context, nodeID, label string) error
	EditDeviceRoutes(ctx context.Context, nodeID string, approve, withdraw []string) error
}

type external struct {
	kinds.NopDisconnect

	api        api
	kube       client.Client
	attributes *attributes
	clock      func() time.Time

	changes []change // The changes that Observe found for Update.
	own     []string // Keys of the attributes that the object owns from then on.

	ownRoutes []string // Approved routes that the object owns from then on.
}

// A change updates one part of a device.
type change struct {
	part  string
	apply func(ctx context.Context) error
}

// nodeID returns the node ID of the object's device, or "".
func nodeID(mg *v1alpha1.Device) string {
	if id := mg.Spec.ForProvider.NodeID; id != "" {
		return id
	}
	return xpmeta.GetExternalName(mg)
}

// Observe compares the device in the shared list with the spec. It reports a missing device as
// existing, because the controller cannot create devices, and waits for it.
func (e *external) Observe(ctx context.Context, mg *v1alpha1.Device) (managed.ExternalObservation, error) {
	rest := managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}
	id := nodeID(mg)
	if xpmeta.WasDeleted(mg) {
		exists, err := e.exists(ctx, mg, id)
		return managed.ExternalObservation{ResourceExists: exists, ResourceUpToDate: true}, err
	}
	if id == "" {
		mg.SetConditions(xpv2.Unavailable().WithMessage("Set spec.forProvider.nodeID, or the annotation " + xpmeta.AnnotationKeyExternalName + ", to the device's node ID"))
		return rest, nil
	}
	all, err := e.api.Devices(ctx, tailscale.Cached)
	if err != nil {
		return managed.ExternalObservation{}, errors.Wrap(err, "cannot list devices")
	}
	i := slices.IndexFunc(all, func(d tailscale.Device) bool { return d.NodeID == id })
	if i < 0 {
		mg.Status.AtProvider = v1alpha1.DeviceObservation{}
		mg.SetConditions(xpv2.Unavailable().WithMessage(fmt.Sprintf("The tailnet has no device with node ID %s; it is looked for again", id)))
		return rest, nil
	}
	d := all[i]
	report(mg, d)
	mg.SetConditions(ready(d, e.clock()))
	if observesOnly(mg) {
		return rest, e.observeAttributes(ctx, mg)
	}
	older, err := e.older(ctx, mg, id)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if older != "" {
		mg.SetConditions(conflict(older))
		return rest, nil
	}
	if err := e.observeAttributes(ctx, mg); err != nil {
		return managed.ExternalObservation{}, err
	}
	e.changes = append(e.diff(mg, d), e.attributeChanges(mg)...)
	var parts []string
	for _, c := range e.changes {
		parts = append(parts, c.part)
	}
	upToDate := len(e.changes) == 0 && slices.Equal(e.own, recorded(mg, annotationAttributes)) && slices.Equal(e.ownRoutes, recorded(mg, annotationRoutes))
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: upToDate, Diff: strings.Join(parts, ", ")}, nil
}

// diff returns the changes of a device to match the fields that are set.
func (e *external) diff(mg *v1alpha1.Device, d tailscale.Device) []change {
	p, id := mg.Spec.ForProvider, d.NodeID
	var out []change
	if p.Authorized != nil && *p.Authorized != d.Authorized {
		out = append(out, change{part: "authorized", apply: func(ctx context.Context) error { return e.api.SetDeviceAuthorized(ctx, id, *p.Authorized) }})
	}
	if tags := plain(p.Tags); len(tags) > 0 && !slices.Equal(tags, plain(d.Tags)) {
		out = append(out, change{part: "tags", apply: func(ctx context.Context) error { return e.api.SetDeviceTags(ctx, id, tags) }})
	}
	if p.KeyExpiryDisabled != nil && *p.KeyExpiryDisabled != d.KeyExpiryDisabled {
		out = append(out, change{part: "keyExpiryDisabled", apply: func(ctx context.Context) error {
			return e.api.SetDeviceKeyExpiryDisabled(ctx, id, *p.KeyExpiryDisabled)
		}})
	}
	if label, _, _ := strings.Cut(d.Name, "."); p.Name != nil && *p.Name != label {
		out = append(out, change{part: "name", apply: func(ctx context.Context) error { return e.api.SetDeviceName(ctx, id, *p.Name) }})
	}
	return append(out, e.routeChanges(mg, d)...)
}

// Create does nothing. It is never called, because Observe reports every device as existing.
func (e *external) Create(context.Context, *v1alpha1.Device) (managed.ExternalCreation, error) {
	return managed.ExternalCreation{}, errors.New("devices join a tailnet by themselves and cannot be created")
}

// Update makes the changes that Observe found. It continues after a change fails.
func (e *external) Update(ctx context.Context, mg *v1alpha1.Device) (managed.ExternalUpdate, error) {
	if err := kinds.Annotate(ctx, e.kube, mg, annotationAttributes, strings.Join(e.own, ",")); err != nil {
		return managed.ExternalUpdate{}, errors.Wrap(err, "cannot record which attributes are set")
	}
	if err := kinds.Annotate(ctx, e.kube, mg, annotationRoutes, strings.Join(e.ownRoutes, ",")); err != nil {
		return managed.ExternalUpdate{}, errors.Wrap(err, "cannot record which routes are approved")
	}
	var errs []error
	for _, c := range e.changes {
		errs = append(errs, errors.Wrapf(c.apply(ctx), "cannot set %s", c.part))
	}
	return managed.ExternalUpdate{}, errors.Join(errs...)
}

// Delete removes the device from the tailnet. Observe has checked the deletion policy.
func (e *external) Delete(ctx context.Context, mg *v1alpha1.Device) (managed.ExternalDelete, error) {
	mg.SetConditions(xpv2.Deleting())
	return managed.ExternalDelete{}, errors.Wrapf(e.api.DeleteDevice(ctx, nodeID(mg)), "cannot delete device %q", nodeID(mg))
}

// exists reports whether there is a device to delete together with the object.
func (e *external) exists(ctx context.Context, mg *v1alpha1.Device, id string) (bool, error) {
	if leavesDevice(mg) {
		return false, nil
	}
	// An object that did not manage the device must not delete it.
	if older, err := e.older(ctx, mg, id); err != nil || older != "" {
		return false, err
	}
	_, err := e.api.Device(ctx, id)
	if tailscale.IsNotFound(err) {
		return false, nil
	}
	return err == nil, errors.Wrap(err, "cannot get device")
}

// leavesDevice reports whether the deletion of an object leaves the tailnet unchanged: because of
// its deletion policy, or because it never had a device.
func leavesDevice(mg *v1alpha1.Device) bool {
	return mg.Spec.ForProvider.DeletionPolicy != v1alpha1.DeviceDelete || mg.Status.AtProvider.NodeID == ""
}

// older returns the oldest other object that manages the same device, if it is older than mg, as
// NAMESPACE/NAME, or "".
func (e *external) older(ctx context.Context, mg *v1alpha1.Device, id string) (string, error) {
	l := &v1alpha1.DeviceList{}
	if err := e.kube.List(ctx, l, client.MatchingFields{indexNodeID: id}); err != nil {
		return "", errors.Wrap(err, "cannot list Devices")
	}
	first := mg
	for i := range l.Items {
		o := &l.Items[i]
		if o.GetUID() == mg.GetUID() || xpmeta.WasDeleted(o) || observesOnly(o) {
			continue
		}
		if compareAge(o, first) < 0 {
			first = o
		}
	}
	if first == mg {
		return "", nil
	}
	return first.GetNamespace() + "/" + first.GetName(), nil
}

// compareAge compares objects by their creation time, and then by a value that does not change.
func compareAge(a, b *v1alpha1.Device) int {
	return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), cmp.Compare(a.GetUID(), b.GetUID()))
}

// observesOnly reports whether an object must neither change nor delete the device.
func observesOnly(mg *v1alpha1.Device) bool {
	return !updates(mg) && !slices.Contains(mg.GetManagementPolicies(), xpv2.ManagementActionDelete)
}

// updates reports whether an object may change the device.
func updates(mg *v1alpha1.Device) bool {
	p := mg.GetManagementPolicies()
	return len(p) == 0 || slices.Contains(p, xpv2.ManagementActionAll) || slices.Contains(p, xpv2.ManagementActionUpdate)
}

// report sets the status, except for the attributes, which lists do not include.
func report(mg *v1alpha1.Device, d tailscale.Device) {
	o := v1alpha1.DeviceObservation{
		NodeID:            d.NodeID,
		Name:              d.Name,
		Hostname:          d.Hostname,
		User:              d.User,
		OS:                d.OS,
		Addresses:         slices.Clone(d.Addresses),
		Tags:              plain(d.Tags),
		Online:            &d.ConnectedToControl,
		Authorized:        &d.Authorized,
		KeyExpiryDisabled: &d.KeyExpiryDisabled,
		ClientVersion:     d.ClientVersion,
		UpdateAvailable:   &d.UpdateAvailable,
		AdvertisedRoutes:  plain(d.AdvertisedRoutes),
		EnabledRoutes:     plain(d.EnabledRoutes),
		PostureAttributes: mg.Status.AtProvider.PostureAttributes,
	}
	if !d.ConnectedToControl && d.LastSeen != nil && !d.LastSeen.IsZero() {
		o.LastSeen = seconds(d.LastSeen.Time)
	}
	if !d.KeyExpiryDisabled && !d.Expires.IsZero() {
		o.Expires = seconds(d.Expires.Time)
	}
	mg.Status.AtProvider = o
}

func seconds(t time.Time) *metav1.Time { return &metav1.Time{Time: t.UTC().Truncate(time.Second)} }

func ready(d tailscale.Device, at time.Time) xpv2.Condition {
	if !d.KeyExpiryDisabled && !d.Expires.IsZero() && d.Expires.Before(at) {
		return xpv2.Unavailable().WithMessage("The device's node key has expired; log the device in again")
	}
	if message := tailscale.LockedOut(d); message != "" {
		c := xpv2.Unavailable().WithMessage(message)
		c.Reason = meta.ReasonTailnetLocked
		return c
	}
	return xpv2.Available()
}

func conflict(older string) xpv2.Condition {
	c := xpv2.Unavailable().WithMessage("Device " + older + " manages the same node and is older; nothing is changed for this one, delete either")
	c.Reason = ReasonConflict
	return c
}

// plain returns a sorted copy without duplicates, nil if it is empty.
func plain[S ~string](values []S) []string {
	var out []string
	for _, s := range values {
		out = append(out, string(s))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
