// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package vipservice holds the controller of VIPServices: Tailscale Services that this cluster
// defines, alone or together with others. Package registry decides how clusters share one. Agents
// decide which machines host a service; this package approves the hosts and reports them.
package vipservice

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry/apply"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Reasons of events.
const (
	reasonAdopting       event.Reason = "AdoptingVIPService"
	reasonMadeShared     event.Reason = "MadeSharedService"
	reasonAddressChanged event.Reason = "AddressChanged"
	reasonHostApproved   event.Reason = "ApprovedHost"
	reasonHostOnline     event.Reason = "HostOnline"
	reasonHostOffline    event.Reason = "HostOffline"
	reasonReadvertised   event.Reason = "AdvertisedAgain"
	reasonNotesLost      event.Reason = "AnnotationsLost"
	reasonNoPrimaryHost  event.Reason = "NoPrimaryHost"
	reasonHostPrimary    event.Reason = "HostPrimary"
	reasonAdvertising    event.Reason = "AdvertisingForPrimary"
	reasonRestarting     event.Reason = "RestartingForPrimary"
	reasonWithdrawn      event.Reason = "WithdrewHost"
	reasonServingAgain   event.Reason = "ServingAgain"
	reasonNoRemedy       event.Reason = "CannotRestartForPrimary"
)

type connector struct {
	connect func(ctx context.Context, mg resource.ModernManaged) (connection, error)
	// reports returns the reports of a namespace's agents about a service.
	reports func(ctx context.Context, namespace, service string) (reports, error)
	// lives reports whether the object that an owner names exists in this cluster.
	lives     func(ctx context.Context, owner string) (bool, error)
	pods      pods
	hosts     *hostsCache
	ports     *portsCache
	detaching *detaching
	record    event.Recorder
}

// Connect connects to the tailnet. The deletion of an object whose service was never made needs no
// connection.
func (c *connector) Connect(ctx context.Context, mg *v1alpha1.VIPService) (managed.TypedExternalClient[*v1alpha1.VIPService], error) {
	if xpmeta.WasDeleted(mg) && !mayExist(mg) {
		return &external{}, nil
	}
	conn, err := c.connect(ctx, mg)
	if err != nil {
		return nil, err
	}
	e := &external{connection: conn, reports: c.reports, lives: c.lives, pods: c.pods, hosts: c.hosts, ports: c.ports, record: c.record}
	if mg.Spec.ForProvider.Sharing.IsShared() {
		return &sharing{external: e, detaching: c.detaching}, nil
	}
	c.hosts.forget(ownUID(mg.GetUID()))
	return e, nil
}

// mayExist reports whether a service may have been made for the object.
func mayExist(mg *v1alpha1.VIPService) bool {
	return !xpmeta.GetExternalCreatePending(mg).IsZero() || mg.Status.AtProvider.Name != "" || mg.Status.AtProvider.OwnServiceName != ""
}

// observeOnly reports whether an object may only observe, and therefore also services of others.
func observeOnly(mg *v1alpha1.VIPService) bool {
	return managed.NewManagementPoliciesResolver(true, mg.GetManagementPolicies()).ShouldOnlyObserve()
}

// retains reports whether the service stays when the object is deleted.
func retains(mg *v1alpha1.VIPService) bool {
	return mg.Spec.ForProvider.DeletionPolicy == v1alpha1.VIPServiceRetain
}

// external manages a service that belongs to this cluster alone.
type external struct {
	connection // Without an API client if there is nothing to clean up.

	reports func(ctx context.Context, namespace, service string) (reports, error)
	lives   func(ctx context.Context, owner string) (bool, error)
	pods    pods
	hosts   *hostsCache
	ports   *portsCache
	record  event.Recorder

	// missing is a port that has waited too long for a host to serve it. withdraw are the changes of
	// withdrawals that Update must make.
	missing  *missingPort
	withdraw []withdrawal

	// reported are the reports about the service. fresh reports whether no host served it before.
	reported reports
	fresh    bool

	// remedy is what Update must do about a service without a primary host, and remedied the
	// machine. Nil if there is nothing to do, and if no machine can do it.
	remedy   *v1alpha1.RoutingRemedy
	remedied *v1alpha1.Machine

	// peers is the health of the machines of other clusters that share the service.
	peers peerHealth

	// fenced are the node IDs of the hosts from which a cluster has withdrawn the approval.
	fenced map[string]bool

	// Node IDs of the hosts that Update must approve: of the service, and of the cluster's own
	// service next to a shared one.
	approve, approveOwn []string

	// Node IDs of the machines that Update must approve before they are hosts: of the service, and
	// of the cluster's own service next to a shared one.
	preapprove, preapproveOwn []string
}

// waits reports whether a host waits for an approval, a withdrawal or a remedy by Update.
func (e *external) waits() bool {
	return e.remedy != nil || len(e.withdraw) > 0 || len(e.approve)+len(e.approveOwn)+len(e.preapprove)+len(e.preapproveOwn) > 0
}

// Observe observes the service in the shared list, and its hosts.
func (e *external) Observe(ctx context.Context, mg *v1alpha1.VIPService) (managed.ExternalObservation, error) {
	if e.api == nil {
		return managed.ExternalObservation{}, nil
	}
	if xpmeta.WasDeleted(mg) {
		return e.observeDeleted(ctx, mg)
	}
	v, err := e.view(ctx, 0)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	name, owner := string(mg.Spec.ForProvider.Name), e.owner(mg)
	s := v.Service(name)
	if !observeOnly(mg) {
		if err := e.mayManage(ctx, mg, v, s); err != nil {
			mg.SetConditions(foreign(err))
			return managed.ExternalObservation{}, err
		}
	}
	if s == nil {
		return managed.ExternalObservation{}, e.mayCreate(ctx, mg)
	}
	if s.Annotations[meta.AnnotationOwner] == owner {
		if err := e.remember(ctx, s); err != nil {
			return managed.ExternalObservation{}, err
		}
	}
	e.fenced = fencedHosts(mg, nil, v.ServicesAt)
	if err := e.observe(ctx, mg, s); err != nil {
		return managed.ExternalObservation{}, err
	}
	if err := e.observeRouting(ctx, mg, nil); err != nil {
		return managed.ExternalObservation{}, err
	}
	ports := e.rollOut(mg, mg.GetUID(), e.reported, mg.Spec.ForProvider.Ports, s.Ports)
	if err := e.observePorts(ctx, mg); err != nil {
		return managed.ExternalObservation{}, err
	}
	want, err := desired(mg, s, owner, e.clusterID, ports)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if err := e.observeAnnotations(ctx, mg, s, want); err != nil {
		return managed.ExternalObservation{}, err
	}
	d := diff(s, want)
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: d == "" && !e.waits(), Diff: d}, nil
}

// observeDeleted requests the service itself, because a list may be outdated. It reports a service
// that does not belong to the object as gone, because the object must not delete it.
func (e *external) observeDeleted(ctx context.Context, mg *v1alpha1.VIPService) (managed.ExternalObservation, error) {
	s, err := apply.GetToDelete(ctx, e.api.services, string(mg.Spec.ForProvider.Name))
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	exists := s != nil && s.Annotations[meta.AnnotationOwner] == e.owner(mg)
	if s != nil && !exists {
		if exists, err = e.lostAnnotations(ctx, s); err != nil {
			return managed.ExternalObservation{}, err
		}
	}
	if exists && retains(mg) {
		alone, err := registry.OwnedAlone(s, e.clusterID)
		if err != nil {
			return managed.ExternalObservation{}, err
		}
		exists = !alone
	}
	if !exists {
		e.ports.forget(mg.GetUID())
		e.hosts.forget(mg.GetUID())
	}
	return managed.ExternalObservation{ResourceExists: exists, ResourceUpToDate: true}, nil
}

func (e *external) observe(ctx context.Context, mg *v1alpha1.VIPService, s *tailscale.Service) error {
	o := &mg.Status.AtProvider
	o.Name = s.Name
	o.Addresses = sortAddresses(s.Addrs)
	o.Ports = tailscale.Sorted(s.Ports)
	if err := e.observeHosts(ctx, mg); err != nil {
		return err
	}
	// After the hosts, which may have refreshed the list of devices.
	domain, err := e.api.tailnet.Domain(ctx)
	if err != nil {
		return errors.Wrap(err, "cannot learn the tailnet's domain")
	}
	// The domain comes from a device's name and stays known when the last device is gone.
	if n := dnsName(s.Name, domain); n != "" {
		o.DNSName = n
	}
	if len(o.Addresses) == 0 {
		mg.SetConditions(xpv2.Creating().WithMessage("Tailscale has given the service no address yet"))
		return nil
	}
	mg.SetConditions(xpv2.Available())
	return nil
}

// Create creates the service, unless somebody else has made it in the meantime.
func (e *external) Create(ctx context.Context, mg *v1alpha1.VIPService) (managed.ExternalCreation, error) {
	return managed.ExternalCreation{}, e.put(ctx, mg)
}

// Update updates the object's part of the service, and approves its hosts.
func (e *external) Update(ctx context.Context, mg *v1alpha1.VIPService) (managed.ExternalUpdate, error) {
	if err := e.put(ctx, mg); err != nil {
		return managed.ExternalUpdate{}, err
	}
	if err := e.approveHosts(ctx, mg); err != nil {
		return managed.ExternalUpdate{}, err
	}
	if err := e.withdrawHosts(ctx, mg); err != nil {
		return managed.ExternalUpdate{}, err
	}
	return managed.ExternalUpdate{}, e.beginRemedy(ctx, mg)
}

// put writes the service if it differs from the wanted one. It reads the service first, because a
// write replaces the whole service and must contain its addresses.
func (e *external) put(ctx context.Context, mg *v1alpha1.VIPService) error {
	name := string(mg.Spec.ForProvider.Name)
	owner := e.owner(mg)
	current, err := apply.Get(ctx, e.api.services, name)
	if err != nil {
		return err
	}
	v, err := e.view(ctx, 0)
	if err != nil {
		return err
	}
	if err := e.mayManage(ctx, mg, v, current); err != nil {
		mg.SetConditions(foreign(err))
		return err
	}
	ports := mg.Spec.ForProvider.Ports
	if current != nil {
		ports = e.rollOut(mg, mg.GetUID(), e.reported, ports, current.Ports)
	}
	want, err := desired(mg, current, owner, e.clusterID, ports)
	if err != nil {
		return err
	}
	if current != nil {
		if diff(current, want) == "" {
			return nil
		}
		lost, err := e.lostAnnotations(ctx, current)
		if err != nil {
			return err
		}
		switch {
		case lost:
			e.record.Event(mg, event.Warning(reasonNotesLost, errors.Errorf("service %s lost its annotations, which say that it is this object's; they are written again", name)))
		case current.Annotations[meta.AnnotationOwner] != owner:
			e.record.Event(mg, event.Normal(reasonAdopting, "Taking over service "+name+" as adoptionPolicy says"))
		}
	}
	result, err := apply.Put(ctx, e.api.services, want)
	if err != nil {
		return err
	}
	return e.remember(ctx, result)
}

// Delete deletes the service, if it still belongs to the object. A service that also has owners
// according to Tailscale's operator is left to them. One that the object retains has none left, see
// observeDeleted.
func (e *external) Delete(ctx context.Context, mg *v1alpha1.VIPService) (managed.ExternalDelete, error) {
	mg.SetConditions(xpv2.Deleting())
	_, err := apply.Remove(ctx, e.api.services, e.self(mg), string(mg.Spec.ForProvider.Name), func(s *tailscale.Service) (bool, error) { return e.lostAnnotations(ctx, s) })
	return managed.ExternalDelete{}, err
}

// Disconnect does nothing, because clients are shared.
func (e *external) Disconnect(context.Context) error { return nil }

// mayManage returns an error if an existing service must not be changed by the object, or if
// clusters share a service of this name.
func (e *external) mayManage(ctx context.Context, mg *v1alpha1.VIPService, v registry.View, s *tailscale.Service) error {
	self := e.self(mg)
	if err := registry.Foreign(v, s, string(mg.Spec.ForProvider.Name)); err != nil {
		return err
	}
	if s == nil || s.Annotations[meta.AnnotationOwner] == self.Owner() {
		return nil
	}
	if lost, err := e.lostAnnotations(ctx, s); err != nil || lost {
		return err
	}
	if adopt, err := e.mayAdopt(ctx, mg, s); err != nil || adopt {
		return err
	}
	r := &registry.RefusalError{Reason: meta.ReasonForeignService}
	owner := "somebody else"
	if o := s.Annotations[meta.AnnotationOwner]; o != "" {
		owner = o
	}
	if self.Has(s.Annotations[meta.AnnotationOwner]) {
		r.Reason = meta.ReasonNameTaken
	}
	r.Message = fmt.Sprintf("service %q exists and belongs to %s; choose another name, delete it, or set adoptionPolicy to Adopt", s.Name, owner)
	if r.Reason == meta.ReasonNameTaken {
		// An existing object of the same cluster keeps its service, whatever other clusters record.
		r.Message = fmt.Sprintf("service %q belongs to %s; choose another name, or delete that object first", s.Name, owner)
	}
	return r
}

// foreign returns the condition of an object that must not change its service.
func foreign(err error) xpv2.Condition {
	c := xpv2.Condition{
		Type:               xpv2.TypeReady,
		Status:             corev1.ConditionFalse,
		LastTransitionTime: metav1.Now(),
		Reason:             meta.ReasonForeignService,
		Message:            err.Error(),
	}
	var r *registry.RefusalError
	if errors.As(err, &r) {
		c.Reason = r.Reason
	}
	return c
}
