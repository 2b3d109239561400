// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package claims decides which object may write what a tailnet has only once, such as
// its nameservers, a contact or a device's tags, when several objects of a
// cluster want to, and has the losers tried again. Finding the objects is the
// business of the controllers.
package claims

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// maxShown is how many lost claims a message names.
const maxShown = 3

// A Claimant is an object that wants things of a tailnet for itself.
type Claimant struct {
	// Name is NAMESPACE/NAME, for people.
	Name string

	UID     types.UID
	Created time.Time

	// Scopes are names of what the claims are made in: as many as are known of
	// the same tailnet, such as its provider config and its domain. Two
	// claimants meet if they share one. An empty scope is none.
	Scopes []string

	// Claims are the names of what the object wants, in any order.
	Claims []string
}

// New makes a Claimant of an object. Its scopes are the provider config that it
// names, and the tailnet, as far as it is known.
func New(mg resource.ModernManaged, tailnet string, claims ...string) Claimant {
	return Claimant{
		Name:    mg.GetNamespace() + "/" + mg.GetName(),
		UID:     mg.GetUID(),
		Created: mg.GetCreationTimestamp().Time,
		Scopes:  scopes(mg, tailnet),
		Claims:  claims,
	}
}

// Writes reports whether an object's management policies let it write anything. One
// that may not claims nothing.
func Writes(mg resource.Managed) bool {
	return allowed(mg, xpv2.ManagementActionCreate) || allowed(mg, xpv2.ManagementActionUpdate)
}

// NeedsFirstWrite reports whether an object is yet to be written for the first time. What a
// tailnet has only once exists always, so that is what counts as its creation: an
// object that may not update is written this once.
func NeedsFirstWrite(mg resource.Managed) bool {
	return allowed(mg, xpv2.ManagementActionCreate) && xpmeta.GetExternalCreateSucceeded(mg).IsZero()
}

func allowed(mg resource.Managed, want xpv2.ManagementAction) bool {
	return slices.ContainsFunc(mg.GetManagementPolicies(), func(a xpv2.ManagementAction) bool {
		return a == xpv2.ManagementActionAll || a == want
	})
}

// NotReady is the condition of an object that may not write all that it wants.
func NotReady(reason xpv2.ConditionReason, message string) xpv2.Condition {
	c := xpv2.Unavailable().WithMessage(message)
	c.Reason = reason
	return c
}

func scopes(mg resource.ModernManaged, tailnet string) []string {
	var out []string
	if ref := mg.GetProviderConfigReference(); ref != nil {
		namespace := mg.GetNamespace()
		if strings.HasPrefix(ref.Kind, "Cluster") {
			namespace = ""
		}
		out = append(out, ref.Kind+"/"+namespace+"/"+ref.Name)
	}
	if tailnet != "" {
		out = append(out, "tailnet/"+tailnet)
	}
	return out
}

// Conflicts returns the claims that self does not get, with the claimant that holds each.
// The oldest claimant of a thing gets it; of the same age, the one whose UID sorts first.
// Self may be among the others or not.
func Conflicts(self Claimant, others []Claimant) map[string]Claimant {
	lost := map[string]Claimant{}
	for _, o := range others {
		if o.UID == self.UID || !SharesScope(self, o) || !before(o, self) {
			continue
		}
		for _, c := range o.Claims {
			if !slices.Contains(self.Claims, c) {
				continue
			}
			if holder, ok := lost[c]; !ok || before(o, holder) {
				lost[c] = o
			}
		}
	}
	return lost
}

// Message says what was lost, to whom, and what helps. Kind is the kind of
// the holders. It is empty if nothing was lost.
func Message(kind string, lost map[string]Claimant) string {
	if len(lost) == 0 {
		return ""
	}
	names := slices.Sorted(maps.Keys(lost))
	var told []string
	for _, n := range names[:min(len(names), maxShown)] {
		told = append(told, fmt.Sprintf("%s by %s %s", n, kind, lost[n].Name))
	}
	m := "Managed already: " + strings.Join(told, ", ")
	if more := len(names) - maxShown; more > 0 {
		m += fmt.Sprintf(" and %d more", more)
	}
	return m + "; remove it from one of the objects"
}

// SharesScope reports whether two claimants share a scope.
func SharesScope(a, b Claimant) bool {
	return slices.ContainsFunc(a.Scopes, func(s string) bool { return s != "" && slices.Contains(b.Scopes, s) })
}

// before says that a's claims go before b's.
func before(a, b Claimant) bool {
	if !a.Created.Equal(b.Created) {
		return a.Created.Before(b.Created)
	}
	return a.UID < b.UID
}
