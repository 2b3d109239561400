// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/internal/refgrant"
)

// certify a policy's rules: tell of each certificate whether it can be presented. Of one
// that is for Gateways of other extensions it is not known.
func (w *world) certify(p *ir.RoutePolicy) {
	for i, r := range p.Rules {
		if r.Certificate == nil || r.Problem != "" {
			continue
		}
		now, c := *r, *r.Certificate
		now.Certificate, p.Rules[i] = &c, &now
		var h *ir.CertificateSecret
		if len(p.Served) > 0 {
			h = w.held[c.Secret]
		}
		w.judge(&c, policiesOf(p.Name.Namespace), len(p.Served) > 0)
		p.Notices[r.Name] = join(p.Notices[r.Name], notice(&c, h))
	}
}

// judge whether a certificate can be presented. What another extension reads is not known.
func (w *world) judge(c *ir.ClientCertificate, by refgrant.Referrer, read bool) {
	h := w.held[c.Secret]
	switch {
	case !w.permits(by, c.Secret):
		c.Reason = ir.ReasonNotPermitted
		c.Problem = fmt.Sprintf("No ReferenceGrant in namespace %s lets a %s of namespace %s name Secret %s", c.Secret.Namespace, by.Kind, by.Namespace, c.Secret.Name)
	case !read:
	case h == nil:
		c.Reason, c.Problem = ir.ReasonPending, fmt.Sprintf("Secret %s is not known yet", c.Secret)
	default:
		c.Reason, c.Problem, c.Fingerprint = h.Reason, h.Problem, h.Pair.Fingerprint()
	}
}

// notice of a rule's certificate.
func notice(c *ir.ClientCertificate, h *ir.CertificateSecret) string {
	switch {
	case c.Problem != "":
		return "Requests are answered 503: " + c.Problem
	case h != nil && h.Pair != nil:
		said := fmt.Sprintf("Presents a certificate that is valid until %s", h.Pair.Until.Format(time.RFC3339))
		if !h.Pair.Client {
			said += ", and not meant for clients: backends may refuse it"
		}
		return said
	}
	return ""
}

// join what there is to say of a rule.
func join(was, said string) string {
	if was != "" && said != "" {
		return was + "; " + said
	}
	return was + said
}

// permits reports whether a Secret may be named.
func (w *world) permits(by refgrant.Referrer, secret types.NamespacedName) bool {
	return w.grants.Permit(by, corev1.GroupName, parse.KindSecret, secret)
}

// putGrant has policies, Gateways and TailscaleGateways look again at what they may name.
func (w *world) putGrant(d *dirty) {
	d.grants = true
	for n, p := range w.routePolicies {
		if p.NamesForeignSecret() {
			d.policies[n] = struct{}{}
		}
	}
	for n, c := range w.certificates {
		if c.Secret.Namespace != n.Namespace {
			d.certificates[n] = struct{}{}
		}
	}
	for n, g := range w.joined {
		if n.Namespace != g.Namespace {
			d.identities[g] = struct{}{}
		}
	}
}

// wanted Secrets of a policy are those that may be read for it.
func (w *world) wanted(p *ir.RoutePolicy) []types.NamespacedName {
	if p == nil || len(p.Served) == 0 {
		return nil
	}
	return slices.DeleteFunc(p.CertificateSecrets(), func(n types.NamespacedName) bool { return !w.permits(policiesOf(p.Name.Namespace), n) })
}

// want Secrets for a policy or a Gateway, instead of those before.
func (s *Store) want(by ir.RouteKey, now []types.NamespacedName) {
	changed := false
	for n, of := range s.wants {
		if _, ok := of[by]; !ok || slices.Contains(now, n) {
			continue
		}
		if delete(of, by); len(of) == 0 {
			delete(s.wants, n)
			changed = true
		}
	}
	for _, n := range now {
		if s.wants[n] == nil {
			s.wants[n] = map[ir.RouteKey]struct{}{}
			changed = true
		}
		s.wants[n][by] = struct{}{}
	}
	if !changed {
		return
	}
	select {
	case s.secrets <- struct{}{}:
	default:
	}
}

// Secrets are those whose certificates are to be presented, sorted.
func (s *Store) Secrets() []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]types.NamespacedName, 0, len(s.wants))
	for n := range s.wants {
		out = append(out, n)
	}
	slices.SortFunc(out, ir.CompareNames)
	return out
}

// SecretsChanged is sent to when Secrets may be others than before. It is for one reader.
func (s *Store) SecretsChanged() <-chan struct{} { return s.secrets }

// SetSecret says what is known of a Secret. Nil means nothing.
func (s *Store) SetSecret(n types.NamespacedName, h *ir.CertificateSecret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := time.Now()
	if reflect.DeepEqual(s.world.held[n], h) {
		return
	}
	put(s.world.held, n, h, h == nil)
	d := newDirty()
	d.secrets[n] = struct{}{}
	for by := range s.wants[n] {
		if by.Kind == kindCertificate {
			d.certificates[by.NamespacedName] = struct{}{}
			continue
		}
		d.policies[by.NamespacedName] = struct{}{}
	}
	s.advance(d, began)
}

// retellPolicies where certificates are presented: whether backends speak TLS decides that.
func (s *Store) retellPolicies(c *change) {
	if len(s.wants) > 0 {
		c.next.PolicyRevision++
	}
}

// advanceSecret takes over which certificate a Secret has.
func (s *Store) advanceSecret(c *change, n types.NamespacedName) {
	var now *ir.KeyPair
	if h := s.world.held[n]; h != nil {
		now = h.Pair
	}
	if reflect.DeepEqual(c.next.KeyPairs.Get(n), now) {
		return
	}
	c.next.KeyPairs.Put(c.next, n, now, now == nil)
}
