// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
)

const (
	// afterAdvertise is how long the provider waits for the effect of an advertisement: the service
	// is withdrawn for five seconds, or for at most 30 on a busy machine, and its agent then watches for a minute.
	afterAdvertise = 90 * time.Second

	// remedyTurn is the time of one cluster in which only its machines act on a shared service.
	// The remedies of a cluster take about six minutes.
	remedyTurn = 7 * time.Minute

	// remedyPause is how long after the last remedy the provider begins with the first one again.
	remedyPause = 10 * time.Minute

	// restartAgain is the least time between two restarts for one service.
	restartAgain = time.Hour

	// remedyValid is how long an agent may begin an action. An agent whose tailscaled has just
	// reconnected is not certain for a minute that the service has no primary host.
	remedyValid = 80 * time.Second

	// pollUnrouted is the poll interval of a service without a primary host.
	pollUnrouted = 10 * time.Second
)

// pods is what the controller needs of the cluster to act on services without a primary host.
type pods interface {
	// primarySeen reports whether a VIPService of the namespace and the tailnet records that one
	// of its machines was primary.
	primarySeen(ctx context.Context, mg *v1alpha1.VIPService) (bool, error)

	// machines returns the machines of a namespace.
	machines(ctx context.Context, namespace string) ([]v1alpha1.Machine, error)

	// request requests an action of a machine's agent.
	request(ctx context.Context, m *v1alpha1.Machine, r meta.Remedy) error

	// withdrawnUntil returns until when a machine does not advertise a service while a port of it
	// does not answer, and withdraw sets that time. It is zero for a machine that does.
	withdrawnUntil(ctx context.Context, m *v1alpha1.Machine, service string) (time.Time, error)
	withdraw(ctx context.Context, m *v1alpha1.Machine, service string, end time.Time) error
}

// observeRemedy records what Update must do about a service without a primary host.
func (e *external) observeRemedy(ctx context.Context, mg *v1alpha1.VIPService, others []registry.Member) error {
	o := mg.Status.AtProvider
	start := mg.GetCondition(meta.TypeRouted).LastTransitionTime.Time
	at := e.hosts.clock.Now()
	if !remedyDue(o.RoutingRemedy, start, turnOf(e.clusterID, others), at) {
		return nil
	}
	machines, err := e.pods.machines(ctx, mg.GetNamespace())
	if err != nil {
		return errors.Wrap(err, "cannot list machines")
	}
	var hosts []int
	offline := offlineHosts(o.Hosts)
	for _, id := range slices.Sorted(maps.Keys(e.reported)) {
		if r := e.reported[id]; offline(id) || !r.Advertised || !r.Accepted {
			continue
		}
		if i := slices.IndexFunc(machines, func(m v1alpha1.Machine) bool { return meta.NodeIDOf(&m) == id }); i >= 0 {
			hosts = append(hosts, i)
		}
	}
	e.remedy = nextRemedy(o.RoutingRemedy, start, at, machines, hosts, o.Name)
	if e.remedy != nil && e.remedy.Machine != "" {
		i := slices.IndexFunc(machines, func(m v1alpha1.Machine) bool { return m.GetName() == e.remedy.Machine })
		e.remedied = &machines[i]
	}
	return nil
}

// remedyDue reports whether to act on a service that has had no primary host since a time. last is
// the last remedy. turn is the number of clusters that act before this one.
func remedyDue(last *v1alpha1.RoutingRemedy, start time.Time, turn int, at time.Time) bool {
	switch {
	case at.Before(start.Add(time.Duration(turn) * remedyTurn)):
		return false
	case last == nil || last.Time.Time.Before(start):
		return true
	case last.Action == v1alpha1.RemedyActionAdvertise:
		return !at.Before(last.Time.Add(afterAdvertise))
	}
	return !at.Before(last.Time.Add(remedyPause))
}

// nextRemedy returns a remedy that is due, or nil. The first host advertises the service again, then
// the last one, in case that the fault is of one host, and then a host restarts. hosts are the indexes
// of the machines that host the service, in a constant order.
func nextRemedy(last *v1alpha1.RoutingRemedy, start, at time.Time, machines []v1alpha1.Machine, hosts []int, service string) *v1alpha1.RoutingRemedy {
	advertise := func(host int) *v1alpha1.RoutingRemedy {
		return &v1alpha1.RoutingRemedy{Action: v1alpha1.RemedyActionAdvertise, Machine: machines[host].GetName()}
	}
	if len(hosts) == 0 {
		return nil
	}
	first, final := hosts[0], hosts[len(hosts)-1]
	switch {
	case last == nil || last.Time.Time.Before(start) || last.Action == v1alpha1.RemedyActionRestart:
		return advertise(first)
	case last.Machine == machines[first].GetName() && first != final:
		return advertise(final)
	case last.Restarted != nil && at.Before(last.Restarted.Add(restartAgain)):
		if at.Before(last.Time.Add(remedyPause)) {
			return nil
		}
		return advertise(first)
	}
	for _, i := range hosts {
		if mayRestart(machines, i, service) {
			return &v1alpha1.RoutingRemedy{Action: v1alpha1.RemedyActionRestart, Machine: machines[i].GetName()}
		}
	}
	return &v1alpha1.RoutingRemedy{Action: v1alpha1.RemedyActionRestart}
}

// turnOf returns the number of clusters that act on a shared service before this one: those with
// machines that offer it and with a smaller ID.
func turnOf(cluster string, others []registry.Member) int {
	n := 0
	for _, m := range others {
		if m.Alive && m.Cluster < cluster && (m.Health == nil || m.Health.Ready > 0) {
			n++
		}
	}
	return n
}

// mayRestart reports whether a machine can restart without interrupting another service: another
// machine, which is accepted and sees a primary host, offers each service that it offers. A restart
// moves clients there first.
func mayRestart(machines []v1alpha1.Machine, i int, dead string) bool {
	if machines[i].Status.Agent == nil {
		return false
	}
	for _, s := range machines[i].Status.Agent.Services {
		if s.Name == dead || !s.Advertised || !s.Accepted || s.Routed == v1alpha1.RoutingFalse {
			continue
		}
		if !slices.ContainsFunc(machines, func(m v1alpha1.Machine) bool {
			online := m.Status.AtProvider.Online
			return m.GetName() != machines[i].GetName() && online != nil && *online && offers(m, s.Name)
		}) {
			return false
		}
	}
	return true
}

func offers(m v1alpha1.Machine, service string) bool {
	return m.Status.Agent != nil && slices.ContainsFunc(m.Status.Agent.Services, func(s v1alpha1.HostedService) bool {
		return s.Name == service && s.Advertised && s.Accepted && s.Routed != v1alpha1.RoutingFalse
	})
}

// beginRemedy requests the action that Observe has found necessary.
func (e *external) beginRemedy(ctx context.Context, mg *v1alpha1.VIPService) error {
	if e.remedy == nil {
		return nil
	}
	name, at := string(mg.Spec.ForProvider.Name), e.hosts.clock.Now()
	r := *e.remedy
	r.Time = metav1.NewTime(at)
	if last := mg.Status.AtProvider.RoutingRemedy; last != nil {
		r.Restarted = last.Restarted
	}
	if e.remedied == nil {
		mg.Status.AtProvider.RoutingRemedy = &r
		e.record.Event(mg, event.Warning(reasonNoRemedy, errors.Errorf(
			"no host of %s is primary, and no machine can restart without interrupting another service; restart one of the pods that host it", name)))
		return nil
	}
	if err := e.pods.request(ctx, e.remedied, meta.Remedy{Service: name, Action: r.Action, Deadline: at.Add(remedyValid).UTC()}); err != nil {
		return errors.Wrapf(err, "cannot request an action of machine %q", r.Machine)
	}
	switch r.Action {
	case v1alpha1.RemedyActionAdvertise:
		e.record.Event(mg, event.Normal(reasonAdvertising, "Machine "+r.Machine+" withdraws "+name+" for a moment and advertises it again, because no host of it is primary"))
	case v1alpha1.RemedyActionRestart:
		r.Restarted = &r.Time
		e.record.Event(mg, event.Warning(reasonRestarting, errors.Errorf("tailscaled of machine %s restarts, because no host of %s is primary", r.Machine, name)))
	}
	mg.Status.AtProvider.RoutingRemedy = &r
	return nil
}

// kubePods implements pods.
type kubePods struct{ kube client.Client }

func (p kubePods) primarySeen(ctx context.Context, mg *v1alpha1.VIPService) (bool, error) {
	l := &v1alpha1.VIPServiceList{}
	if err := p.kube.List(ctx, l, client.InNamespace(mg.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return false, err
	}
	ref := mg.GetProviderConfigReference()
	for i := range l.Items {
		other := l.Items[i].GetProviderConfigReference()
		if ref != nil && other != nil && *ref == *other && l.Items[i].Status.AtProvider.PrimaryRoutesSeen {
			return true, nil
		}
	}
	return false, nil
}

func (p kubePods) machines(ctx context.Context, namespace string) ([]v1alpha1.Machine, error) {
	l := &v1alpha1.MachineList{}
	err := p.kube.List(ctx, l, client.InNamespace(namespace))
	return l.Items, err
}

func (p kubePods) request(ctx context.Context, m *v1alpha1.Machine, r meta.Remedy) error {
	s, err := p.secret(ctx, m)
	if err != nil {
		return err
	}
	b, err := json.Marshal(r)
	if err != nil {
		return errors.Wrap(err, "cannot encode the remedy")
	}
	original := s.DeepCopy()
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, meta.AnnotationRemedy, string(b))
	return errors.Wrap(p.kube.Patch(ctx, s, client.MergeFrom(original)), "cannot annotate config Secret")
}
