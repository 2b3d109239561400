// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package orphans

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
)

// A Kind is the kind of an item.
type Kind string

// Kinds of items, in the order of deletion: without keys no device can join, and a state Secret
// proves which device was the cluster's, so it goes after the device.
const (
	KindAuthKey           Kind = "AuthKey"
	KindService           Kind = "Service"
	KindRecord            Kind = "ServiceRecord"
	KindShared            Kind = "SharedService"
	KindDevice            Kind = "Device"
	KindPolicy            Kind = "PolicyEntries"
	KindOAuthClient       Kind = "OAuthClient"
	KindFederatedIdentity Kind = "FederatedIdentity"
	KindSecret            Kind = "Secret"
	KindRoute             Kind = "HTTPRoute"
)

// order of the kinds.
var order = []Kind{KindAuthKey, KindService, KindRecord, KindShared, KindDevice, KindPolicy, KindOAuthClient, KindFederatedIdentity, KindSecret, KindRoute}

// A Verdict is the owner of an item without a living object in this cluster.
type Verdict string

// Verdicts.
const (
	// VerdictOrphan means that this cluster made the item.
	VerdictOrphan Verdict = "Orphan"

	// VerdictOther means that another cluster, or another provider config of this one, made it.
	VerdictOther Verdict = "OtherCluster"

	// VerdictUnknown means that the mark does not show which cluster made it.
	VerdictUnknown Verdict = "Unknown"
)

// An Item is an object without a living owner in this cluster. Texts of the tailnet may have any
// content.
type Item struct {
	Kind    Kind    `json:"kind"`
	Verdict Verdict `json:"verdict"`

	// Name identifies the item among those of its kind: a service, an ID, the owner of entries of
	// the policy file, or NAMESPACE/NAME of an object of the cluster.
	Name string `json:"name"`

	// Text is what people call it: a device's name or a key's description.
	Text string `json:"text,omitempty"`

	// Owner is the object that made it: KIND NAMESPACE/NAME.
	Owner string `json:"owner,omitempty"`

	// Cluster is the ID of the cluster that made it, if known.
	Cluster string `json:"cluster,omitempty"`

	// Reason is why it counts as an orphan.
	Reason string `json:"reason"`

	Created  *metav1.Time `json:"created,omitempty"`
	LastSeen *metav1.Time `json:"lastSeen,omitempty"`

	// KeepReason is why a deletion leaves the item, or "".
	KeepReason string `json:"kept,omitempty"`

	// Online reports that a device of the item is connected.
	Online bool `json:"online,omitempty"`

	// Shared is the shared service of a record.
	Shared string `json:"sharedService,omitempty"`

	object string // NAMESPACE/NAME of the owner.
	proof  string // The mark of a key, or the public key of a device.
}

// Proof returns the mark of a key or credential, or the public key of a device. An object of the
// tailnet with the item's name and without the proof is another one.
func (i Item) Proof() string { return i.proof }

// Object returns NAMESPACE/NAME of the object that made the item.
func (i Item) Object() string { return i.object }

// byID reports whether the cluster ID alone makes the item this cluster's. Objects of the cluster
// prove the others.
func (i Item) byID() bool { return i.Kind != KindDevice && i.Kind != KindSecret && i.Kind != KindRoute }

// quiet returns the time since which nothing has used the item, or zero if that is unknown.
func (i Item) quiet() time.Time {
	out := time.Time{}
	for _, t := range []*metav1.Time{i.Created, i.LastSeen} {
		if t != nil && t.After(out) {
			out = t.Time
		}
	}
	return out
}

// A Report lists all items, ordered by kind and name.
type Report struct {
	Cluster string `json:"clusterID"`
	Items   []Item `json:"items"`
}

// Of returns the report for facts. A deletion keeps items that were used within the grace.
// instant is the time by the clock of Tailscale's API.
func Of(f Facts, grace time.Duration, instant time.Time) Report {
	r := Report{Cluster: f.Cluster}
	c := newCollector(f)
	r.Items = slices.Concat(c.services(), c.keys(), c.credentials(), c.policy(), c.proxies(), c.routes())
	slices.SortStableFunc(r.Items, func(a, b Item) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Kind), slices.Index(order, b.Kind)), cmp.Compare(a.Name, b.Name))
	})
	elsewhere := !f.Confirmed && slices.ContainsFunc(r.Items, func(i Item) bool { return i.Verdict == VerdictOrphan && i.Online && i.byID() })
	for n, i := range r.Items {
		r.Items[n].KeepReason = kept(i, grace, instant, elsewhere && i.byID())
	}
	keepProofs(r.Items)
	return r
}

// kept returns why a deletion leaves an item.
func kept(i Item, grace time.Duration, instant time.Time, elsewhere bool) string {
	switch {
	case i.Verdict == VerdictOther:
		return "it belongs to another cluster"
	case i.Verdict == VerdictUnknown:
		return "its mark does not show whether this cluster made it"
	case i.KeepReason != "":
		return i.KeepReason
	case i.Online:
		return "a device that serves it is online"
	case elsewhere:
		return "a device of this cluster ID is online, and nothing in this cluster names the ID: it may be another cluster's"
	case grace <= 0:
		return ""
	}
	quiet := i.quiet()
	switch {
	case quiet.IsZero():
		return "its age is unknown; --older-than=0 includes it"
	case instant.Sub(quiet) < grace:
		return fmt.Sprintf("it was used or made less than %s ago", Duration(grace))
	}
	return ""
}

// keepProofs keeps the Secrets of a Machine whose device or other Secret stays: without the state
// nothing proves which cluster the device belongs to.
func keepProofs(items []Item) {
	stays := map[string]bool{}
	for _, i := range items {
		if (i.Kind == KindDevice || i.Kind == KindSecret) && i.KeepReason != "" {
			stays[i.object] = true
		}
	}
	for n := range items {
		if i := &items[n]; i.Kind == KindSecret && i.KeepReason == "" && stays[i.object] {
			i.KeepReason = "it proves, with the other items of its Machine that stay, which device is this cluster's"
		}
	}
}

// Orphans returns the items that this cluster made.
func (r Report) Orphans() []Item { return r.with(VerdictOrphan) }

func (r Report) with(v Verdict) []Item {
	var out []Item
	for _, i := range r.Items {
		if i.Verdict == v {
			out = append(out, i)
		}
	}
	return out
}

// Deletable returns the items that a deletion removes, in its order. Nothing that another cluster
// may have made is among them.
func (r Report) Deletable() []Item {
	var out []Item
	for _, i := range r.Orphans() {
		if i.KeepReason == "" {
			out = append(out, i)
		}
	}
	return out
}

// Duration returns a duration in days, hours or minutes.
func Duration(d time.Duration) string {
	day := 24 * time.Hour
	switch {
	case d >= 2*day || d >= day && d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	case d >= time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= time.Minute:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return "0m"
}

// ownerObject returns NAMESPACE/NAME of an owner, or "".
func ownerObject(owner string) string {
	namespace, name, ok := registry.OwnerObject(owner)
	if !ok {
		return ""
	}
	return namespace + "/" + name
}

func at(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t.UTC().Truncate(time.Second)}
}

func described(kind, object string) string { return strings.TrimSuffix(kind+" "+object, " ") }

// plural returns a number with the noun in the matching form.
func plural(n int, singular, many string) string {
	if n == 1 {
		return "1 " + singular
	}
	return strconv.Itoa(n) + " " + many
}
