// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package causes finds why objects are not ready. An object that fails often makes others fail: those that
// compose it, and those that use its tailnet. Each cause is found once, with all that waits for it. The package
// reads nothing itself.
package causes

import (
	"cmp"
	"slices"
)

// A Reference names an object.
type Reference struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns the kind and the name, with the namespace if there is one.
func (r Reference) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

func compare(a, b Reference) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// A Condition is a condition of an object.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"-"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// An Object is an object whose state counts.
type Object struct {
	Reference

	// Group of the kind.
	Group string

	// Owner is the object that composes this one, or the claim of that. It is zero if there is none.
	Owner Reference

	// Tailnets are names of the TailscaleTailnets that the object uses.
	Tailnets []string

	// Conditions of the object, in any order.
	Conditions []Condition

	// Deleted reports that the object is being deleted.
	Deleted bool

	// Details are facts that users look for, such as an address.
	Details string
}

// ReasonNotReconciled is the reason of an object without conditions: nothing has looked at it.
const ReasonNotReconciled = "NotReconciled"

// chain has the types of conditions in the order in which one leads to the next. Types that are not in it come
// last, before Ready. Synced is first: if it is False, the others may be old.
var chain = []string{
	"Synced", "Responsive", "Accepted", "Authenticated", "TailnetAccepted", "GatewayValid", "EndpointsSelected", "StatefulSetsReady", "NetworkReady", "MachinesReady",
	"ProxyGroupReady", "DiscoverySuccessful", "EgressReady", "VIPServiceReady", "Advertised", "Approved", "Routed",
}

// advice has types of conditions that keep no object from working.
var advice = []string{"TailscaledTested", "PolicyWarnings", "Deletable"}

func position(t string) int {
	if t == "Ready" {
		return len(chain) + 1
	}
	if n := slices.Index(chain, t); n >= 0 {
		return n
	}
	return len(chain)
}

// Ready reports whether the object works, and its last change is applied.
func (o Object) Ready() bool {
	ready := false
	for _, c := range o.Conditions {
		switch {
		case c.Type == "Ready":
			ready = c.Status == "True"
		case c.Type == "Synced" && c.Status == "False":
			return false
		}
	}
	return ready
}

// Failure returns the first condition of the chain that fails. A tag that the credential does not own is found in
// any condition: the message alone shows it.
func (o Object) Failure() Condition {
	var failed []Condition
	for _, c := range o.Conditions {
		if c.Status == "True" || slices.Contains(advice, c.Type) {
			continue
		}
		if Tag(c.Message) != "" {
			return c
		}
		failed = append(failed, c)
	}
	if len(failed) == 0 {
		return Condition{Type: "Ready", Status: "Unknown", Reason: ReasonNotReconciled, Message: "Nothing has reported the state of the object"}
	}
	// A condition that is False says more than one that is Unknown.
	slices.SortStableFunc(failed, func(a, b Condition) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(position(a.Type), position(b.Type)), cmp.Compare(a.Type, b.Type))
	})
	return failed[0]
}

func rank(c Condition) int {
	if c.Status == "False" {
		return 0
	}
	return 1
}

// A Cause is why objects are not ready.
type Cause struct {
	Condition

	// Objects have the condition. Without another cause, there is at least one.
	Objects []Object

	// Users are the objects that users wrote and that are not ready because of it, sorted.
	Users []Reference

	// Waiting is the number of other objects that wait for one of Objects.
	Waiting int
}

// Subject returns the object to name: that of a user, if there is one.
func (c Cause) Subject() Reference {
	if len(c.Users) > 0 {
		return c.Users[0]
	}
	return c.Objects[0].Reference
}

type graph struct {
	objects  map[Reference]Object
	children map[Reference][]Reference
	tailnets map[string]Reference
}

// Find returns the causes of all objects that are not ready. Those with the most waiting objects come first.
func Find(objects []Object) []Cause {
	g := graph{objects: map[Reference]Object{}, children: map[Reference][]Reference{}, tailnets: map[string]Reference{}}
	var broken []Reference
	for _, o := range objects {
		g.objects[o.Reference] = o
		if o.Ready() {
			continue
		}
		broken = append(broken, o.Reference)
		if o.Owner != (Reference{}) {
			g.children[o.Owner] = append(g.children[o.Owner], o.Reference)
		}
		if o.Kind == tailnetKind {
			g.tailnets[o.Name] = o.Reference
		}
	}
	slices.SortFunc(broken, compare)
	for _, c := range g.children {
		slices.SortFunc(c, compare)
	}
	index := map[Condition]int{}
	var out []Cause
	for _, r := range broken {
		root := g.root(r)
		failure := g.objects[root].Failure()
		n, ok := index[failure]
		if !ok {
			n = len(out)
			index[failure] = n
			out = append(out, Cause{Condition: failure})
		}
		out[n].add(g.objects[r], root == r)
	}
	for n := range out {
		// A tailnet is named before what uses it.
		slices.SortStableFunc(out[n].Users, func(a, b Reference) int { return cmp.Compare(priority(a), priority(b)) })
	}
	slices.SortStableFunc(out, func(a, b Cause) int { return cmp.Compare(b.weight(), a.weight()) })
	return out
}

// tailnetKind is the kind of tailnets that users write.
const tailnetKind = "TailscaleTailnet"

func (c *Cause) add(o Object, own bool) {
	if own {
		c.Objects = append(c.Objects, o)
	} else {
		c.Waiting++
	}
	if o.Owner == (Reference{}) {
		c.Users = append(c.Users, o.Reference)
	}
}

func priority(r Reference) int {
	if r.Kind == tailnetKind {
		return 0
	}
	return 1
}

func (c *Cause) weight() int { return len(c.Objects) + c.Waiting }

// root returns the object that fails by itself and because of which another one fails. An object of a chain that is too
// long fails by itself.
func (g graph) root(r Reference) Reference {
	seen := map[Reference]bool{}
	for current := r; len(seen) < maxLevels; {
		seen[current] = true
		next, ok := g.next(current)
		if !ok || seen[next] {
			return next
		}
		current = next
	}
	return r
}

// next returns an object because of which another one fails, or that one itself if there is none.
func (g graph) next(r Reference) (Reference, bool) {
	for _, name := range g.objects[r].Tailnets {
		if t, ok := g.tailnets[name]; ok && t != r && !g.below(r, t) {
			return t, true
		}
	}
	if children := g.children[r]; len(children) > 0 {
		return children[0], true
	}
	return r, false
}

// maxLevels is more than the levels at which objects are composed: a Gateway composes TailscaleEndpoints, and these
// MachineSets. Owners are labels and references, in which users may write longer chains and cycles.
const maxLevels = 16

// below reports whether an object is composed, at any level, from another.
func (g graph) below(r, top Reference) bool {
	for range maxLevels {
		r = g.objects[r].Owner
		if r == (Reference{}) {
			return false
		}
		if r == top {
			return true
		}
	}
	return false
}
