// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// A Snapshot is what must survive an upgrade.
type Snapshot struct {
	// Objects of the cluster, by KIND NAMESPACE/NAME.
	Objects map[string]Object

	// Tailnets by their names.
	Tailnets map[string]Tailnet
}

// An Object of the cluster.
type Object struct {
	// UID is empty if the object may be created again.
	UID string

	// Spec that users or functions wrote. Nil if it may change.
	Spec map[string]any

	// Conditions by type, as STATUS/REASON.
	Conditions map[string]string

	// Identity holds addresses, names and node IDs in the status, by path.
	Identity map[string]any
}

// A Tailnet is the state of a simulated tailnet.
type Tailnet struct {
	// Devices by node ID, and services with their addresses by name.
	Devices  map[string]Device
	Services map[string][]string

	// Keys by ID, with the time of their creation. KeysMade counts the requests that created keys,
	// also of those that are gone.
	Keys     map[string]string
	KeysMade int
}

// A Device of a tailnet. A device that registers again has another node ID, creation time or node
// key.
type Device struct {
	Name, Created, NodeKey string
	Addresses              []string
}

// A Strictness says how equal two snapshots must be.
type Strictness int

const (
	// Newer is for an upgrade: a new version may add objects, fields and conditions, and reasons
	// may change.
	Newer Strictness = iota

	// Same is for the same version: all must be equal.
	Same
)

// Differences returns what changed from one snapshot to another, sorted.
func Differences(old, current Snapshot, s Strictness) []string {
	var out []string
	missing, extra := keys(old.Objects, current.Objects)
	for _, k := range missing {
		out = append(out, k+" is gone")
	}
	if s == Same {
		for _, k := range extra {
			out = append(out, k+" is left behind")
		}
	}
	for k, b := range old.Objects {
		if a, ok := current.Objects[k]; ok {
			for _, d := range b.differences(a, s) {
				out = append(out, k+": "+d)
			}
		}
	}
	for name, b := range old.Tailnets {
		for _, d := range b.differences(current.Tailnets[name]) {
			out = append(out, "tailnet "+name+": "+d)
		}
	}
	slices.Sort(out)
	return out
}

func (b Object) differences(a Object, s Strictness) []string {
	var out []string
	if b.UID != a.UID {
		out = append(out, "another object has its name")
	}
	if b.Spec != nil && (s == Same && !reflect.DeepEqual(b.Spec, a.Spec) || !within(b.Spec, a.Spec)) {
		out = append(out, fmt.Sprintf("the spec was %v and is %v", b.Spec, a.Spec))
	}
	for t, old := range b.Conditions {
		current := a.Conditions[t]
		if s == Newer {
			old, _, _ = strings.Cut(old, "/")
			current, _, _ = strings.Cut(current, "/")
		}
		if old != current && (s == Same || old == "True") {
			out = append(out, fmt.Sprintf("%s was %s and is %q", t, old, current))
		}
	}
	if s == Same {
		_, extra := keys(b.Conditions, a.Conditions)
		for _, t := range extra {
			out = append(out, "condition "+t+" is left behind")
		}
	}
	for path, old := range b.Identity {
		if current := a.Identity[path]; !reflect.DeepEqual(old, current) {
			out = append(out, fmt.Sprintf("%s was %v and is %v", path, old, current))
		}
	}
	return out
}

func (b Tailnet) differences(a Tailnet) []string {
	var out []string
	missing, extra := keys(b.Devices, a.Devices)
	for _, id := range missing {
		out = append(out, fmt.Sprintf("device %s (%s) is gone", id, b.Devices[id].Name))
	}
	for _, id := range extra {
		out = append(out, fmt.Sprintf("device %s (%s) is new", id, a.Devices[id].Name))
	}
	for id, old := range b.Devices {
		current, ok := a.Devices[id]
		switch {
		case !ok:
		case old.Created != current.Created || old.NodeKey != current.NodeKey:
			out = append(out, fmt.Sprintf("device %s (%s) registered again", id, old.Name))
		case old.Name != current.Name || !slices.Equal(old.Addresses, current.Addresses):
			out = append(out, fmt.Sprintf("device %s was %s at %v and is %s at %v", id, old.Name, old.Addresses, current.Name, current.Addresses))
		}
	}
	missing, extra = keys(b.Services, a.Services)
	for _, n := range missing {
		out = append(out, n+" is gone")
	}
	for _, n := range extra {
		out = append(out, n+" is new")
	}
	for n, old := range b.Services {
		if current, ok := a.Services[n]; ok && !slices.Equal(old, current) {
			out = append(out, fmt.Sprintf("%s had the addresses %v and has %v", n, old, current))
		}
	}
	if !maps.Equal(b.Keys, a.Keys) {
		out = append(out, fmt.Sprintf("the keys were %v and are %v", b.Keys, a.Keys))
	}
	if b.KeysMade != a.KeysMade {
		out = append(out, fmt.Sprintf("%d keys were made", a.KeysMade-b.KeysMade))
	}
	return out
}

// keys returns the keys that only the first map has, and those that only the second has, sorted.
func keys[V any](old, current map[string]V) (missing, extra []string) {
	for k := range old {
		if _, ok := current[k]; !ok {
			missing = append(missing, k)
		}
	}
	for k := range current {
		if _, ok := old[k]; !ok {
			extra = append(extra, k)
		}
	}
	slices.Sort(missing)
	slices.Sort(extra)
	return missing, extra
}

// within reports whether all of a value is in another, which may have more fields.
func within(part, whole any) bool {
	switch p := part.(type) {
	case map[string]any:
		w, ok := whole.(map[string]any)
		if !ok {
			return false
		}
		for k, v := range p {
			if !within(v, w[k]) {
				return false
			}
		}
		return true
	case []any:
		w, ok := whole.([]any)
		return ok && slices.EqualFunc(p, w, within)
	default:
		return reflect.DeepEqual(part, whole)
	}
}
