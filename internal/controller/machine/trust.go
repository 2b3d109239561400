// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// A pod writes its state Secret and the status of its Machine, and may name any device of the
// tailnet there. The provider only acts on devices that it has verified to be the Machine's. It
// records them where pods cannot write: in an annotation of the Machine, of which a pod may only
// write the status. A verified device stays verified, even if an admin renames or retags it later.

// claimed returns the name of another Machine that a device belongs to, or "".
func (e *external) claimed(ctx context.Context, mg *v1alpha1.Machine, id string) (string, error) {
	l := &v1alpha1.MachineList{}
	if err := e.kube.List(ctx, l, client.UnsafeDisableDeepCopy); err != nil {
		return "", errors.Wrap(err, "cannot list Machines")
	}
	for i := range l.Items {
		if o := &l.Items[i]; o.GetUID() != mg.GetUID() && meta.NodeIDOf(o) == id {
			return o.GetNamespace() + "/" + o.GetName(), nil
		}
	}
	return "", nil
}

// strange returns why a device that a pod names does not count as its Machine's. It is empty if the
// device does or is verified already, and if there is no device to act on. issued is when a key
// was issued that the device can have used, or zero.
func (e *external) strange(ctx context.Context, mg *v1alpha1.Machine, d *tailscale.Device, r record, issued time.Time) (string, error) {
	if d == nil || d.NodeID == meta.NodeIDOf(mg) {
		return "", nil
	}
	if reason := mismatch(mg, d, r, issued, wantedTags(e.tags, mg)); reason != "" {
		return reason, nil
	}
	other, err := e.claimed(ctx, mg, d.NodeID)
	if err != nil || other == "" {
		return "", err
	}
	return "it is that of Machine " + other, nil
}

// mismatch returns how a device differs from one that logged in with the Machine's key. It is empty
// if there is no difference. issued is when a key was issued that the device can have used, or zero.
func mismatch(mg *v1alpha1.Machine, d *tailscale.Device, r record, issued time.Time, wanted []string) string {
	// The tags of the last key may be outdated.
	if !tagged(d, wanted) && !tagged(d, r.Key.Tags) {
		return fmt.Sprintf("it has the tags %v, and the machine's key gives it %v", d.Tags, wanted)
	}
	if !strings.EqualFold(d.Hostname, mg.Spec.ForProvider.Hostname) {
		return fmt.Sprintf("its hostname is %q, and the machine's %q", tailscale.OneLine(d.Hostname), mg.Spec.ForProvider.Hostname)
	}
	if issued.IsZero() {
		return fmt.Sprintf("no auth key was issued since the machine had the device %s", meta.NodeIDOf(mg))
	}
	if d.Created.Before(issued.Add(-clockSkew)) {
		return fmt.Sprintf("it has been there since %s, and the machine's key since %s", d.Created.UTC().Format(time.RFC3339), issued.UTC().Format(time.RFC3339))
	}
	return ""
}

// tagged reports whether a device has all the tags. Without tags it reports false.
func tagged(d *tailscale.Device, tags []string) bool {
	return len(tags) > 0 && !slices.ContainsFunc(tags, func(t string) bool { return !slices.Contains(d.Tags, t) })
}

// firstUse returns since when a device that a pod names can have used the machine's key. The first key
// is issued after the Machine is made. A device that replaces another one used the last key: without
// a record of that, the time is zero.
func firstUse(mg *v1alpha1.Machine, r record) time.Time {
	if meta.NodeIDOf(mg) == "" {
		return mg.GetCreationTimestamp().Time
	}
	return r.Key.Issued
}

// adopt records a device as the Machine's, permanently.
func (e *external) adopt(ctx context.Context, mg *v1alpha1.Machine, id, tailnet string) error {
	annotations := map[string]string{meta.AnnotationNodeID: id, meta.AnnotationClusterID: e.clusterID}
	if tailnet != "" {
		annotations[annotationTailnet] = tailnet
	}
	return errors.Wrapf(e.annotate(ctx, mg, meta.AnnotationNodeID, annotations), "cannot remember device %q", id)
}
