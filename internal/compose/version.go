// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"maps"

	"google.golang.org/protobuf/types/known/structpb"
)

// pinVersion makes Crossplane apply the composite's status only to the version that the run observed.
//
// Crossplane applies the status together with the conditions of its cached copy, which may be older
// than its own last write. A condition that became True is then False again, until the next run
// (https://github.com/crossplane/crossplane/issues/7062; crossplane v2.4.0 composition_functions.go,
// "cs := xr.GetConditions()"). Of the metadata that a function returns it replaces only the namespace,
// the name and the UID. With a resource version, the API server refuses an apply of a stale copy with
// a conflict, on which Crossplane tries again without an event or a condition (reconciler.go,
// "if kerrors.IsConflict(err)").
//
// A run that changes the set of children has no version: Crossplane writes the references to children
// before the status, and that write makes a new version. Neither has a step of another composite's
// pipeline, in which other functions change the children, too.
func (r *reply) pinVersion() {
	v := r.observed.composite().GetFields()["metadata"].GetStructValue().GetFields()["resourceVersion"]
	if v.GetStringValue() == "" || r.step.hasInput || r.changesChildren() {
		return
	}
	c := r.composite()
	fields := map[string]*structpb.Value{"resourceVersion": v}
	maps.Copy(fields, c.GetFields()["metadata"].GetStructValue().GetFields())
	c.Fields["metadata"] = structpb.NewStructValue(&structpb.Struct{Fields: fields})
}

// changesChildren reports whether the run adds or removes a child, or changes the kind of one. A child
// that Crossplane has a reference to, but that does not exist, counts as added.
func (r *reply) changesChildren() bool {
	observed, desired := r.observed.state.GetResources(), r.rsp.GetDesired().GetResources()
	if len(observed) != len(desired) {
		return true
	}
	for name, d := range desired {
		o, ok := observed[name]
		if !ok {
			return true
		}
		for _, k := range []string{"apiVersion", "kind"} {
			if o.GetResource().GetFields()[k].GetStringValue() != d.GetResource().GetFields()[k].GetStringValue() {
				return true
			}
		}
	}
	return false
}
