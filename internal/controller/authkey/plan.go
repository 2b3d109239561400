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

// reissueInterval is the minimum time between two keys of one object.
const reissueInterval = 30 * time.Second

// Reasons to create a key.
const (
	becauseNew      = "there was none"
	becauseLost     = "the connection Secret lacked it"
	becauseAsked    = "it was asked for"
	becauseUsed     = "the last one was used"
	becauseChanged  = "another kind of key is wanted"
	becauseExpiring = "the last one is about to expire"
)

// facts are the inputs of a plan.
type facts struct {
	externalName string

	// secret is the connection Secret, or nil if it does not exist.
	secret *corev1.Secret

	// issued is what the Secret says about its key, as far as the API confirms it.
	issued issued

	// valid are the tailnet's valid auth keys.
	valid []tailscale.Key

	// recorded is the recorded key, valid or not. It is nil if there is none.
	recorded *tailscale.Key

	// prefix is the prefix of the descriptions of the object's keys.
	prefix string

	// request describes the desired key.
	request tailscale.AuthKeyRequest

	at time.Time
}

// A plan describes what to do with an object's keys.
type plan struct {
	// current is the object's key: a valid key, or one that was used. It is nil if there is none.
	current *tailscale.Key

	// used means that a node has logged in with the current key.
	used bool

	// lost means that the secret of the current key is lost.
	lost bool

	// issue is the reason to create a key, or empty.
	issue string

	// later means that the last key is too new for another one.
	later bool

	// rename means that the external name is not yet the ID of the current key.
	rename bool

	// revoke holds the IDs of the object's keys that are no longer needed, sorted.
	revoke []string
}

// done reports whether there is nothing to do now.
func (p plan) done() bool { return (p.issue == "" || p.later) && !p.rename && len(p.revoke) == 0 }

// recordedID returns the ID of an object's key, or "", and whether the key's secret is in the
// connection Secret. A key is written to the Secret before its ID becomes the external name. Any
// other external name is a key to adopt, whose secret is unknown.
func recordedID(externalName string, issuance issued) (id string, stored bool) {
	if issuance.id != "" && (externalName == "" || externalName == issuance.id || externalName == issuance.replaced) {
		return issuance.id, true
	}
	return externalName, false
}

// makePlan decides what to do with an object's keys.
func makePlan(mg *v1alpha1.AuthKey, f facts) plan {
	issuance := f.issued
	id, stored := recordedID(f.externalName, issuance)
	p := plan{}
	if k := f.recorded; k != nil {
		p.used = isSpent(*k, f.at) || remembersUse(mg, k.ID)
		if p.used || !k.Invalid {
			p.current, p.lost = k, !stored
		}
	}
	p.issue = reason(mg, f, p, issuance)
	// A change of the spec takes effect immediately.
	p.later = p.issue != "" && p.issue != becauseChanged && recentlyIssued(f, issuance)
	if stored && p.current != nil {
		// The current key stays valid until its successor is in the Secret.
		p.rename = f.externalName != id
		p.revoke = others(f, id)
	}
	return p
}

// reason returns the reason to create a key, or "".
func reason(mg *v1alpha1.AuthKey, f facts, p plan, issuance issued) string {
	token := mg.GetAnnotations()[AnnotationReissue]
	switch {
	case p.current == nil:
		return becauseNew
	case p.lost:
		return becauseLost
	case token != "" && token != issuance.reissued:
		return becauseAsked
	case p.used:
		if mg.Spec.ForProvider.RenewWhenUsed {
			return becauseUsed
		}
	case issuance.request != fingerprint(f.request):
		return becauseChanged
	case !f.at.Before(p.current.Expires.Add(-rotateBefore(mg))):
		return becauseExpiring
	}
	return ""
}

// isSpent reports whether a key is invalid because it was used. The API does not return why a key
// is invalid.
func isSpent(k tailscale.Key, at time.Time) bool {
	return k.Invalid && k.Revoked.IsZero() && at.Before(k.Expires) && !k.Capabilities.Devices.Create.Reusable
}

// remembersUse reports whether an object's status records that a key was used.
func remembersUse(mg *v1alpha1.AuthKey, id string) bool {
	return mg.Status.AtProvider.Used && mg.Status.AtProvider.ID == id
}

// others returns the valid keys of the object except for the key with the ID: those with its
// descriptions, and the external name, which may be a key that was adopted.
func others(f facts, id string) []string {
	var out []string
	for _, k := range f.valid {
		ours := strings.HasPrefix(k.Description, f.prefix) || k.ID == f.externalName
		if ours && k.ID != id {
			out = append(out, k.ID)
		}
	}
	slices.Sort(out)
	return out
}

// orphanedKeys returns the valid keys of the object that are not recorded: their secrets are lost.
func orphanedKeys(f facts) []string {
	issuance := f.issued
	var out []string
	for _, k := range f.valid {
		if strings.HasPrefix(k.Description, f.prefix) && k.ID != f.externalName && k.ID != issuance.id && k.ID != issuance.replaced {
			out = append(out, k.ID)
		}
	}
	slices.Sort(out)
	return out
}

// recentlyIssued reports whether the last key is too new for another one. It ignores times in the
// future, which come from another clock.
func recentlyIssued(f facts, issuance issued) bool {
	at := issuance.at
	// The Secret may have been deleted. A key to adopt was not created by this controller.
	if k := f.recorded; at.IsZero() && k != nil && strings.HasPrefix(k.Description, f.prefix) {
		at = k.Created
	}
	age := f.at.Sub(at)
	return age >= 0 && age < reissueInterval
}

// expiry returns the expiry of an object's keys.
func expiry(mg *v1alpha1.AuthKey) time.Duration {
	if e := mg.Spec.ForProvider.Expiry; e != nil {
		return e.Duration
	}
	return maxExpiry
}

// rotateBefore returns how long before its expiry a key is replaced.
func rotateBefore(mg *v1alpha1.AuthKey) time.Duration {
	if r := mg.Spec.ForProvider.RotateBefore; r != nil {
		return r.Duration
	}
	return expiry(mg) / 3
}
