// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package authkey

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// reissueInterval is the shortest time between two keys of one object.
const reissueInterval = 30 * time.Second

// Why a key is minted.
const (
	becauseNew      = "there was none"
	becauseLost     = "the connection Secret lacked it"
	becauseAsked    = "it was asked for"
	becauseUsed     = "the last one was used"
	becauseChanged  = "another kind of key is wanted"
	becauseExpiring = "the last one is about to expire"
)

// facts are what a plan is made of.
type facts struct {
	externalName string

	// secret is the connection Secret, nil if there is none.
	secret *corev1.Secret

	// valid are the tailnet's valid auth keys.
	valid []tailscale.Key

	// recorded is the key that is recorded, valid or not, nil if there is none.
	recorded *tailscale.Key

	// prefix is what descriptions of the object's keys begin with.
	prefix string

	// request is the key that is wanted.
	request tailscale.AuthKeyRequest

	now time.Time
}

// A plan is what is to be done about an object's keys.
type plan struct {
	// current is the key that the object stands for: a valid one, or one that
	// was used. Nil if it has none.
	current *tailscale.Key

	// used reports that the current key has logged in its node.
	used bool

	// lost reports that nobody knows the current key's secret.
	lost bool

	// issue says why a key is to be minted, or is empty.
	issue string

	// later says that the last key is too young for the next one.
	later bool

	// rename says that the external name is not yet the current key's.
	rename bool

	// revoke has the IDs of keys of the object that nobody needs, sorted.
	revoke []string
}

// done reports whether there is nothing to do now.
func (p plan) done() bool { return (p.issue == "" || p.later) && !p.rename && len(p.revoke) == 0 }

// recordedID returns the ID of the key that an object stands for, or "", and
// whether its secret is in the connection Secret. A key is in the Secret before
// its ID is the external name. Any other external name is a key to adopt, whose
// secret nobody knows.
func recordedID(externalName string, s *corev1.Secret) (id string, known bool) {
	in := issuedIn(s)
	if in.id != "" && (externalName == "" || externalName == in.id || externalName == in.replaced) {
		return in.id, true
	}
	return externalName, false
}

// makePlan decides what an object's keys need.
func makePlan(mg *v1alpha1.AuthKey, f facts) plan {
	in := issuedIn(f.secret)
	id, known := recordedID(f.externalName, f.secret)
	p := plan{}
	if k := f.recorded; k != nil {
		p.used = isSpent(*k, f.now) || remembersUse(mg, k.ID)
		if p.used || !k.Invalid {
			p.current, p.lost = k, !known
		}
	}
	p.issue = reason(mg, f, p, in)
	// What a person changed waits for nothing.
	p.later = p.issue != "" && p.issue != becauseChanged && recentlyIssued(f, in)
	if known && p.current != nil {
		// A key that is to be replaced stays until its successor is in the Secret.
		p.rename = f.externalName != id
		p.revoke = others(f, id, in)
	}
	return p
}

// reason returns why a key is to be minted, or "".
func reason(mg *v1alpha1.AuthKey, f facts, p plan, in issued) string {
	token := mg.GetAnnotations()[AnnotationReissue]
	switch {
	case p.current == nil:
		return becauseNew
	case p.lost:
		return becauseLost
	case token != "" && token != in.reissued:
		return becauseAsked
	case p.used:
		if mg.Spec.ForProvider.RenewWhenUsed {
			return becauseUsed
		}
	case in.request != fingerprint(f.request):
		return becauseChanged
	case !f.now.Before(p.current.Expires.Add(-rotateBefore(mg))):
		return becauseExpiring
	}
	return ""
}

// isSpent reports whether a key is invalid because it was used. The API does not say
// why a key is invalid.
func isSpent(k tailscale.Key, now time.Time) bool {
	return k.Invalid && k.Revoked.IsZero() && now.Before(k.Expires) && !k.Capabilities.Devices.Create.Reusable
}

// remembersUse reports whether an object knows that a key was used.
func remembersUse(mg *v1alpha1.AuthKey, id string) bool {
	return mg.Status.AtProvider.Used && mg.Status.AtProvider.ID == id
}

// others returns the valid keys of the object beside the one with the ID.
func others(f facts, id string, in issued) []string {
	var out []string
	for _, k := range f.valid {
		ours := strings.HasPrefix(k.Description, f.prefix) || k.ID == f.externalName || k.ID == in.id || k.ID == in.replaced
		if ours && k.ID != id {
			out = append(out, k.ID)
		}
	}
	slices.Sort(out)
	return out
}

// orphanedKeys returns the valid keys of the object that are recorded nowhere: nobody knows
// their secrets.
func orphanedKeys(f facts) []string {
	in := issuedIn(f.secret)
	var out []string
	for _, k := range f.valid {
		if strings.HasPrefix(k.Description, f.prefix) && k.ID != f.externalName && k.ID != in.id && k.ID != in.replaced {
			out = append(out, k.ID)
		}
	}
	slices.Sort(out)
	return out
}

// recentlyIssued reports whether the last key is too young for another one. Times from
// the future are another clock's.
func recentlyIssued(f facts, in issued) bool {
	at := in.at
	// The Secret may be gone. A key to adopt was not minted by us.
	if k := f.recorded; at.IsZero() && k != nil && strings.HasPrefix(k.Description, f.prefix) {
		at = k.Created
	}
	age := f.now.Sub(at)
	return age >= 0 && age < reissueInterval
}

// expiry of the keys of an object.
func expiry(mg *v1alpha1.AuthKey) time.Duration {
	if e := mg.Spec.ForProvider.Expiry; e != nil {
		return e.Duration
	}
	return maxExpiry
}

// rotateBefore its expiry a key is replaced.
func rotateBefore(mg *v1alpha1.AuthKey) time.Duration {
	if r := mg.Spec.ForProvider.RotateBefore; r != nil {
		return r.Duration
	}
	return expiry(mg) / 3
}
