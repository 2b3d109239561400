// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package contention decides which of several objects in a cluster may write something that a tailnet
// has only once, such as its nameservers, a contact or a device's tags. It also reconciles the
// objects that lost a part when the part becomes free. The controllers find the objects.
package contention

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

// maxShown is the maximum number of lost parts in a message.
const maxShown = 3

// A Contender is an object that wants to write parts of a tailnet.
type Contender struct {
	// Name is NAMESPACE/NAME, for messages.
	Name string

	UID     types.UID
	Created time.Time

	// Scopes identify the tailnet of the parts. They are all known names of that tailnet, such as
	// its provider config and its domain. Two contenders compete if they share a scope. Empty scopes
	// are ignored.
	Scopes []string

	// Parts are the names of the parts, in any order.
	Parts []string
}

// New returns the Contender of an object. Its scopes are the object's provider config and, if known,
// the tailnet.
func New(mg resource.ModernManaged, tailnet string, parts ...string) Contender {
	return Contender{
		Name:    mg.GetNamespace() + "/" + mg.GetName(),
		UID:     mg.GetUID(),
		Created: mg.GetCreationTimestamp().Time,
		Scopes:  scopes(mg, tailnet),
		Parts:   parts,
	}
}

// Writes reports whether an object's management policies let it write anything. An object that may
// not write contends for nothing.
func Writes(mg resource.Managed) bool {
	return allowed(mg, xpv2.ManagementActionCreate) || allowed(mg, xpv2.ManagementActionUpdate)
}

// NeedsFirstWrite reports whether an object is still to be written for the first time. Something
// that a tailnet has exactly once always exists, so the first write counts as the object's
// creation: an object whose policies allow Create but not Update writes only then.
func NeedsFirstWrite(mg resource.Managed) bool {
	return allowed(mg, xpv2.ManagementActionCreate) && xpmeta.GetExternalCreateSucceeded(mg).IsZero()
}

func allowed(mg resource.Managed, want xpv2.ManagementAction) bool {
	return slices.ContainsFunc(mg.GetManagementPolicies(), func(a xpv2.ManagementAction) bool {
		return a == xpv2.ManagementActionAll || a == want
	})
}

// NotReady returns the condition of an object that may not write everything that its spec names.
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

// Conflicts returns the parts that self does not get, with the contender that holds each of them.
// The oldest contender gets a part; at equal age, the contender whose UID sorts first. The others
// may include self.
func Conflicts(self Contender, others []Contender) map[string]Contender {
	lost := map[string]Contender{}
	for _, o := range others {
		if o.UID == self.UID || !SharesScope(self, o) || !before(o, self) {
			continue
		}
		for _, c := range o.Parts {
			if !slices.Contains(self.Parts, c) {
				continue
			}
			if holder, ok := lost[c]; !ok || before(o, holder) {
				lost[c] = o
			}
		}
	}
	return lost
}

// Message describes the lost parts, their holders and the remedy. Kind is the kind of the holders.
// The message is empty if nothing was lost.
func Message(kind string, lost map[string]Contender) string {
	if len(lost) == 0 {
		return ""
	}
	names := slices.Sorted(maps.Keys(lost))
	var conflicts []string
	for _, n := range names[:min(len(names), maxShown)] {
		conflicts = append(conflicts, fmt.Sprintf("%s by %s %s", n, kind, lost[n].Name))
	}
	m := "Managed already: " + strings.Join(conflicts, ", ")
	if more := len(names) - maxShown; more > 0 {
		m += fmt.Sprintf(" and %d more", more)
	}
	return m + "; remove it from one of the objects"
}

// SharesScope reports whether two contenders share a scope.
func SharesScope(a, b Contender) bool {
	return slices.ContainsFunc(a.Scopes, func(s string) bool { return s != "" && slices.Contains(b.Scopes, s) })
}

// before reports whether a takes precedence over b.
func before(a, b Contender) bool {
	if !a.Created.Equal(b.Created) {
		return a.Created.Before(b.Created)
	}
	return a.UID < b.UID
}
