// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// A client uses one host of a service for all ports. If the backend of one port does not answer at a
// host, and another host serves all ports, the first one is better withdrawn. If none does, the host
// stays for the ports that work. Only a host that is known to serve all ports counts.

const (
	// withdrawFor is how long a withdrawal lasts that is not renewed, and renewBefore is how long
	// before its end it is renewed.
	withdrawFor = 10 * time.Minute
	renewBefore = 5 * time.Minute

	// elsewhereAfter is how long a port must not answer before a host of another cluster counts. The
	// record of that cluster and the list with it are each up to a minute old: if the port died in both
	// clusters at once, neither may withdraw because of what the other wrote before.
	elsewhereAfter = 3 * time.Minute
)

// A withdrawal is a change of what an agent is to do about a service with a port that does not
// answer.
type withdrawal struct {
	machine v1alpha1.Machine

	// drain reports that the service drains, and not that a port does not answer.
	drain bool

	// end is the end of the withdrawal. Zero ends it at once. renewal reports that it only goes on.
	end     time.Time
	renewal bool
}

// partial returns the node IDs of the machines at which some backends answer and others do not.
func (c reports) partial(o v1alpha1.VIPServiceObservation) []string {
	offline := offlineHosts(o.Hosts)
	var out []string
	for id, r := range c {
		if r.Healthy > 0 && len(r.Unhealthy) > 0 && !offline(id) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// whole returns the node IDs of this cluster's hosts that are known to serve all ports, each with a
// backend that answers.
func (c reports) whole(o v1alpha1.VIPServiceObservation) []string {
	var out []string
	for _, h := range o.Hosts {
		r, ok := c[h.NodeID]
		if ok && h.Online && !h.Fenced && h.Configured && r.Advertised && r.Accepted && r.Total > 0 && r.Healthy == r.Total && r.serves(o.Ports) {
			out = append(out, h.NodeID)
		}
	}
	return out
}

// whole reports whether a host of another cluster is known to serve all ports: all hosts of that
// cluster do, and one of them is connected.
func (p peerHealth) whole(hosts []v1alpha1.ServiceHost) bool {
	return slices.ContainsFunc(hosts, func(h v1alpha1.ServiceHost) bool {
		health := p[h.NodeID]
		return !h.Local && h.Online && !h.Fenced && h.Configured && h.Approval != notApproved && health.Whole > 0 && health.Whole >= health.Ready
	})
}

// observePorts sets the condition PortsHealthy, and records which hosts Update must withdraw or
// have serve again.
func (e *external) observePorts(ctx context.Context, mg *v1alpha1.VIPService) error {
	o := mg.Status.AtProvider
	partial := e.reported.partial(o)
	local, elsewhere := len(e.reported.whole(o)) > 0, e.peers.whole(o.Hosts)
	at := e.hosts.clock.Now()
	lasting := e.ports.partialFor(mg.GetUID(), len(partial) > 0, at) >= elsewhereAfter
	var dead []string
	if !local && !elsewhere {
		for _, id := range partial {
			dead = append(dead, e.reported[id].Unhealthy...)
		}
	}
	if c := portsCondition(mg.GetCondition(meta.TypePortsHealthy), o.Name, tailscale.Sorted(dead), e.missing); c != nil {
		mg.SetConditions(*c)
	}
	if len(partial) == 0 || observeOnly(mg) || mg.Spec.ForProvider.Drain {
		// A service that drains is withdrawn for another reason, see observeDrain.
		return nil
	}
	machines, err := e.pods.machines(ctx, mg.GetNamespace())
	if err != nil {
		return errors.Wrap(err, "cannot list machines")
	}
	for _, id := range partial {
		i := slices.IndexFunc(machines, func(m v1alpha1.Machine) bool { return meta.NodeIDOf(&m) == id })
		if i < 0 {
			continue
		}
		end, err := e.pods.withdrawnUntil(ctx, &machines[i], o.Name)
		if err != nil {
			return errors.Wrapf(err, "cannot learn what machine %q has withdrawn", machines[i].GetName())
		}
		// A withdrawal goes on, also after a restart of the provider.
		whole := local || elsewhere && (lasting || at.Before(end))
		switch {
		case whole && end.Before(at.Add(renewBefore)):
			e.withdraw = append(e.withdraw, withdrawal{machine: machines[i], end: at.Add(withdrawFor), renewal: at.Before(end)})
		case !whole && at.Before(end):
			e.withdraw = append(e.withdraw, withdrawal{machine: machines[i]})
		}
	}
	return nil
}

// portsCondition returns the condition PortsHealthy, or nil to keep it as it is. dead are the ports
// whose backend does not answer although no host serves all ports, sorted.
func portsCondition(previous xpv2.Condition, service string, dead []string, missing *missingPort) *xpv2.Condition {
	c := xpv2.Condition{Type: meta.TypePortsHealthy, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now()}
	switch {
	case len(dead) > 0:
		c.Reason = meta.ReasonPortUnhealthy
		c.Message = fmt.Sprintf("The backend of %s does not answer, and no host of %s is known to serve all ports; clients reach the other ports", strings.Join(slices.Compact(dead), ", "), service)
	case missing != nil:
		c.Reason, c.Message = meta.ReasonPortNotServed, missing.message(service)
	case previous.Status == corev1.ConditionFalse:
		c.Status, c.Reason = corev1.ConditionTrue, meta.ReasonPortsHealthy
	default:
		return nil
	}
	return &c
}

// withdrawHosts makes the changes that Observe has found necessary.
func (e *external) withdrawHosts(ctx context.Context, mg *v1alpha1.VIPService) error {
	name := string(mg.Spec.ForProvider.Name)
	for _, w := range e.withdraw {
		if err := e.pods.withdraw(ctx, &w.machine, name, w.end); err != nil {
			return errors.Wrapf(err, "cannot withdraw service from machine %q", w.machine.GetName())
		}
		switch {
		case w.drain && w.end.IsZero():
			e.record.Event(mg, event.Normal(reasonServingAgain, "Machine "+w.machine.GetName()+" advertises "+name+" again, although it drains: no other cluster is known to serve all ports"))
		case w.drain && !w.renewal:
			e.record.Event(mg, event.Normal(reasonWithdrawn, "Machine "+w.machine.GetName()+" withdraws "+name+", which drains, because another cluster serves it"))
		case w.drain:
		case w.end.IsZero():
			e.record.Event(mg, event.Normal(reasonServingAgain, "Machine "+w.machine.GetName()+" advertises "+name+" again: no other host serves all ports"))
		case !w.renewal:
			e.record.Event(mg, event.Warning(reasonWithdrawn, errors.Errorf("machine %s withdraws %s, because the backend of a port does not answer there and another host serves all ports", w.machine.GetName(), name)))
		}
	}
	return nil
}

// secret returns a machine's config Secret.
func (p kubePods) secret(ctx context.Context, m *v1alpha1.Machine) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	if err := p.kube.Get(ctx, types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName() + meta.ConfigSecretSuffix}, s); err != nil {
		return nil, errors.Wrap(err, "cannot get config Secret")
	}
	if !metav1.IsControlledBy(s, m) {
		return nil, errors.Errorf("Secret %q is not the Machine's", s.GetName())
	}
	return s, nil
}

func (p kubePods) withdrawnUntil(ctx context.Context, m *v1alpha1.Machine, service string) (time.Time, error) {
	s, err := p.secret(ctx, m)
	if err != nil {
		return time.Time{}, err
	}
	end, err := time.Parse(time.RFC3339, s.GetAnnotations()[meta.AnnotationWithdraw(service)])
	if err != nil {
		// The agent ignores a time that it cannot parse, too.
		return time.Time{}, nil //nolint:nilerr // See above.
	}
	return end, nil
}

func (p kubePods) withdraw(ctx context.Context, m *v1alpha1.Machine, service string, end time.Time) error {
	s, err := p.secret(ctx, m)
	if err != nil {
		return err
	}
	original := s.DeepCopy()
	if end.IsZero() {
		delete(s.Annotations, meta.AnnotationWithdraw(service))
	} else {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, meta.AnnotationWithdraw(service), end.UTC().Format(time.RFC3339))
	}
	return errors.Wrap(p.kube.Patch(ctx, s, client.MergeFrom(original)), "cannot annotate config Secret")
}
