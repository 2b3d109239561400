// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package dns holds the controller of DNS objects: parts of a tailnet's DNS settings. A pure
// function (plan.go) decides what to do from the parts (parts.go) and the record of the values that
// an object has set (record.go).
package dns

import (
	"context"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/contention"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/record"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const (
	reasonAdopting        event.Reason = "AdoptingDNS"
	reasonMagicDNSRefused event.Reason = "MagicDNSRefused"

	// maxShownDomains limits the status.
	maxShownDomains = 256
)

// An api is the part of a tailnet's API that this controller needs.
type api struct {
	dns     dnsAPI
	tailnet tailnetAPI
}

type dnsAPI interface {
	DNS(ctx context.Context, staleness tailscale.Staleness) (tailscale.DNS, error)
	OverrideLocalDNS(ctx context.Context, staleness tailscale.Staleness) (bool, error)
	SetNameservers(ctx context.Context, addresses []string) error
	SetSearchPaths(ctx context.Context, paths []string) error
	PatchSplitDNS(ctx context.Context, domains map[string][]string) error
	SetMagicDNS(ctx context.Context, enabled bool) error
	SetOverrideLocalDNS(ctx context.Context, enabled bool) error
}

type tailnetAPI interface {
	Domain(ctx context.Context) (string, error)
}

type external struct {
	kinds.NopDisconnect

	api    api
	kube   client.Client
	live   client.Reader
	events event.Recorder
}

// Observe reads the tailnet's DNS settings and plans the changes. An object that is being deleted
// exists as long as some of its parts are left.
func (e *external) Observe(ctx context.Context, mg *v1alpha1.DNS) (managed.ExternalObservation, error) {
	if xpmeta.WasDeleted(mg) {
		// This check uses current facts, because parts that it misses are never removed.
		remaining := false
		err := e.exclusively(ctx, mg, func(p plan) error {
			remaining = len(p.set) > 0
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
	if !p.done() {
		return managed.ExternalObservation{ResourceExists: !contention.NeedsFirstWrite(mg), Diff: p.diff()}, nil
	}
	mg.SetConditions(p.ready())
	if err := p.blocked(); err != nil {
		return managed.ExternalObservation{}, err
	}
	if contention.NeedsFirstWrite(mg) {
		return managed.ExternalObservation{}, nil
	}
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
}

// Create writes the parts for the first time. The next observation reports parts that it could not
// write.
func (e *external) Create(ctx context.Context, mg *v1alpha1.DNS) (managed.ExternalCreation, error) {
	return managed.ExternalCreation{}, e.put(ctx, mg)
}

// Update writes the parts that differ from the spec, and removes those that are no longer wanted.
func (e *external) Update(ctx context.Context, mg *v1alpha1.DNS) (managed.ExternalUpdate, error) {
	if err := e.put(ctx, mg); err != nil {
		return managed.ExternalUpdate{}, err
	}
	p, err := e.plan(ctx, mg, e.kube, tailscale.Cached)
	if err != nil {
		return managed.ExternalUpdate{}, err
	}
	mg.SetConditions(p.ready())
	return managed.ExternalUpdate{}, p.blocked()
}

// exclusively calls fn with a plan from current facts, while no other object of the tailnet reads
// or writes them.
func (e *external) exclusively(ctx context.Context, mg *v1alpha1.DNS, fn func(p plan) error) error {
	return contention.Exclusively(ctx, contention.New(mg, mg.Status.AtProvider.Tailnet), func() error {
		p, err := e.plan(ctx, mg, e.live, tailscale.Current)
		if err != nil {
			return err
		}
		return fn(p)
	})
}

func (e *external) put(ctx context.Context, mg *v1alpha1.DNS) error {
	return e.exclusively(ctx, mg, func(p plan) error { return e.write(ctx, mg, p) })
}

func (e *external) write(ctx context.Context, mg *v1alpha1.DNS, p plan) error {
	if len(p.adopted) > 0 {
		e.events.Event(mg, event.Normal(reasonAdopting, "Taking over "+strings.Join(p.adopted, ", ")+" as adoptionPolicy says"))
	}
	written, err := e.carryOut(ctx, mg, p)
	if errors.Is(err, errMagicDNS) && asksForMagicDNS(mg) {
		mg.SetConditions(contention.NotReady(meta.ReasonMagicDNSRefused, errMagicDNS.Error()))
		return err
	}
	if errors.Is(err, errMagicDNS) {
		err = e.putBack(ctx, mg, p)
	}
	if tailscale.IsRefused(err) {
		// A refused part does not belong to the object: somebody else may set it.
		return errors.Join(err, record.Correct(ctx, e.kube, e.live, mg, annotationRecord, p.partial(written)))
	}
	if err != nil {
		return err
	}
	return record.Save(ctx, e.kube, mg, annotationRecord, p.result)
}

// Delete removes the values that the object has set and that were not changed since.
func (e *external) Delete(ctx context.Context, mg *v1alpha1.DNS) (managed.ExternalDelete, error) {
	mg.SetConditions(xpv2.Deleting())
	return managed.ExternalDelete{}, e.exclusively(ctx, mg, func(p plan) error {
		_, err := e.carryOut(ctx, mg, p)
		if !errors.Is(err, errMagicDNS) {
			return err
		}
		if err := e.putBack(ctx, mg, p); err != nil {
			return err
		}
		// A restored part no longer belongs to the object, so that the object can be deleted.
		return record.Save(ctx, e.kube, mg, annotationRecord, p.result)
	})
}

// putBack restores the nameservers that were removed, and MagicDNS. Removing the last nameserver
// turns MagicDNS off, and with it the names of all devices and services. Tailscale's documents say
// that MagicDNS cannot be turned on again without a nameserver; some tailnets have MagicDNS without
// one.
func (e *external) putBack(ctx context.Context, mg *v1alpha1.DNS, p plan) error {
	if len(p.removed) == 0 {
		e.events.Event(mg, event.Warning(reasonMagicDNSRefused, errMagicDNS))
		return nil
	}
	if err := e.api.dns.SetNameservers(ctx, p.removed); err != nil {
		return errors.Wrap(err, "cannot put nameservers back")
	}
	if err := e.api.dns.SetMagicDNS(ctx, true); err != nil {
		return errors.Wrap(err, "cannot turn MagicDNS on again")
	}
	e.events.Event(mg, event.Warning(reasonMagicDNSRefused, errors.Errorf(
		"left the nameservers %s in the tailnet: Tailscale turns MagicDNS off without any; set others, or turn MagicDNS off, and remove them in the admin console", strings.Join(p.removed, ", "))))
	return nil
}

// plan reads the settings into the object's status and plans the changes.
func (e *external) plan(ctx context.Context, mg *v1alpha1.DNS, kube client.Reader, staleness tailscale.Staleness) (plan, error) {
	r, err := readRecord(mg)
	if err != nil {
		return plan{}, err
	}
	d, err := e.api.dns.DNS(ctx, staleness)
	if err != nil {
		return plan{}, errors.Wrap(err, "cannot get DNS settings")
	}
	s := situation{record: r, adopt: mg.Spec.ForProvider.AdoptionPolicy == v1alpha1.AdoptionPolicyAdopt}
	var override *bool
	if !xpmeta.WasDeleted(mg) {
		s.wanted = wantedParts(mg.Spec.ForProvider)
		if _, ok := s.wanted[partOverrideLocalDNS]; ok {
			enabled, err := e.api.dns.OverrideLocalDNS(ctx, staleness)
			if err != nil {
				return plan{}, errors.Wrap(err, "cannot get DNS configuration")
			}
			override = &enabled
		}
	}
	s.current = currentParts(d, override)
	observe(&mg.Status.AtProvider, d, override)
	mg.Status.AtProvider.Tailnet = contention.Tailnet(ctx, e.api.tailnet, mg.Status.AtProvider.Tailnet)
	if s.lost, s.siblings, err = findConflicts(ctx, kube, mg, s); err != nil {
		return plan{}, err
	}
	return decide(s), nil
}

// findConflicts returns the parts that belong to older objects, and the records of all objects of
// the same tailnet.
func findConflicts(ctx context.Context, kube client.Reader, mg *v1alpha1.DNS, s situation) (map[string]contention.Contender, []values, error) {
	l := &v1alpha1.DNSList{}
	if err := kube.List(ctx, l, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, errors.Wrap(err, "cannot list DNS objects")
	}
	// Parts in the record count as well: an older object may want them now.
	mine := append(slices.Collect(maps.Keys(s.wanted)), slices.Collect(maps.Keys(s.record))...)
	self := contention.New(mg, mg.Status.AtProvider.Tailnet, mine...)
	var others []contention.Contender
	var records []values
	for o, c := range contention.Siblings(self, l.Items, contender) {
		if contention.Writes(o) {
			others = append(others, c)
		}
		// The controller reports a record that is not valid on the other object.
		if r, err := readRecord(o); err == nil {
			records = append(records, r)
		}
	}
	return contention.Conflicts(self, others), records, nil
}

// contender returns the contender for the parts that an object names.
func contender(o *v1alpha1.DNS) contention.Contender {
	return contention.New(o, o.Status.AtProvider.Tailnet, slices.Collect(maps.Keys(wantedParts(o.Spec.ForProvider)))...)
}

// carryOut records a plan and writes its parts, and returns those that it has written. MagicDNS is last,
// because nameservers may change it.
func (e *external) carryOut(ctx context.Context, mg *v1alpha1.DNS, p plan) (written []string, err error) {
	if err := record.Save(ctx, e.kube, mg, annotationRecord, p.intent); err != nil {
		return nil, err
	}
	domains := map[string][]string{}
	var split []string
	for part, values := range p.set {
		if d, ok := splitDomain(part); ok {
			domains[d] = values
			split = append(split, part)
		}
	}
	if len(domains) > 0 {
		if err := e.api.dns.PatchSplitDNS(ctx, domains); err != nil {
			return nil, errors.Wrap(err, "cannot write split DNS")
		}
		written = append(written, split...)
	}
	if v, ok := p.set[partSearchPaths]; ok {
		if err := e.api.dns.SetSearchPaths(ctx, v); err != nil {
			return written, errors.Wrap(err, "cannot write search paths")
		}
		written = append(written, partSearchPaths)
	}
	if v, ok := p.set[partNameservers]; ok {
		if err := e.api.dns.SetNameservers(ctx, v); err != nil {
			return written, errors.Wrap(err, "cannot write nameservers")
		}
		written = append(written, partNameservers)
	}
	if v, ok := p.set[partOverrideLocalDNS]; ok {
		if err := e.api.dns.SetOverrideLocalDNS(ctx, isOn(v)); err != nil {
			return written, errors.Wrap(err, "cannot write overrideLocalDNS")
		}
		written = append(written, partOverrideLocalDNS)
	}
	if v, ok := p.set[partMagicDNS]; ok {
		err := e.api.dns.SetMagicDNS(ctx, isOn(v))
		if tailscale.ClassOf(err) == tailscale.ClassInvalid {
			return written, errors.Join(errMagicDNS, err)
		}
		if err != nil {
			return written, errors.Wrap(err, "cannot write MagicDNS")
		}
		written = append(written, partMagicDNS)
	}
	return written, nil
}

// asksForMagicDNS reports whether the object itself turns MagicDNS on.
func asksForMagicDNS(mg *v1alpha1.DNS) bool {
	want, ok := wantedParts(mg.Spec.ForProvider)[partMagicDNS]
	return ok && isOn(want)
}

// errMagicDNS means that Tailscale refused to turn MagicDNS on. Tailscale requires a nameserver for
// that: "need at least one nameserver to enable MagicDNS".
var errMagicDNS = errors.New("Tailscale does not turn MagicDNS on: add nameservers, or set magicDNS to false")

// observe copies the settings: they are shared, and the API server's responses are decoded into the
// status.
func observe(o *v1alpha1.DNSObservation, d tailscale.DNS, override *bool) {
	o.Nameservers, o.SearchPaths = slices.Clone(d.Nameservers), slices.Clone(d.SearchPaths)
	o.MagicDNS, o.OverrideLocalDNS = &d.MagicDNS, override
	o.SplitDNS = nil
	domains := slices.Sorted(maps.Keys(d.SplitDNS))
	for _, domain := range domains[:min(len(domains), maxShownDomains)] {
		o.SplitDNS = append(o.SplitDNS, v1alpha1.SplitDNSObservation{Domain: domain, Nameservers: slices.Clone(d.SplitDNS[domain])})
	}
}
