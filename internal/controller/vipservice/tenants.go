// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Objects of several tenants share one tailnet. This file keeps an object from changing what
// belongs to another one.

// selected returns the machines of the endpoints that should host a service: those with a
// ServiceAttachment for it. It ignores reports about the service from agents of other endpoints.
func selected(machines []v1alpha1.Machine, attachments []v1alpha1.ServiceAttachment, service string) []v1alpha1.Machine {
	endpoints := map[string]bool{}
	for _, a := range attachments {
		if string(a.Spec.ServiceName) == service && a.Spec.Direction == v1alpha1.DirectionIngress {
			endpoints[a.Spec.Endpoints] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(machines), func(m v1alpha1.Machine) bool { return !endpoints[m.GetLabels()[meta.LabelEndpoints]] })
}

// readReports returns a function that reads the agents' reports about a service.
func readReports(kube client.Reader) func(ctx context.Context, namespace, service string) (reports, error) {
	return func(ctx context.Context, namespace, service string) (reports, error) {
		machines, attachments := &v1alpha1.MachineList{}, &v1alpha1.ServiceAttachmentList{}
		for _, l := range []client.ObjectList{machines, attachments} {
			if err := kube.List(ctx, l, client.InNamespace(namespace)); err != nil {
				return nil, err
			}
		}
		return agentReports(selected(machines.Items, attachments.Items, service), service), nil
	}
}

// ownerExists returns a function that reports whether the object that an owner names exists in this
// cluster and wants a service. owner is the value of an annotation.
func ownerExists(kube client.Reader) func(ctx context.Context, owner string) (bool, error) {
	return func(ctx context.Context, owner string) (bool, error) {
		namespace, name, ok := registry.OwnerObject(owner)
		if !ok {
			return false, nil
		}
		v := &v1alpha1.VIPService{}
		err := kube.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, v)
		if err != nil {
			return false, client.IgnoreNotFound(err)
		}
		return true, nil
	}
}

// mayAdopt reports whether an object may take over services that are not its own: adoptionPolicy
// allows it, and no other object of this cluster has one of them. The services may be nil.
func (e *external) mayAdopt(ctx context.Context, mg *v1alpha1.VIPService, services ...*tailscale.Service) (bool, error) {
	if mg.Spec.ForProvider.AdoptionPolicy != v1alpha1.AdoptionPolicyAdopt {
		return false, nil
	}
	self := e.self(mg)
	for _, s := range services {
		if s == nil {
			continue
		}
		owner := s.Annotations[meta.AnnotationOwner]
		if owner == self.Owner() || !self.Has(owner) {
			continue
		}
		living, err := e.lives(ctx, owner)
		if err != nil {
			return false, errors.Wrapf(err, "cannot see whether %s exists, which has service %q", owner, s.Name)
		}
		if living {
			return false, nil
		}
	}
	return true, nil
}
