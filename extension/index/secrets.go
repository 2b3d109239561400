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
	"github.com/tailscale-gateway/tailscale-gateway/extension/limits"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/internal/refgrant"
)

// secretObjects are the states of Secrets with client certificates, and the shares of policies and of
// Gateways in the Secrets that are watched.
type secretObjects struct {
	clientSecrets                 map[types.NamespacedName]*ir.CertificateSecret
	policySecrets, gatewaySecrets *objectShares

	// secretsChanged receives a value when other Secrets are admitted.
	secretsChanged chan struct{}
}

func newSecretObjects() secretObjects {
	c := make(chan struct{}, 1)
	return secretObjects{
		clientSecrets: map[types.NamespacedName]*ir.CertificateSecret{}, secretsChanged: c,
		policySecrets:  newObjectShares(limits.NamespaceSecrets, limits.Secrets, c),
		gatewaySecrets: newObjectShares(limits.NamespaceSecrets, limits.Secrets, c),
	}
}

// checkCertificates sets the states of the client certificates of a policy's rules. The
// states of certificates for Gateways of other extensions are not known.
func (all *objects) checkCertificates(p *ir.RoutePolicy) {
	for i, r := range p.Rules {
		if r.Certificate == nil || r.Problem != "" {
			continue
		}
		updated, c := *r, *r.Certificate
		updated.Certificate, p.Rules[i] = &c, &updated
		var h *ir.CertificateSecret
		if len(p.Served) > 0 {
			h = all.clientSecrets[c.Secret]
		}
		all.checkCertificate(&c, policiesOf(p.Name.Namespace), len(p.Served) > 0, all.policySecrets)
		p.Notices[r.Name] = join(p.Notices[r.Name], notice(&c, h))
	}
}

// checkCertificate sets the state of a client certificate. If read is false, another
// extension reads the Secret, and its state is not known. The Secret needs one of the shares.
func (all *objects) checkCertificate(c *ir.ClientCertificate, referrer refgrant.Referrer, read bool, shares *objectShares) {
	h := all.clientSecrets[c.Secret]
	switch {
	case !all.permits(referrer, c.Secret):
		c.Reason = ir.ReasonNotPermitted
		c.Problem = fmt.Sprintf("No ReferenceGrant in namespace %s lets a %s of namespace %s name Secret %s", c.Secret.Namespace, referrer.Kind, referrer.Namespace, c.Secret.Name)
	case !read:
	case !shares.admits(referrer.Namespace, c.Secret):
		c.Reason = ir.ReasonTooManySecrets
		c.Problem = fmt.Sprintf("Secret %s is not read: %s objects of namespace %s name more than %d Secrets, or all namespaces more than %d, and this one belongs to the newest; name fewer Secrets", c.Secret, referrer.Kind, referrer.Namespace, limits.NamespaceSecrets, limits.Secrets)
	case h == nil:
		c.Reason, c.Problem = ir.ReasonPending, fmt.Sprintf("Secret %s is not known yet", c.Secret)
	default:
		c.Reason, c.Problem, c.Fingerprint = h.Reason, h.Problem, h.Pair.Fingerprint()
	}
}

// notice returns the notice on the client certificate of a rule.
func notice(c *ir.ClientCertificate, h *ir.CertificateSecret) string {
	switch {
	case c.Problem != "":
		return "Requests are answered 503: " + c.Problem
	case h != nil && h.Pair != nil:
		text := fmt.Sprintf("Presents a certificate that is valid until %s", h.Pair.Expiry.Format(time.RFC3339))
		if !h.Pair.Client {
			text += ", and not meant for clients: backends may refuse it"
		}
		return text
	}
	return ""
}

// join joins two notices.
func join(existing, message string) string {
	if existing != "" && message != "" {
		return existing + "; " + message
	}
	return existing + message
}

// permits reports whether a referrer may name a Secret.
func (all *objects) permits(referrer refgrant.Referrer, secret types.NamespacedName) bool {
	return all.grants.Permit(referrer, corev1.GroupName, parse.KindSecret, secret)
}

// readableSecrets returns the Secrets that may be read for a policy.
func (all *objects) readableSecrets(p *ir.RoutePolicy) []types.NamespacedName {
	if p == nil || len(p.Served) == 0 {
		return nil
	}
	return slices.DeleteFunc(p.CertificateSecrets(), func(n types.NamespacedName) bool { return !all.permits(policiesOf(p.Name.Namespace), n) })
}

// readSecrets replaces the Secrets that may be read for a policy or Gateway.
func readSecrets(s *Store, reader entry, shares *objectShares, want objectWant) {
	for _, n := range shares.wants[reader.Namespace][reader].names {
		if slices.Contains(want.names, n) {
			continue
		}
		if delete(s.readers[n], reader); len(s.readers[n]) == 0 {
			delete(s.readers, n)
		}
	}
	for _, n := range want.names {
		if s.readers[n] == nil {
			s.readers[n] = map[entry]struct{}{}
		}
		s.readers[n][reader] = struct{}{}
	}
	shares.set(reader, want)
}

// Secrets returns the Secrets with client certificates to present, sorted. Only these are
// watched, each by name.
func (s *Store) Secrets() []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return admitted(s.objects.policySecrets, s.objects.gatewaySecrets)
}

// SecretsChanged returns a channel that receives a value when Secrets may have changed. It
// is for one reader.
func (s *Store) SecretsChanged() <-chan struct{} { return s.objects.secretsChanged }

// recomputeSecrets updates the key pairs of the marked Secrets.
func recomputeSecrets(s *Store, e *edit) {
	for c := range e.marked(secretSection) {
		n := c.NamespacedName
		var pair *ir.KeyPair
		if h := s.objects.clientSecrets[n]; h != nil {
			pair = h.Pair
		}
		if !reflect.DeepEqual(e.next.KeyPairs.Get(n), pair) {
			e.next.KeyPairs.Put(e.next, n, pair, pair == nil)
		}
	}
}
