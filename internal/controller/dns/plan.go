// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/contention"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// A situation holds all inputs of a plan.
type situation struct {
	// wanted is empty for an object that is being deleted.
	wanted  parts
	current parts
	record  values

	// lost are the parts that belong to an older object.
	lost map[string]contention.Contender

	// siblings are the records of other objects of the same tailnet.
	siblings []values

	adopt bool
}

// A plan describes the changes for an object, and what prevents others.
type plan struct {
	// set are the parts to write; those without values are removed.
	set parts

	// intent and result are the records to save before and after the write.
	intent, result values

	current values
	lost    map[string]contention.Contender

	// removed are the nameservers that the plan removes, or has removed before a crash.
	removed []string

	// foreign are parts that another client set; adopted are such parts that the object takes over.
	// Both are sorted.
	foreign, adopted []string
}

// decide returns the plan for a situation.
func decide(s situation) plan {
	p := plan{set: parts{}, intent: values{}, result: values{}, current: s.record, lost: map[string]contention.Contender{}}
	for _, part := range slices.Sorted(maps.Keys(s.wanted)) {
		s.planWanted(&p, part)
	}
	for _, part := range slices.Sorted(maps.Keys(s.record)) {
		s.planUnwanted(&p, part)
	}
	s.restoreMagicDNS(&p)
	for part, values := range p.result {
		p.intent[part] = values
	}
	for part := range p.set {
		if _, ours := s.record[part]; ours || !isSwitch(part) {
			p.intent[part] = join(p.result[part], s.record[part])
		}
	}
	return p
}

// partial returns the record of an object that has written only some parts: of the others it has what it
// had before.
func (p plan) partial(written []string) values {
	out := maps.Clone(p.intent)
	for part := range p.set {
		if slices.Contains(written, part) {
			continue
		}
		delete(out, part)
		if previous, ok := p.current[part]; ok {
			out[part] = previous
		}
	}
	return out
}

// planWanted plans a part that is wanted.
func (s situation) planWanted(p *plan, part string) {
	want, current := s.wanted[part], s.current[part]
	if holder, ok := s.lost[part]; ok {
		p.lost[part] = holder
		return
	}
	if !isSwitch(part) {
		if s.isForeign(part) {
			if !s.adopt {
				p.foreign = append(p.foreign, part)
				return
			}
			p.adopted = append(p.adopted, part)
		}
		p.result[part] = [][]string{want}
	}
	if !slices.Equal(want, current) {
		p.set[part] = want
	}
}

// isForeign reports whether a part has other values than the wanted ones, and none of this
// cluster's objects has set them.
func (s situation) isForeign(part string) bool {
	current := s.current[part]
	if _, ours := s.record[part]; ours || len(current) == 0 || slices.Equal(current, s.wanted[part]) {
		return false
	}
	return !slices.ContainsFunc(s.siblings, func(r values) bool { return r.hasSet(part, current) })
}

// planUnwanted plans a part that belongs to the object and may no longer be wanted. It is removed
// unless it has another owner now or another client has changed it.
func (s situation) planUnwanted(p *plan, part string) {
	_, wanted := s.wanted[part]
	_, lost := s.lost[part]
	if isSwitch(part) || wanted && !lost {
		return
	}
	if lost && slices.ContainsFunc(s.siblings, func(r values) bool { return r[part] != nil }) {
		return
	}
	if wanted {
		// Until the new owner takes the part over, the record shows the new owner that an object of
		// the cluster has set the part.
		p.result[part] = s.record[part]
		return
	}
	if current := s.current[part]; len(current) > 0 && s.record.hasSet(part, current) {
		p.set[part] = nil
	}
}

// restoreMagicDNS turns MagicDNS on again if removing the last nameserver turns it off, or has done
// so before a crash.
func (s situation) restoreMagicDNS(p *plan) {
	if want, ok := s.wanted[partMagicDNS]; ok && !isOn(want) {
		return
	}
	_, owed := s.record[partMagicDNS]
	ns, setting := p.set[partNameservers]
	removing := setting && len(ns) == 0 && isOn(s.current[partMagicDNS])
	if !removing && (!owed || isOn(s.current[partMagicDNS])) {
		return
	}
	p.removed = s.current[partNameservers]
	if entries := s.record[partNameservers]; len(p.removed) == 0 && len(entries) > 0 {
		p.removed = entries[len(entries)-1]
	}
	p.set[partMagicDNS] = toggle(true)
	p.intent[partMagicDNS] = [][]string{toggle(true)}
}

// join returns the values of both without duplicates.
func join(a, b [][]string) [][]string {
	out := slices.Clone(a)
	for _, v := range b {
		if !slices.ContainsFunc(out, func(o []string) bool { return slices.Equal(o, v) }) {
			out = append(out, v)
		}
	}
	return out
}

// done reports whether there are no more changes.
func (p plan) done() bool { return len(p.set) == 0 && reflect.DeepEqual(p.result, p.current) }

// diff returns the names of the parts to write.
func (p plan) diff() string {
	var out []string
	for _, part := range slices.Sorted(maps.Keys(p.set)) {
		out = append(out, fmt.Sprintf("%s: want %v", part, p.set[part]))
	}
	return strings.Join(out, "; ")
}

// blocked returns an error if some wanted parts cannot be set.
func (p plan) blocked() error {
	var reasons []string
	if m := contention.Message(v1alpha1.DNSKind, p.lost); m != "" {
		reasons = append(reasons, m)
	}
	if len(p.foreign) > 0 {
		shown := p.foreign[:min(len(p.foreign), 3)]
		m := "Set by somebody else: " + strings.Join(shown, ", ")
		if more := len(p.foreign) - len(shown); more > 0 {
			m += fmt.Sprintf(" and %d more", more)
		}
		reasons = append(reasons, m+"; ask for the same values, remove them from the tailnet, or set adoptionPolicy to Adopt")
	}
	if len(reasons) == 0 {
		return nil
	}
	return errors.New(strings.Join(reasons, ". "))
}

// ready returns the Ready condition of an object without further changes.
func (p plan) ready() xpv2.Condition {
	err := p.blocked()
	switch {
	case err == nil:
		return xpv2.Available()
	case len(p.lost) > 0:
		return contention.NotReady(meta.ReasonConflict, err.Error())
	}
	return contention.NotReady(meta.ReasonForeignObject, err.Error())
}
