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
	"k8s.io/utils/ptr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/refgrant"
)

// Secrets are watched by name, and only those whose certificates are to be presented: who
// reads them asks the Store which these are.

const kindSecret = "Secret"

// A ClientCertificate is what Envoy presents to backends. Unless it can, nothing is sent.
type ClientCertificate struct {
	Secret types.NamespacedName

	// Reason and Problem say why it cannot be presented, the latter for people.
	Reason, Problem string

	// Fingerprint is another one when the certificate is.
	Fingerprint string
}

// isSecret reports whether a reference names a Secret.
func isSecret(r gwapiv1.SecretObjectReference) bool {
	return r.Name != "" && ptr.Deref(r.Group, corev1.GroupName) == corev1.GroupName && ptr.Deref(r.Kind, kindSecret) == kindSecret
}

// certificateOf a reference from a namespace.
func certificateOf(namespace string, r gwapiv1.SecretObjectReference) *ClientCertificate {
	return &ClientCertificate{Secret: types.NamespacedName{
		Namespace: string(ptr.Deref(r.Namespace, gwapiv1.Namespace(namespace))), Name: string(r.Name),
	}}
}

// KeyPair of a certificate. Nil if it cannot be presented.
func (s *Snapshot) KeyPair(c *ClientCertificate) *KeyPair {
	if c.Problem != "" {
		return nil
	}
	return s.tables.KeyPairs.Get(c.Secret)
}

// presents are the Secrets of a policy's certificates, each once.
func (p *RoutePolicy) presents() []types.NamespacedName {
	var out []types.NamespacedName
	for _, r := range p.Rules {
		if r.Certificate != nil && r.Problem == "" && !slices.Contains(out, r.Certificate.Secret) {
			out = append(out, r.Certificate.Secret)
		}
	}
	return out
}

// foreign reports whether one is of another namespace.
func (p *RoutePolicy) foreign() bool {
	return slices.ContainsFunc(p.presents(), func(n types.NamespacedName) bool { return n.Namespace != p.Name.Namespace })
}

// certify a policy's rules: tell of each certificate whether it can be presented. Of one
// that is for Gateways of other extensions it is not known.
func (w *world) certify(p *RoutePolicy) {
	for i, r := range p.Rules {
		if r.Certificate == nil || r.Problem != "" {
			continue
		}
		now, c := *r, *r.Certificate
		now.Certificate, p.Rules[i] = &c, &now
		var h *Held
		if len(p.Served) > 0 {
			h = w.held[c.Secret]
		}
		w.judge(&c, policiesOf(p.Name.Namespace), len(p.Served) > 0)
		p.Notices[r.Name] = join(p.Notices[r.Name], notice(&c, h))
	}
}

// judge whether a certificate can be presented. What another extension reads is not known.
func (w *world) judge(c *ClientCertificate, by refgrant.Referrer, read bool) {
	h := w.held[c.Secret]
	switch {
	case !w.permits(by, c.Secret):
		c.Reason = ReasonNotPermitted
		c.Problem = fmt.Sprintf("No ReferenceGrant in namespace %s lets a %s of namespace %s name Secret %s", c.Secret.Namespace, by.Kind, by.Namespace, c.Secret.Name)
	case !read:
	case h == nil:
		c.Reason, c.Problem = ReasonPending, fmt.Sprintf("Secret %s is not known yet", c.Secret)
	default:
		c.Reason, c.Problem, c.Fingerprint = h.Reason, h.Problem, h.Pair.fingerprint()
	}
}

// notice of a rule's certificate.
func notice(c *ClientCertificate, h *Held) string {
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
	return w.grants.Permit(by, corev1.GroupName, kindSecret, secret)
}

// putGrant has policies, Gateways and TailscaleGateways look again at what they may name.
func (w *world) putGrant(d *dirty) {
	d.grants = true
	for n, p := range w.routePolicies {
		if p.foreign() {
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
func (w *world) wanted(p *RoutePolicy) []types.NamespacedName {
	if p == nil || len(p.Served) == 0 {
		return nil
	}
	return slices.DeleteFunc(p.presents(), func(n types.NamespacedName) bool { return !w.permits(policiesOf(p.Name.Namespace), n) })
}

// want Secrets for a policy or a Gateway, instead of those before.
func (s *Store) want(by RouteKey, now []types.NamespacedName) {
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
			s.wants[n] = map[RouteKey]struct{}{}
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
	slices.SortFunc(out, compareNames)
	return out
}

// SecretsChanged is sent to when Secrets may be others than before. It is for one reader.
func (s *Store) SecretsChanged() <-chan struct{} { return s.secrets }

// SetSecret says what is known of a Secret. Nil means nothing.
func (s *Store) SetSecret(n types.NamespacedName, h *Held) {
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
	var now *KeyPair
	if h := s.world.held[n]; h != nil {
		now = h.Pair
	}
	if reflect.DeepEqual(c.next.KeyPairs.Get(n), now) {
		return
	}
	c.next.KeyPairs.Put(c.next, n, now, now == nil)
}
