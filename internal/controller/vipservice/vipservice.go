// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package vipservice holds the controller of VIPServices: Tailscale Services
// that this cluster defines. Who hosts them is decided by agents; approving
// hosts and telling about them is done here.
package vipservice

import (
	"context"
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
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Reasons of events.
const (
	reasonAdopting     event.Reason = "AdoptingVIPService"
	reasonHostApproved event.Reason = "ApprovedHost"
	reasonHostOnline   event.Reason = "HostOnline"
	reasonHostOffline  event.Reason = "HostOffline"
)

// freshDevices is how old the list of devices may be while a service's hosts
// are changing.
const freshDevices = 2 * time.Second

// api is what this controller needs of a tailnet.
type api interface {
	Services(ctx context.Context, maxAge time.Duration) ([]tailscale.Service, error)
	Service(ctx context.Context, name string) (*tailscale.Service, error)
	PutService(ctx context.Context, s tailscale.Service) error
	DeleteService(ctx context.Context, name string) error
	Hosts(ctx context.Context, service string) ([]tailscale.Host, error)
	ApproveHost(ctx context.Context, service, nodeID string) error
	Devices(ctx context.Context, maxAge time.Duration) ([]tailscale.Device, error)
	Domain(ctx context.Context) (string, error)
}

// A connection is a tailnet and how this cluster is called in it.
type connection struct {
	api       api
	clusterID string
}

type connector struct {
	connect func(ctx context.Context, mg resource.ModernManaged) (connection, error)
	// claims tells what the agents of a namespace say about a service.
	claims func(ctx context.Context, namespace, service string) (claims, error)
	hosts  *hostsCache
	record event.Recorder
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
	return &external{connection: conn, claims: c.claims, hosts: c.hosts, record: c.record}, nil
}

// mayExist tells whether a service may have been made for the object.
func mayExist(mg *v1alpha1.VIPService) bool {
	return !xpmeta.GetExternalCreatePending(mg).IsZero() || mg.Status.AtProvider.Name != ""
}

type external struct {
	connection // Without an API if there is nothing to clean up.

	claims func(ctx context.Context, namespace, service string) (claims, error)
	hosts  *hostsCache
	record event.Recorder

	approve []string // Node IDs that Observe found to be approved by Update.
}

// Observe the service in the shared list, and its hosts.
func (e *external) Observe(ctx context.Context, mg *v1alpha1.VIPService) (managed.ExternalObservation, error) {
	if e.api == nil {
		return managed.ExternalObservation{}, nil
	}
	s, err := e.find(ctx, mg)
	if err != nil {
		return managed.ExternalObservation{}, errors.Wrap(err, "cannot get service")
	}
	if s == nil {
		return managed.ExternalObservation{}, nil
	}
	owner := e.owner(mg)
	if xpmeta.WasDeleted(mg) {
		// What is not ours is not ours to delete.
		return managed.ExternalObservation{ResourceExists: s.Annotations[meta.AnnotationOwner] == owner, ResourceUpToDate: true}, nil
	}
	if err := mayManage(mg, s, owner); err != nil {
		mg.SetConditions(foreign(err))
		return managed.ExternalObservation{}, err
	}
	if err := e.observe(ctx, mg, s); err != nil {
		return managed.ExternalObservation{}, err
	}
	d := diff(s, desired(mg, s, owner))
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: d == "" && len(e.approve) == 0, Diff: d}, nil
}

// find returns the service, or nil if there is none.
func (e *external) find(ctx context.Context, mg *v1alpha1.VIPService) (*tailscale.Service, error) {
	name := string(mg.Spec.ForProvider.Name)
	if xpmeta.WasDeleted(mg) {
		s, err := e.api.Service(ctx, name)
		if tailscale.IsNotFound(err) {
			return nil, nil // None is an answer.
		}
		return s, err
	}
	all, err := e.api.Services(ctx, 0)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Name == name {
			return &all[i], nil
		}
	}
	return nil, nil // None is an answer.
}

func (e *external) observe(ctx context.Context, mg *v1alpha1.VIPService, s *tailscale.Service) error {
	o := &mg.Status.AtProvider
	o.Name = s.Name
	o.Addresses = sortAddresses(s.Addrs)
	if err := e.observeHosts(ctx, mg); err != nil {
		return err
	}
	// After the hosts: the list of devices is fresh then, if it had to be.
	domain, err := e.api.Domain(ctx)
	if err != nil {
		return errors.Wrap(err, "cannot learn the tailnet's domain")
	}
	o.DNSName = dnsName(s.Name, domain)
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
	current, err := e.api.Service(ctx, name)
	if tailscale.IsNotFound(err) {
		current, err = nil, nil
	}
	if err != nil {
		return errors.Wrap(err, "cannot get service")
	}
	if err := mayManage(mg, current, owner); err != nil {
		mg.SetConditions(foreign(err))
		return err
	}
	want := desired(mg, current, owner)
	if current != nil {
		if diff(current, want) == "" {
			return nil
		}
		if current.Annotations[meta.AnnotationOwner] != owner {
			e.record.Event(mg, event.Normal(reasonAdopting, "Taking over service "+name+" as adoptionPolicy says"))
		}
	}
	return errors.Wrapf(e.api.PutService(ctx, want), "cannot write service %q", name)
}

// Delete the service, if it is still ours.
func (e *external) Delete(ctx context.Context, mg *v1alpha1.VIPService) (managed.ExternalDelete, error) {
	mg.SetConditions(xpv2.Deleting())
	name := string(mg.Spec.ForProvider.Name)
	s, err := e.api.Service(ctx, name)
	if tailscale.IsNotFound(err) {
		return managed.ExternalDelete{}, nil
	}
	if err != nil {
		return managed.ExternalDelete{}, errors.Wrap(err, "cannot get service")
	}
	if s.Annotations[meta.AnnotationOwner] != e.owner(mg) {
		return managed.ExternalDelete{}, nil
	}
	return managed.ExternalDelete{}, errors.Wrapf(e.api.DeleteService(ctx, name), "cannot delete service %q", name)
}

// Disconnect has nothing to close: clients are shared.
func (e *external) Disconnect(context.Context) error { return nil }

func (e *external) owner(mg *v1alpha1.VIPService) string {
	return e.clusterID + "/" + mg.GetNamespace() + "/" + mg.GetName()
}

// mayManage returns an error if a service exists that the object must not touch.
func mayManage(mg *v1alpha1.VIPService, s *tailscale.Service, owner string) error {
	if s == nil || s.Annotations[meta.AnnotationOwner] == owner || mg.Spec.ForProvider.AdoptionPolicy == v1alpha1.AdoptionPolicyAdopt {
		return nil
	}
	who := "somebody else"
	if o := s.Annotations[meta.AnnotationOwner]; o != "" {
		who = o
	}
	return errors.Errorf("service %q exists and belongs to %s; choose another name, delete it, or set adoptionPolicy to Adopt", s.Name, who)
}

func foreign(err error) xpv2.Condition {
	return xpv2.Condition{
		Type:               xpv2.TypeReady,
		Status:             corev1.ConditionFalse,
		LastTransitionTime: metav1.Now(),
		Reason:             meta.ReasonForeignService,
		Message:            err.Error(),
	}
}
