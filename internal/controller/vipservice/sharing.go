// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry/apply"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const (
	// maxConsumers and maxIgnored limit the size of the status.
	maxConsumers = 64
	maxIgnored   = 16
)

// sharing manages this cluster's share of a service: its record and, together with the other
// clusters, the service itself.
type sharing struct {
	*external

	detaching *detaching

	seen time.Time // Time of the list of services in Observe, by the API's clock.
}

// Observe observes the service and the records of all clusters in the shared lists. The object
// exists while its record does.
func (e *sharing) Observe(ctx context.Context, mg *v1alpha1.VIPService) (managed.ExternalObservation, error) {
	if xpmeta.WasDeleted(mg) {
		return e.observeDetaching(ctx, mg)
	}
	v, err := e.view(ctx, tailscale.Cached)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	self, name := e.self(mg), string(mg.Spec.ForProvider.Name)
	s, readOnly := v.Service(name), observeOnly(mg)
	old := mg.Status.AtProvider.Addresses
	members, _ := v.Members(name)
	e.fenced = fencedHosts(mg, members, v.ServicesAt)
	if !readOnly {
		if err := e.observeOwnHosts(ctx, mg, v); err != nil {
			return managed.ExternalObservation{}, err
		}
	}
	e.peers = peerHealthOf(members, self.Cluster)
	if s != nil {
		if err := e.observe(ctx, mg, s); err != nil {
			return managed.ExternalObservation{}, err
		}
	}
	others := e.observeMembers(mg, v, s, readOnly)
	if s != nil {
		if err := e.observeRouting(ctx, mg, others); err != nil {
			return managed.ExternalObservation{}, err
		}
	}
	if readOnly {
		return managed.ExternalObservation{ResourceExists: s != nil, ResourceUpToDate: true}, nil
	}
	want, err := e.want(ctx, mg, v)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if s != nil {
		if err := e.observePorts(ctx, mg); err != nil {
			return managed.ExternalObservation{}, err
		}
		if err := e.observeDrain(ctx, mg, v, members); err != nil {
			return managed.ExternalObservation{}, err
		}
	}
	actions, err := registry.Attach(v, self, want)
	if err != nil {
		mg.SetConditions(foreign(err))
		return managed.ExternalObservation{}, err
	}
	if s == nil {
		mg.SetConditions(xpv2.Creating().WithMessage("The shared service does not exist; it is made, with the address that it had"))
	}
	if own := v.Service(registry.RecordName(name, self.Cluster)); own != nil && own.Annotations[meta.AnnotationOwner] == self.Owner() && s != nil && registry.Shared(s) {
		if err := e.remember(ctx, s); err != nil {
			return managed.ExternalObservation{}, err
		}
	}
	mg.SetConditions(conflict(registry.Conflict(v, self, want, s)))
	if s != nil {
		e.observeAddress(mg, old, s)
	}
	texts := make([]string, len(actions))
	for i, a := range actions {
		texts[i] = a.String()
	}
	return managed.ExternalObservation{
		ResourceExists:   v.Service(registry.RecordName(name, self.Cluster)) != nil,
		ResourceUpToDate: len(actions) == 0 && !e.waits(),
		Diff:             strings.Join(texts, ", "),
	}, nil
}

// observeMembers sets the clusters that share the service in the status, and returns the other ones.
func (e *sharing) observeMembers(mg *v1alpha1.VIPService, v registry.View, s *tailscale.Service, readOnly bool) []registry.Member {
	o := &mg.Status.AtProvider
	members, ignored := v.Members(string(mg.Spec.ForProvider.Name))
	o.Consumers = nil
	for _, m := range members[:min(len(members), maxConsumers)] {
		o.Consumers = append(o.Consumers, consumer(m))
	}
	n := int32(len(members))
	o.ConsumerCount = &n
	o.IgnoredRecords = ignored[:min(len(ignored), maxIgnored)]
	o.Owner = ""
	if s != nil && registry.Shared(s) {
		o.Owner = registry.OwnerOf(s, members)
	}
	others := slices.DeleteFunc(slices.Clone(members), func(m registry.Member) bool { return m.Cluster == e.clusterID })
	if readOnly {
		return others
	}
	o.OwnServiceName = e.ownService(mg)
	if own := v.Service(o.OwnServiceName); own != nil {
		o.OwnAddresses = sortAddresses(own.Addrs)
		o.OwnPorts = tailscale.Sorted(own.Ports)
	}
	return others
}

func consumer(m registry.Member) v1alpha1.ServiceConsumer {
	c := v1alpha1.ServiceConsumer{
		ClusterID:   m.Cluster,
		OperatorID:  m.Operator,
		ClusterSet:  m.ClusterSet,
		ServiceName: m.Name,
		Addresses:   sortAddresses(m.Addrs),
		DNSName:     dnsName(m.Name, m.Domain),
		Routes:      m.Routes,
		NodeIDs:     m.Nodes,
		Draining:    m.Draining != nil,
		Fencing:     m.Fencing != nil,
		Online:      m.Alive,
	}
	if h := m.Health; h != nil {
		c.Health = &v1alpha1.ConsumerHealth{Ready: h.Ready, Total: h.Total, Score: h.Score}
	}
	return c
}

// observeAddress reports a change of the service's address.
func (e *sharing) observeAddress(mg *v1alpha1.VIPService, old []string, s *tailscale.Service) {
	if current := mg.Status.AtProvider.Addresses; len(old) > 0 && len(current) > 0 && old[0] != current[0] {
		e.record.Event(mg, event.Warning(reasonAddressChanged, errors.Errorf("service %s was made again and has the address %s, no longer %s", s.Name, current[0], old[0])))
	}
	previous := s.Annotations[meta.AnnotationPreviousAddress]
	switch {
	case previous != "":
		mg.SetConditions(xpv2.Condition{
			Type: meta.TypeAddressKept, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now(), Reason: meta.ReasonAddressTaken,
			Message: fmt.Sprintf("The service was made again and could not get its address %s back; correct what uses that, then take the annotation %s off the service", previous, meta.AnnotationPreviousAddress),
		})
	case mg.GetCondition(meta.TypeAddressKept).Status == corev1.ConditionFalse:
		mg.SetConditions(xpv2.Condition{Type: meta.TypeAddressKept, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(), Reason: meta.ReasonAddressKept})
	}
}

// conflict returns the condition that shows whether all clusters want the same service.
func conflict(message string) xpv2.Condition {
	c := xpv2.Condition{Type: meta.TypeConflict, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now(), Reason: meta.ReasonSettingsAgree}
	if message != "" {
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, meta.ReasonSettingsDiffer, message
	}
	return c
}

// want returns this cluster's wanted service, and the content of its record.
func (e *sharing) want(ctx context.Context, mg *v1alpha1.VIPService, v registry.View) (registry.Want, error) {
	p := mg.Spec.ForProvider
	adopt, err := e.mayAdopt(ctx, mg, v.Service(string(p.Name)), v.Service(e.ownService(mg)))
	if err != nil {
		return registry.Want{}, err
	}
	rs, err := e.reports(ctx, mg.GetNamespace(), string(p.Name))
	if err != nil {
		return registry.Want{}, errors.Wrap(err, "cannot list machines")
	}
	domain, err := e.api.tailnet.Domain(ctx)
	if err != nil {
		return registry.Want{}, errors.Wrap(err, "cannot learn the tailnet's domain")
	}
	health := rs.health()
	if health != nil {
		health.Whole = int32(len(rs.whole(mg.Status.AtProvider)))
		if health.Unrouted, err = e.unrouted(ctx, mg, v, rs); err != nil {
			return registry.Want{}, err
		}
	}
	seen, err := e.madeAddresses(ctx, string(p.Name))
	if err != nil {
		return registry.Want{}, err
	}
	ports, recordPorts, err := e.rollOutPorts(ctx, mg, v, rs)
	if err != nil {
		return registry.Want{}, err
	}
	set, err := e.setOf(mg, v)
	if err != nil {
		return registry.Want{}, err
	}
	return registry.Want{
		Service:      string(p.Name),
		ClusterSet:   set,
		Draining:     p.Drain,
		Fencing:      p.Fencing,
		DisplayName:  p.DisplayName,
		Comment:      p.Comment,
		Ports:        tailscale.Sorted(ports),
		Tags:         tailscale.Sorted(p.Tags),
		Annotations:  p.Annotations,
		RecordTags:   tailscale.Sorted(p.RecordTags),
		RecordPorts:  tailscale.Sorted(recordPorts),
		Adopt:        adopt,
		Retain:       retains(mg),
		Tailnet:      e.tailnet,
		Domain:       domain,
		Routes:       p.Routes,
		Export:       p.Export,
		Health:       health,
		Nodes:        slices.Sorted(maps.Keys(rs)),
		Addresses:    mg.Status.AtProvider.Addresses,
		OwnAddresses: mg.Status.AtProvider.OwnAddresses,
		Seen:         seen,
	}, nil
}

// setOf returns the set of clusters that may share the service. It is empty if any cluster may. It stays
// what the record says if the provider config no longer names a set. Without a record, the error is a
// refusal.
func (e *sharing) setOf(mg *v1alpha1.VIPService, v registry.View) (string, error) {
	if mg.Spec.ForProvider.Sharing != v1alpha1.SharingClusterSet {
		return "", nil
	}
	set := e.clusterSet
	if own := v.Service(e.ownService(mg)); set == "" && own != nil {
		// A record that cannot be read has no set.
		if r, ok, err := registry.RecordOf(own); err == nil && ok {
			set = r.ClusterSet
		}
	}
	if set != "" {
		return set, nil
	}
	err := registry.NoClusterSet(string(mg.Spec.ForProvider.Name))
	mg.SetConditions(foreign(err))
	return "", err
}

// rollOutPorts returns the wanted ports that the service and the cluster's own service may have now.
func (e *sharing) rollOutPorts(ctx context.Context, mg *v1alpha1.VIPService, v registry.View, rs reports) (ports, record []v1alpha1.ServicePort, err error) {
	ports, record = mg.Spec.ForProvider.Ports, mg.Spec.ForProvider.RecordPorts
	if s := v.Service(string(mg.Spec.ForProvider.Name)); s != nil {
		ports = e.rollOut(mg, mg.GetUID(), rs, ports, s.Ports)
	}
	own := v.Service(e.ownService(mg))
	if own == nil || len(record) == 0 {
		return ports, record, nil
	}
	reported, err := e.reports(ctx, mg.GetNamespace(), own.Name)
	if err != nil {
		return nil, nil, errors.Wrap(err, "cannot list machines")
	}
	return ports, e.rollOut(mg, ownUID(mg.GetUID()), reported, record, own.Ports), nil
}

// unrouted reports whether this cluster's machines see no primary host. While they cannot say, what
// the record says stays.
func (e *sharing) unrouted(ctx context.Context, mg *v1alpha1.VIPService, v registry.View, rs reports) (bool, error) {
	switch rs.routing(offlineHosts(mg.Status.AtProvider.Hosts)) {
	case routingUnrouted:
		return e.primarySeen(ctx, mg)
	case routingPending:
		own := v.Service(e.ownService(mg))
		if own == nil {
			return false, nil
		}
		r, ok, err := registry.RecordOf(own)
		// A record that cannot be read is written again.
		return err == nil && ok && r.Health != nil && r.Health.Unrouted, nil
	case routingUndecided, routingNotReported, routingUnhosted, routingRouted:
	}
	return false, nil
}

// Create creates the record, and the service if there is none.
func (e *sharing) Create(ctx context.Context, mg *v1alpha1.VIPService) (managed.ExternalCreation, error) {
	return managed.ExternalCreation{}, e.attach(ctx, mg)
}

// Update updates the record and the service, and approves hosts.
func (e *sharing) Update(ctx context.Context, mg *v1alpha1.VIPService) (managed.ExternalUpdate, error) {
	if err := e.attach(ctx, mg); err != nil {
		return managed.ExternalUpdate{}, err
	}
	if err := e.approveHosts(ctx, mg); err != nil {
		return managed.ExternalUpdate{}, err
	}
	if err := e.approveOwnHosts(ctx, mg); err != nil {
		return managed.ExternalUpdate{}, err
	}
	if err := e.withdrawHosts(ctx, mg); err != nil {
		return managed.ExternalUpdate{}, err
	}
	return managed.ExternalUpdate{}, e.beginRemedy(ctx, mg)
}

func (e *sharing) attach(ctx context.Context, mg *v1alpha1.VIPService) error {
	v, err := e.view(ctx, tailscale.Recent)
	if err != nil {
		return err
	}
	// A cluster may have fenced a host since Observe.
	members, _ := v.Members(string(mg.Spec.ForProvider.Name))
	e.fenced = fencedHosts(mg, members, v.ServicesAt)
	e.approve, e.preapprove = e.unfenced(e.approve), e.unfenced(e.preapprove)
	want, err := e.want(ctx, mg, v)
	if err != nil {
		return err
	}
	r, err := apply.AttachPass(ctx, e.api.services, e.view, e.self(mg), want)
	if r.Created {
		e.record.Event(mg, event.Normal(reasonMadeShared, "Made the shared service "+want.Service))
	}
	if r.AddressTaken != "" {
		e.record.Event(mg, event.Warning(reasonAddressChanged, errors.Errorf("service %s could not get its address %s back, for something else has it", want.Service, r.AddressTaken)))
	}
	if refusal := (*registry.RefusalError)(nil); errors.As(err, &refusal) {
		mg.SetConditions(foreign(err))
	}
	return err
}

// observeDetaching reports whether any step is left. The object exists until no request of this
// cluster can be in flight, and no other cluster is left that would need this one to delete the
// service.
func (e *sharing) observeDetaching(ctx context.Context, mg *v1alpha1.VIPService) (managed.ExternalObservation, error) {
	v, err := e.view(ctx, tailscale.Recent)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	e.seen = v.ServicesAt
	want, err := e.leaving(ctx, mg)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	actions, err := registry.Detach(v, e.self(mg), want, e.detaching.get(mg.GetUID()))
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if len(actions) == 0 {
		e.detaching.set(mg.GetUID(), time.Time{})
		e.ports.forget(mg.GetUID())
		e.hosts.forget(mg.GetUID())
		e.hosts.forget(ownUID(mg.GetUID()))
	}
	return managed.ExternalObservation{ResourceExists: len(actions) > 0, ResourceUpToDate: true}, nil
}

// leaving returns the registry's input for a service that this cluster stops sharing.
func (e *sharing) leaving(ctx context.Context, mg *v1alpha1.VIPService) (registry.Want, error) {
	name := string(mg.Spec.ForProvider.Name)
	seen, err := e.madeAddresses(ctx, name)
	return registry.Want{Service: name, Seen: seen, Retain: retains(mg)}, err
}

// Delete executes the next step of leaving the service.
func (e *sharing) Delete(ctx context.Context, mg *v1alpha1.VIPService) (managed.ExternalDelete, error) {
	mg.SetConditions(xpv2.Deleting())
	want, err := e.leaving(ctx, mg)
	if err != nil {
		return managed.ExternalDelete{}, err
	}
	_, start, err := apply.DetachPass(ctx, e.api.services, e.view, e.self(mg), want, e.detaching.get(mg.GetUID()))
	e.detaching.set(mg.GetUID(), start)
	wait := time.Duration(0)
	if !start.IsZero() {
		wait = registry.Pause - e.seen.Sub(start)
	}
	e.detaching.pace(client.ObjectKeyFromObject(mg), max(wait, 0)+time.Duration(tailscale.Recent))
	return managed.ExternalDelete{}, err
}

// health returns the health of the machines that should host a service. It returns nil if there are
// none.
func (c reports) health() *registry.Health {
	if len(c) == 0 {
		return nil
	}
	h := registry.Health{Total: int32(len(c))}
	healthy, total := int32(0), int32(0)
	for _, r := range c {
		if r.Advertised {
			h.Ready++
		}
		healthy, total = healthy+r.Healthy, total+r.Total
	}
	h.Score = 100 * healthy / cmp.Or(total, 1)
	return &h
}
