// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package splitdns holds the controller of SplitDNS objects: nameservers that they add to domains
// of a tailnet, in addition to those of others. A pure function (plan.go) decides what to do from
// the record of the nameservers that an object has added.
package splitdns

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/contention"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/record"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// An api is the part of a tailnet's API that this controller needs.
type api struct {
	dns     dnsAPI
	tailnet tailnetAPI
}

type dnsAPI interface {
	DNS(ctx context.Context, staleness tailscale.Staleness) (tailscale.DNS, error)
	PatchSplitDNS(ctx context.Context, domains map[string][]string) error
}

type tailnetAPI interface {
	Domain(ctx context.Context) (string, error)
}

type external struct {
	kinds.NopDisconnect

	api  api
	kube client.Client
	live client.Reader
}

// Observe compares the nameservers of the object's domains with the spec. An object that is being
// deleted exists as long as some of its nameservers are left.
func (e *external) Observe(ctx context.Context, mg *v1alpha1.SplitDNS) (managed.ExternalObservation, error) {
	if xpmeta.WasDeleted(mg) {
		// This check uses current facts, because nameservers that it misses are never removed.
		remaining := false
		err := e.exclusively(ctx, mg, func(p plan) error {
			remaining = len(p.set)+len(p.handOver) > 0
			return nil
		})
		return managed.ExternalObservation{ResourceExists: remaining, ResourceUpToDate: true}, err
	}
	p, err := e.plan(ctx, mg, e.kube, tailscale.Cached)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if !contention.Writes(mg) {
		mg.SetConditions(xpv2.Available())
		return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
	}
	if !p.done() || contention.NeedsFirstWrite(mg) {
		return managed.ExternalObservation{ResourceExists: !contention.NeedsFirstWrite(mg), Diff: p.diff()}, nil
	}
	mg.SetConditions(p.ready())
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
}

// Create adds the nameservers for the first time.
func (e *external) Create(ctx context.Context, mg *v1alpha1.SplitDNS) (managed.ExternalCreation, error) {
	return managed.ExternalCreation{}, e.put(ctx, mg)
}

// Update adds missing nameservers, and removes the object's nameservers that are no longer wanted.
func (e *external) Update(ctx context.Context, mg *v1alpha1.SplitDNS) (managed.ExternalUpdate, error) {
	if err := e.put(ctx, mg); err != nil {
		return managed.ExternalUpdate{}, err
	}
	p, err := e.plan(ctx, mg, e.kube, tailscale.Cached)
	if err != nil {
		return managed.ExternalUpdate{}, err
	}
	mg.SetConditions(p.ready())
	return managed.ExternalUpdate{}, nil
}

func (e *external) put(ctx context.Context, mg *v1alpha1.SplitDNS) error {
	return e.exclusively(ctx, mg, func(p plan) error {
		if err := e.carryOut(ctx, mg, p); err != nil {
			return err
		}
		return record.Save(ctx, e.kube, mg, annotationRecord, p.result)
	})
}

// exclusively calls fn with a plan from current facts, while no other object of the tailnet reads
// or writes them. Tailscale's API has no precondition against concurrent writes of other programs:
// the next observation corrects a lost update.
func (e *external) exclusively(ctx context.Context, mg *v1alpha1.SplitDNS, fn func(p plan) error) error {
	return contention.Exclusively(ctx, contention.New(mg, mg.Status.AtProvider.Tailnet), func() error {
		p, err := e.plan(ctx, mg, e.live, tailscale.Current)
		if err != nil {
			return err
		}
		return fn(p)
	})
}

// Delete removes the nameservers that the object has added. A nameserver that another object wants,
// but has not recorded yet, belongs to that object from now on.
func (e *external) Delete(ctx context.Context, mg *v1alpha1.SplitDNS) (managed.ExternalDelete, error) {
	mg.SetConditions(xpv2.Deleting())
	return managed.ExternalDelete{}, e.exclusively(ctx, mg, func(p plan) error {
		return e.carryOut(ctx, mg, p)
	})
}

// plan reads the settings into the object's status and plans the changes.
func (e *external) plan(ctx context.Context, mg *v1alpha1.SplitDNS, kube client.Reader, staleness tailscale.Staleness) (plan, error) {
	r, err := readRecord(mg)
	if err != nil {
		return plan{}, err
	}
	d, err := e.api.dns.DNS(ctx, staleness)
	if err != nil {
		return plan{}, errors.Wrap(err, "cannot get DNS settings")
	}
	observe(mg, d)
	mg.Status.AtProvider.Tailnet = contention.Tailnet(ctx, e.api.tailnet, mg.Status.AtProvider.Tailnet)
	s := situation{current: currentServers(d.SplitDNS), record: r}
	if !xpmeta.WasDeleted(mg) {
		s.wanted = wantedServers(mg.Spec.ForProvider)
	}
	if err := readSiblings(ctx, kube, mg, &s); err != nil {
		return plan{}, err
	}
	return decide(s), nil
}

// readSiblings reads the nameservers that other objects of the cluster want in the same tailnet.
// The domains of a DNS object belong to it alone, whatever its age, because it sets all nameservers
// of a domain.
func readSiblings(ctx context.Context, kube client.Reader, mg *v1alpha1.SplitDNS, s *situation) error {
	self := contention.New(mg, mg.Status.AtProvider.Tailnet)
	siblings := &v1alpha1.SplitDNSList{}
	if err := kube.List(ctx, siblings, client.UnsafeDisableDeepCopy); err != nil {
		return errors.Wrap(err, "cannot list SplitDNS objects")
	}
	for o := range contention.Siblings(self, siblings.Items, contender) {
		sib := sibling{object: o}
		if contention.Writes(o) && !xpmeta.WasDeleted(o) {
			sib.wanted = wantedServers(o.Spec.ForProvider)
		}
		// The controller reports a record that is not valid on the other object.
		if r, err := readRecord(o); err == nil {
			sib.record = r
		} else {
			sib.object = nil
		}
		s.siblings = append(s.siblings, sib)
	}
	owners := &v1alpha1.DNSList{}
	if err := kube.List(ctx, owners, client.UnsafeDisableDeepCopy); err != nil {
		return errors.Wrap(err, "cannot list DNS objects")
	}
	s.lost = map[string]contention.Contender{}
	for o, c := range contention.Siblings(self, owners.Items, ownerOf) {
		if !contention.Writes(o) || xpmeta.WasDeleted(o) {
			continue
		}
		for _, d := range o.Spec.ForProvider.SplitDNS {
			s.lost[d.Domain] = c
		}
	}
	return nil
}

// contender returns the contender of an object.
func contender(o *v1alpha1.SplitDNS) contention.Contender {
	return contention.New(o, o.Status.AtProvider.Tailnet)
}

// ownerOf returns the contender of a DNS object.
func ownerOf(o *v1alpha1.DNS) contention.Contender {
	return contention.New(o, o.Status.AtProvider.Tailnet)
}

// carryOut records a plan and writes it.
func (e *external) carryOut(ctx context.Context, mg *v1alpha1.SplitDNS, p plan) error {
	for _, h := range p.handOver {
		if err := record.Save(ctx, e.kube, h.object, annotationRecord, h.record); err != nil {
			return errors.Wrapf(err, "cannot hand nameservers over to SplitDNS %q", h.object.GetName())
		}
	}
	if err := record.Save(ctx, e.kube, mg, annotationRecord, p.intent); err != nil {
		return err
	}
	if len(p.set) == 0 {
		return nil
	}
	err := errors.Wrap(e.api.dns.PatchSplitDNS(ctx, p.set), "cannot write split DNS")
	if tailscale.IsRefused(err) {
		// A refused nameserver does not belong to the object: somebody else may add it.
		return errors.Join(err, record.Correct(ctx, e.kube, e.live, mg, annotationRecord, p.current))
	}
	return err
}

// observe copies the settings: they are shared, and the API server's responses are decoded into the
// status.
func observe(mg *v1alpha1.SplitDNS, d tailscale.DNS) {
	mg.Status.AtProvider.Domains = nil
	for _, domain := range slices.Sorted(slices.Values(mg.Spec.ForProvider.Domains)) {
		if ns := d.SplitDNS[domain]; len(ns) > 0 {
			mg.Status.AtProvider.Domains = append(mg.Status.AtProvider.Domains, v1alpha1.SplitDNSObservation{Domain: domain, Nameservers: slices.Clone(ns)})
		}
	}
}
