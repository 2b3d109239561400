// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
	"github.com/tailscale-gateway/tailscale-gateway/internal/text"
)

// reports are the agents' reports about a service, by node ID: whether they advertise it, and
// whether control accepted them.
type reports map[string]report

type report struct {
	Advertised bool
	Accepted   bool

	// Routed reports whether the machine sees a primary host, and PrimarySeen whether it was one.
	Routed      v1alpha1.Routing
	PrimarySeen bool

	// Unknown reports that the machine does not know whether control accepted it.
	Unknown bool

	// Readvertised is how often the agent has withdrawn the service and advertised it again.
	Readvertised int32

	// Healthy is the number of healthy backends, Total the number of all.
	Healthy, Total int32

	// Ports are the ports that the machine serves, if the agent reports them, and Unhealthy those
	// whose backend does not answer.
	Ports, Unhealthy []string

	// Machine is the machine's name, and Endpoints that of the TailscaleEndpoints to which it
	// belongs.
	Machine, Endpoints string

	// Reason and Message describe the problem of the certificate. They are empty if there is none.
	Reason, Message string
}

// certificate returns a condition with the problem of the certificate, or nil if there is none.
func (c reports) certificate() *xpv2.Condition {
	var out *xpv2.Condition
	for _, id := range slices.Sorted(maps.Keys(c)) {
		r := c[id]
		if r.Reason == "" || out != nil && cmp.Or(cmp.Compare(out.Reason, xpv2.ConditionReason(r.Reason)), cmp.Compare(out.Message, r.Message)) <= 0 {
			continue
		}
		out = &xpv2.Condition{Type: meta.TypeCertificateReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now(), Reason: xpv2.ConditionReason(r.Reason), Message: r.Message}
	}
	return out
}

// notAccepted reports whether control is known not to have accepted a machine that advertises.
func (c report) notAccepted() bool { return c.Advertised && !c.Accepted && !c.Unknown }

// settled reports whether the hosts match the agents' reports. A machine that does not advertise may
// be listed, in any state: Tailscale lists hosts that were approved before, that have withdrawn, and
// that are set up in part (tailscale/tailscale#17769, #17692, #17794).
func (c reports) settled(hosts []tailscale.Host) bool {
	byID := map[string]tailscale.Host{}
	for _, h := range hosts {
		byID[h.NodeID] = h
	}
	for id, r := range c {
		h, ok := byID[id]
		if r.Advertised && (!ok || r.notAccepted() || !c.configured(h) || !h.Approved()) {
			return false
		}
	}
	return true
}

// configured reports whether a host serves everything that the service defines. The API has only
// one state with a known meaning. For a machine of ours its agent knows more: it advertises the
// service once it serves it, and an approved host answers once control has given it the addresses,
// which may be later than the approval (tailscale/tailscale#18821). Control's acceptance of the
// machine alone does not show that it serves. Where the acceptance is unknown, the approval counts.
func (c reports) configured(h tailscale.Host) bool {
	r, ours := c[h.NodeID]
	if !ours {
		return h.Ready()
	}
	if h.Approved() {
		return r.Advertised && !r.notAccepted()
	}
	return r.Advertised && h.Ready()
}

// unlisted returns the node IDs of the machines that should host a service and are not listed as
// hosts yet.
func (c reports) unlisted(hosts []tailscale.Host) []string {
	out := maps.Clone(c)
	for _, h := range hosts {
		delete(out, h.NodeID)
	}
	maps.DeleteFunc(out, func(_ string, r report) bool { return r.Accepted })
	return slices.Sorted(maps.Keys(out))
}

// unseen reports whether the agent of a host offers the service while a list of devices does not
// show the host as online.
func unseen(c reports, hosts []tailscale.Host, devices []tailscale.Device) bool {
	byID := pick(devices, nodeIDs(hosts))
	return slices.ContainsFunc(hosts, func(h tailscale.Host) bool {
		return c[h.NodeID].Advertised && !byID[h.NodeID].ConnectedToControl
	})
}

// agentReports returns the machines' reports about a service.
func agentReports(machines []v1alpha1.Machine, service string) reports {
	out := reports{}
	for _, m := range machines {
		// A pod writes its machine's status, so the node ID in the status is not trusted.
		id := meta.NodeIDOf(&m)
		if m.Status.Agent == nil || id == "" {
			continue
		}
		for _, s := range m.Status.Agent.Services {
			if s.Name == service {
				r := report{
					Advertised: s.Advertised, Accepted: s.Accepted, Unknown: !s.Accepted && m.Status.Agent.AcceptanceUnknown,
					Routed: s.Routed, PrimarySeen: m.Status.Agent.PrimaryRoutesSeen, Readvertised: s.Readvertisements,
					Healthy: s.HealthyBackends, Total: s.TotalBackends,
					Ports: s.Ports, Unhealthy: s.UnhealthyPorts, Machine: m.GetName(), Endpoints: m.GetLabels()[meta.LabelEndpoints],
				}
				if s.Reason != "" {
					r.Reason, r.Message = s.Reason, s.Message
				}
				out[id] = r
			}
		}
	}
	return out
}

// observeHosts sets the hosts in the status, and records which of them Update must approve. If the
// API is not asked for the hosts now, they come from the status.
func (e *external) observeHosts(ctx context.Context, mg *v1alpha1.VIPService) error {
	name := string(mg.Spec.ForProvider.Name)
	rs, err := e.reports(ctx, mg.GetNamespace(), name)
	if err != nil {
		return errors.Wrap(err, "cannot list machines")
	}
	e.hosts.keep(mg.GetUID(), rs)
	observeCertificate(mg, rs)
	previous := mg.Status.AtProvider.Hosts
	e.reported = rs
	e.fresh = !slices.ContainsFunc(previous, func(h v1alpha1.ServiceHost) bool { return h.Configured })
	hosts, staleness := remembered(previous), tailscale.Cached
	due := e.hosts.due(mg.GetUID(), rs, hosts)
	if due {
		if hosts, err = e.api.services.Hosts(ctx, name); err != nil {
			e.hosts.failed(mg.GetUID())
			return errors.Wrap(err, "cannot list hosts of the service")
		}
		e.hosts.asked(mg.GetUID(), rs, hosts)
		if !rs.settled(hosts) {
			staleness = tailscale.Recent
		}
	}
	devices, _, err := e.api.devices.DevicesAt(ctx, staleness)
	if err != nil {
		return errors.Wrap(err, "cannot list devices")
	}
	// An older list lacks a host that has just joined.
	if due && unseen(rs, hosts, devices) || e.hosts.newcomer(mg.GetUID(), missing(rs.unlisted(hosts), devices)) {
		if devices, _, err = e.api.devices.DevicesAt(ctx, tailscale.Recent); err != nil {
			return errors.Wrap(err, "cannot list devices")
		}
	}
	mg.Status.AtProvider.Hosts = serviceHosts(hosts, devices, rs, e.peers, e.fenced)
	for _, ev := range transitions(previous, mg.Status.AtProvider.Hosts) {
		e.record.Event(mg, ev)
	}
	for _, id := range e.hosts.readvertised(mg.GetUID(), rs) {
		e.record.Event(mg, event.Warning(reasonReadvertised, errors.Errorf(
			"device %s advertised %s again, because Tailscale had not accepted it for %s; approve the device as a host if that goes on", deviceName(devices, id), name, name)))
	}
	e.approve = e.unfenced(toApprove(mg.Spec.ForProvider, rs, hosts, devices))
	if e.preapprove, err = e.toPreapprove(ctx, mg, mg.GetUID(), name, e.unfenced(rs.unlisted(hosts)), devices); err != nil {
		return err
	}
	observeTags(mg, rs, devices)
	if len(e.approve) == 0 && len(e.preapprove) == 0 && len(e.approveOwn) == 0 && mg.GetCondition(meta.TypeApproved).Status == corev1.ConditionFalse {
		mg.SetConditions(xpv2.Condition{Type: meta.TypeApproved, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(), Reason: meta.ReasonHostsApproved})
	}
	return nil
}

// observeCertificate sets the condition of the certificate that hosts need: its problem, or that
// the problem is gone.
func observeCertificate(mg *v1alpha1.VIPService, rs reports) {
	if c := rs.certificate(); c != nil {
		mg.SetConditions(*c)
		return
	}
	if mg.GetCondition(meta.TypeCertificateReady).Status == corev1.ConditionFalse {
		mg.SetConditions(xpv2.Condition{Type: meta.TypeCertificateReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(), Reason: meta.ReasonCertificateReady})
	}
}

// remembered returns the hosts of a status.
func remembered(hosts []v1alpha1.ServiceHost) []tailscale.Host {
	out := make([]tailscale.Host, len(hosts))
	for i, h := range hosts {
		out[i] = tailscale.Host{NodeID: h.NodeID, State: h.State, Approval: h.Approval}
	}
	return out
}

// serviceHosts merges hosts with the facts about their devices, the reports of our agents and the
// records of other clusters, and sorts them by name.
func serviceHosts(hosts []tailscale.Host, devices []tailscale.Device, rs reports, others peerHealth, fenced map[string]bool) []v1alpha1.ServiceHost {
	byID := pick(devices, nodeIDs(hosts))
	var out []v1alpha1.ServiceHost
	for _, h := range hosts {
		d := byID[h.NodeID]
		r, local := rs[h.NodeID]
		if local && !r.Advertised {
			// Tailscale may list machines that were approved before, or that have withdrawn.
			continue
		}
		out = append(out, v1alpha1.ServiceHost{
			NodeID:     h.NodeID,
			Name:       d.Name,
			Endpoints:  r.Endpoints,
			Local:      local,
			Online:     d.ConnectedToControl,
			Configured: others.configured(h, rs.configured(h)),
			State:      h.State,
			Approval:   h.Approval,
			Fenced:     fenced[h.NodeID],
		})
	}
	slices.SortFunc(out, func(a, b v1alpha1.ServiceHost) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.NodeID, b.NodeID))
	})
	return out
}

// toApprove returns the hosts that wait for an approval that the object may give: its machines that
// have one of its host tags. A tag alone is not enough, because machines of other tenants may have
// it as well.
func toApprove(p v1alpha1.VIPServiceParameters, rs reports, hosts []tailscale.Host, devices []tailscale.Device) []string {
	if !mayApprove(p) {
		return nil
	}
	byID := pick(devices, nodeIDs(hosts))
	var out []string
	for _, h := range hosts {
		if _, ours := rs[h.NodeID]; ours && hasTag(p.HostTags, byID[h.NodeID]) && !h.Approved() {
			out = append(out, h.NodeID)
		}
	}
	return out
}

// mayApprove reports whether an object may approve hosts at all.
func mayApprove(p v1alpha1.VIPServiceParameters) bool {
	return (p.AutoApprove == nil || *p.AutoApprove) && len(p.HostTags) > 0
}

// pick returns, by node ID, the devices that have one of the node IDs. A tailnet may have ten
// thousand devices and a service a few hosts, so it copies no other devices.
func pick(devices []tailscale.Device, ids []string) map[string]tailscale.Device {
	wanted := make(map[string]bool, len(ids))
	for _, id := range ids {
		wanted[id] = true
	}
	out := make(map[string]tailscale.Device, len(ids))
	for i := range devices {
		if d := &devices[i]; wanted[d.NodeID] {
			out[d.NodeID] = *d
		}
	}
	return out
}

func nodeIDs(hosts []tailscale.Host) []string {
	out := make([]string, len(hosts))
	for i, h := range hosts {
		out[i] = h.NodeID
	}
	return out
}

// approveHosts approves the hosts that were waiting in Observe, and the machines that should become
// hosts.
func (e *external) approveHosts(ctx context.Context, mg *v1alpha1.VIPService) error {
	if err := e.preapproveMachines(ctx, mg, mg.GetUID(), string(mg.Spec.ForProvider.Name), e.preapprove); err != nil {
		return err
	}
	for _, id := range e.approve {
		if err := e.approveHost(ctx, mg, string(mg.Spec.ForProvider.Name), id); err != nil {
			return err
		}
		// The next observation would set the same state some seconds later.
		for i := range mg.Status.AtProvider.Hosts {
			if h := &mg.Status.AtProvider.Hosts[i]; h.NodeID == id {
				h.Approval = approvedByUs
			}
		}
	}
	return nil
}

// approveHost approves one host of a service.
func (e *external) approveHost(ctx context.Context, mg *v1alpha1.VIPService, service, id string) error {
	ok, err := e.api.services.ApproveHost(ctx, service, id)
	if forbidden := tailscale.ClassOf(err) == tailscale.ClassForbidden || tailscale.ClassOf(err) == tailscale.ClassInvalid; forbidden || err == nil && !ok {
		c := approvalForbidden(service, mg.Spec.ForProvider.HostTags)
		mg.SetConditions(c)
		return errors.Errorf("device %q may not host the service: %s", id, c.Message)
	}
	if err != nil {
		return errors.Wrapf(err, "cannot approve device %q as a host", id)
	}
	e.record.Event(mg, event.Normal(reasonHostApproved, fmt.Sprintf("Approved device %s as a host of %s", id, service)))
	return nil
}

// approvalForbidden returns the condition that describes the required entry in the policy file when
// Tailscale forbids the approval of hosts.
func approvalForbidden(service string, tags []v1alpha1.Tag) xpv2.Condition {
	return xpv2.Condition{
		Type: meta.TypeApproved, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now(), Reason: meta.ReasonApprovalForbidden,
		Message: fmt.Sprintf("Tailscale does not let the provider approve hosts of %s; give its credential the scopes services and devices:core, or add to the policy file: \"autoApprovers\": {\"services\": {%q: [%s]}}",
			service, service, text.QuotedList(tags)),
	}
}

// transitions returns events for hosts that went online or offline.
func transitions(old, updated []v1alpha1.ServiceHost) []event.Event {
	previous := map[string]bool{}
	for _, h := range old {
		previous[h.NodeID] = h.Online
	}
	var out []event.Event
	for _, h := range updated {
		online, ok := previous[h.NodeID]
		switch {
		case h.Online && !online:
			out = append(out, event.Normal(reasonHostOnline, "Device "+h.Name+" is online"))
		case !h.Online && ok && online:
			out = append(out, event.Warning(reasonHostOffline, errors.Errorf("device %s went offline", h.Name)))
		}
	}
	return out
}
