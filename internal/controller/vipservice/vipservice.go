// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package vipservice holds the controller of VIPServices: Tailscale Services
// that this cluster defines, alone or together with others. How clusters share
// one is decided in package registry. Who hosts a service is decided by agents;
// approving hosts and telling about them is done here.
package vipservice

import (
	"context"
	"fmt"
	"time"

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
)

// api is what this controller needs of a tailnet.
type api interface {
	registry.API

	ServicesAt(ctx context.Context, staleness tailscale.Staleness) ([]tailscale.Service, time.Time, error)
	DevicesAt(ctx context.Context, staleness tailscale.Staleness) ([]tailscale.Device, time.Time, error)
	Hosts(ctx context.Context, service string) ([]tailscale.Host, error)
	HostApproval(ctx context.Context, service, nodeID string) (tailscale.HostApproval, error)
	ApproveHost(ctx context.Context, service, nodeID string) (bool, error)
	Domain(ctx context.Context) (string, error)
}

// A connection is a tailnet and how this cluster is called in it.
type connection struct {
	api       api
	clusterID string

	// tailnet is the name of the provider config.
	tailnet string
}

type connector struct {
	connect func(ctx context.Context, mg resource.ModernManaged) (connection, error)
	// claims says what the agents of a namespace say about a service.
	claims func(ctx context.Context, namespace, service string) (claims, error)
	// lives reports whether the object that an owner names exists here.
	lives     func(ctx context.Context, owner string) (bool, error)
	hosts     *hostsCache
	detaching *detaching
	record    event.Recorder
}

// Connect to the tailnet. A service that was never made can go without it.
func (c *connector) Connect(ctx context.Context, mg *v1alpha1.VIPService) (managed.TypedExternalClient[*v1alpha1.VIPService], error) {
	if xpmeta.WasDeleted(mg) && !mayExist(mg) {
		return &external{}, nil
	}
	conn, err := c.connect(ctx, mg)
	if err != nil {
		return nil, err
	}
	e := &external{connection: conn, claims: c.claims, lives: c.lives, hosts: c.hosts, record: c.record}
	if mg.Spec.ForProvider.Sharing == v1alpha1.SharingShared {
		return &sharing{external: e, detaching: c.detaching}, nil
	}
	c.hosts.forget(ownUID(mg.GetUID()))
	return e, nil
}

// mayExist reports whether a service may have been made for the object.
func mayExist(mg *v1alpha1.VIPService) bool {
	return !xpmeta.GetExternalCreatePending(mg).IsZero() || mg.Status.AtProvider.Name != "" || mg.Status.AtProvider.OwnServiceName != ""
}

// observeOnly reports whether an object must only look, and so may look at what
// belongs to others.
func observeOnly(mg *v1alpha1.VIPService) bool {
	return managed.NewManagementPoliciesResolver(true, mg.GetManagementPolicies()).ShouldOnlyObserve()
}

// external manages a service that is this cluster's alone.
type external struct {
	connection // Without an API if there is nothing to clean up.

	claims func(ctx context.Context, namespace, service string) (claims, error)
	lives  func(ctx context.Context, owner string) (bool, error)
	hosts  *hostsCache
	record event.Recorder

	// Node IDs that Observe found to be approved by Update: as hosts of the service,
	// and of the cluster's own beside a shared one.
	approve, approveOwn []string

	// Node IDs of machines that Update must approve before they are hosts: of the
	// service, and of the cluster's own beside a shared one.
	preapprove, preapproveOwn []string
}

// waits reports whether an approval is missing that Update gives.
func (e *external) waits() bool {
	return len(e.approve)+len(e.approveOwn)+len(e.preapprove)+len(e.preapproveOwn) > 0
}

// Observe the service in the shared list, and its hosts.
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
	if err := e.observe(ctx, mg, s); err != nil {
		return managed.ExternalObservation{}, err
	}
	want, err := desired(mg, s, owner, e.clusterID)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	e.observeAnnotations(mg, s, want)
	d := diff(s, want)
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: d == "" && !e.waits(), Diff: d}, nil
}

// observeDeleted asks for the service itself: a list may be old. What is not ours
// is not ours to delete.
func (e *external) observeDeleted(ctx context.Context, mg *v1alpha1.VIPService) (managed.ExternalObservation, error) {
	s, err := registry.GetToDelete(ctx, e.api, string(mg.Spec.ForProvider.Name))
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	exists := s != nil && (s.Annotations[meta.AnnotationOwner] == e.owner(mg) || lostAnnotations(mg, s))
	if !exists {
		e.hosts.forget(mg.GetUID())
	}
	return managed.ExternalObservation{ResourceExists: exists, ResourceUpToDate: true}, nil
}

// view returns the shared lists: services of the given staleness, and cached devices.
func (e *external) view(ctx context.Context, staleness tailscale.Staleness) (registry.View, error) {
	services, at, err := e.api.ServicesAt(ctx, staleness)
	if err != nil {
		return registry.View{}, errors.Wrap(err, "cannot list services")
	}
	devices, devicesAt, err := e.api.DevicesAt(ctx, tailscale.Cached)
	return registry.View{Services: services, ServicesAt: at, Devices: devices, DevicesAt: devicesAt}, errors.Wrap(err, "cannot list devices")
}

func (e *external) observe(ctx context.Context, mg *v1alpha1.VIPService, s *tailscale.Service) error {
	o := &mg.Status.AtProvider
	o.Name = s.Name
	o.Addresses = sortAddresses(s.Addrs)
	o.Ports = tailscale.Sorted(s.Ports)
	if err := e.observeHosts(ctx, mg); err != nil {
		return err
	}
	// After the hosts: the list of devices is fresh then, if it had to be.
	domain, err := e.api.Domain(ctx)
	if err != nil {
		return errors.Wrap(err, "cannot learn the tailnet's domain")
	}
	// It stays known when the last device goes, whose name shows it.
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

// Create the service, unless somebody else made it meanwhile.
func (e *external) Create(ctx context.Context, mg *v1alpha1.VIPService) (managed.ExternalCreation, error) {
	return managed.ExternalCreation{}, e.put(ctx, mg)
}

// Update what the object owns of the service, and approve its hosts.
func (e *external) Update(ctx context.Context, mg *v1alpha1.VIPService) (managed.ExternalUpdate, error) {
	if err := e.put(ctx, mg); err != nil {
		return managed.ExternalUpdate{}, err
	}
	return managed.ExternalUpdate{}, e.approveHosts(ctx, mg)
}

// put writes the service if it is not as wanted. It reads it first: the API
// replaces what it gets, and wants a service's addresses back.
func (e *external) put(ctx context.Context, mg *v1alpha1.VIPService) error {
	name := string(mg.Spec.ForProvider.Name)
	owner := e.owner(mg)
	current, err := registry.Get(ctx, e.api, name)
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
	want, err := desired(mg, current, owner, e.clusterID)
	if err != nil {
		return err
	}
	if current != nil {
		if diff(current, want) == "" {
			return nil
		}
		switch {
		case lostAnnotations(mg, current):
			e.record.Event(mg, event.Warning(reasonNotesLost, errors.Errorf("service %s lost its annotations, which say that it is this object's; they are written again", name)))
		case current.Annotations[meta.AnnotationOwner] != owner:
			e.record.Event(mg, event.Normal(reasonAdopting, "Taking over service "+name+" as adoptionPolicy says"))
		}
	}
	_, err = registry.Put(ctx, e.api, want)
	return err
}

// Delete the service, if it is still ours. One that Tailscale's own operator says
// others own, too, is left to them.
func (e *external) Delete(ctx context.Context, mg *v1alpha1.VIPService) (managed.ExternalDelete, error) {
	mg.SetConditions(xpv2.Deleting())
	name := string(mg.Spec.ForProvider.Name)
	s, err := registry.GetToDelete(ctx, e.api, name)
	if err != nil || s == nil {
		return managed.ExternalDelete{}, err
	}
	if s.Annotations[meta.AnnotationOwner] != e.owner(mg) && !lostAnnotations(mg, s) {
		return managed.ExternalDelete{}, nil
	}
	refs, err := registry.ParseOwnerRefs(s.Annotations[meta.AnnotationOwnerReferences])
	if err != nil {
		return managed.ExternalDelete{}, err
	}
	if refs.Others(e.clusterID) == 0 {
		return managed.ExternalDelete{}, errors.Wrapf(e.api.DeleteService(ctx, name), "cannot delete service %q", name)
	}
	left := *s
	if left.Annotations, err = registry.Released(s.Annotations, e.clusterID, false); err != nil {
		return managed.ExternalDelete{}, err
	}
	_, err = e.api.PutService(ctx, left)
	return managed.ExternalDelete{}, errors.Wrapf(err, "cannot leave service %q to its other owners", name)
}

// Disconnect has nothing to close: clients are shared.
func (e *external) Disconnect(context.Context) error { return nil }

func (e *external) self(mg *v1alpha1.VIPService) registry.Self {
	return registry.Self{Cluster: e.clusterID, Operator: mg.GetNamespace() + "/" + mg.GetName()}
}

func (e *external) owner(mg *v1alpha1.VIPService) string { return e.self(mg).Owner() }

// mayManage returns an error if a service exists that the object must not touch,
// or if clusters share one of this name.
func (e *external) mayManage(ctx context.Context, mg *v1alpha1.VIPService, v registry.View, s *tailscale.Service) error {
	self := e.self(mg)
	if err := registry.Foreign(v, s, string(mg.Spec.ForProvider.Name)); err != nil {
		return err
	}
	if s == nil || s.Annotations[meta.AnnotationOwner] == self.Owner() || lostAnnotations(mg, s) {
		return nil
	}
	if adopt, err := e.mayAdopt(ctx, mg, s); err != nil || adopt {
		return err
	}
	r := &registry.RefusalError{Reason: meta.ReasonForeignService}
	who := "somebody else"
	if o := s.Annotations[meta.AnnotationOwner]; o != "" {
		who = o
	}
	if self.Has(s.Annotations[meta.AnnotationOwner]) {
		r.Reason = meta.ReasonNameTaken
	}
	r.Message = fmt.Sprintf("service %q exists and belongs to %s; choose another name, delete it, or set adoptionPolicy to Adopt", s.Name, who)
	if r.Reason == meta.ReasonNameTaken {
		// A living object of the same cluster keeps its service, whatever others say.
		r.Message = fmt.Sprintf("service %q belongs to %s; choose another name, or delete that object first", s.Name, who)
	}
	return r
}

// foreign is the condition of an object whose service it must not touch.
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
