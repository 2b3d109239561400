// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// toPreapprove returns our machines that lack the approval as hosts of a service and do not
// advertise it yet. A host may need the approval first: control grants the certificate domain of a
// service only to its hosts, and an agent advertises a service once it has the certificate. The API
// is asked once for each machine.
func (e *external) toPreapprove(ctx context.Context, mg *v1alpha1.VIPService, uid types.UID, service string, ids []string, devices []tailscale.Device) ([]string, error) {
	if !mayApprove(mg.Spec.ForProvider) {
		return nil, nil
	}
	byID := pick(devices, ids)
	var out []string
	for _, id := range ids {
		if !hasTag(mg.Spec.ForProvider.HostTags, byID[id]) || e.hosts.isPreapproved(uid, id) {
			continue
		}
		a, err := e.api.services.HostApproval(ctx, service, id)
		if unanswered(err) {
			return nil, errors.Wrapf(err, "cannot get the approval of device %q as a host", id)
		}
		if a.Approved || a.AutoApproved {
			e.hosts.preapproved(uid, id)
			continue
		}
		out = append(out, id)
	}
	return out, nil
}

// preapproveMachines approves machines as hosts of a service before they advertise it. A refusal is
// ignored here: the device may be no host yet, or an autoApprover may make the approval
// unnecessary. It becomes an error once the machine is a host and waits.
func (e *external) preapproveMachines(ctx context.Context, mg *v1alpha1.VIPService, uid types.UID, service string, ids []string) error {
	for _, id := range ids {
		ok, err := e.api.services.ApproveHost(ctx, service, id)
		if unanswered(err) {
			return errors.Wrapf(err, "cannot approve device %q as a host", id)
		}
		if err == nil && ok {
			e.record.Event(mg, event.Normal(reasonHostApproved, fmt.Sprintf("Approved device %s as a host of %s", id, service)))
		}
		e.hosts.preapproved(uid, id)
	}
	return nil
}

// unanswered reports whether an error leaves open what the API would have answered.
func unanswered(err error) bool {
	switch tailscale.ClassOf(err) {
	case tailscale.ClassUnavailable, tailscale.ClassRateLimited, tailscale.ClassUnauthorized, tailscale.ClassTailnetNotFound:
		return true
	default:
		return false
	}
}

// missing returns the node IDs that a list of devices lacks.
func missing(ids []string, devices []tailscale.Device) []string {
	byID := pick(devices, ids)
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		_, ok := byID[id]
		return ok
	})
}

func hasTag(tags []v1alpha1.Tag, d tailscale.Device) bool {
	return slices.ContainsFunc(d.Tags, func(t string) bool { return slices.Contains(tags, v1alpha1.Tag(t)) })
}

// deviceName returns the name of a device, or the node ID if the name is not known.
func deviceName(devices []tailscale.Device, id string) string {
	return cmp.Or(pick(devices, []string{id})[id].Name, id)
}

// observeTags sets a condition that names the machines that cannot host the service because they
// have none of its tags. Whether Tailscale requires a common tag is not documented (the Ansible
// collection abn.tailscale says so), so a machine that control accepted is fine.
func observeTags(mg *v1alpha1.VIPService, rs reports, devices []tailscale.Device) {
	tags := mg.Spec.ForProvider.Tags
	var differ []string
	for i := range devices {
		d := &devices[i]
		r, ours := rs[d.NodeID]
		if ours && r.notAccepted() && len(tags) > 0 && !hasTag(tags, *d) {
			differ = append(differ, fmt.Sprintf("%s (%s)", d.Name, strings.Join(tailscale.Sorted(d.Tags), ", ")))
		}
	}
	if len(differ) == 0 {
		if mg.GetCondition(meta.TypeHostTagsMatch).Status == corev1.ConditionFalse {
			mg.SetConditions(xpv2.Condition{Type: meta.TypeHostTagsMatch, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(), Reason: meta.ReasonHostTagsMatch})
		}
		return
	}
	slices.Sort(differ)
	mg.SetConditions(xpv2.Condition{
		Type: meta.TypeHostTagsMatch, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now(), Reason: meta.ReasonHostTagsDiffer,
		Message: fmt.Sprintf("Tailscale has not accepted machines that have none of the tags of the service (%s): %s; give the service a tag of the machines, or the machines a tag of the service",
			strings.Join(tailscale.Sorted(tags), ", "), strings.Join(differ[:min(len(differ), maxShownHosts)], ", ")),
	})
}

// maxShownHosts is the maximum number of machines in a condition.
const maxShownHosts = 3
