// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"encoding/json"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/test/lifecycle"
)

// A step of the lifecycle matrix that a kind may skip.
type step string

// Steps. lifecycle_test.go implements them.
const (
	stepDrift         step = "Drift"         // Manual changes are reverted; not while paused.
	stepUpdate        step = "Update"        // A change of the object reaches the tailnet.
	stepDelete        step = "Delete"        // The deletion of the object deletes the tailnet's object. Skipped: the tailnet's object stays.
	stepOrphan        step = "Orphan"        // Without the policy Delete the tailnet's object stays.
	stepRefuse        step = "Refuse"        // Objects of other owners are refused.
	stepAdopt         step = "Adopt"         // They are adopted when the object says so.
	stepObserve       step = "Observe"       // The policy Observe reads objects of other owners, and writes nothing.
	stepObserveNone   step = "ObserveNone"   // The policy Observe reports a missing object, and writes nothing.
	stepWithoutUpdate step = "WithoutUpdate" // Without the policy Update drift stays.
)

// A kindCase describes a kind for the matrices. The functions run on the test's goroutine and may
// call e.Fatalf.
type kindCase[T resource.ModernManaged] struct {
	// Kind as in manifests.
	Kind string

	// Shared has New, Check, Drift and Update for kinds that cluster/acceptance runs, too. Those of
	// them that are set here replace the shared ones.
	Shared lifecycle.Case[T]

	// New returns the smallest object that becomes Ready.
	New func(e *env) T

	// Seed prepares tailnet and namespace before the object is applied, for example with a device
	// to manage. It may start goroutines that end with e.Context(). Nil prepares nothing.
	Seed func(e *env)

	// Others creates an object of the kind with another owner, which the object under test must not
	// change, and returns a function that reads it. The harness compares it before and after. Nil
	// for kinds with one object for each tailnet.
	Others func(e *env) (read func() (any, error))

	// Count returns the number of objects of the kind in the tailnet, of all owners, with possible
	// leftovers such as old keys. Nil where a tailnet always has exactly one.
	Count func(e *env) int

	// Parts is the count of one object. The default is 1, and 0 for a kind that does not change the
	// tailnet on deletion.
	Parts int

	// Check returns an error unless the tailnet matches mg's spec.
	Check func(e *env, mg T) error

	// Drift changes or deletes by hand the object that mg manages, so that Check fails.
	Drift func(e *env, mg T)

	// Update changes mg's spec, so that Check fails until the change reaches the tailnet.
	Update func(e *env, mg T)

	// Foreign creates, as another owner, the object that New's object would manage, with other
	// content, so that Check fails. It returns the external name for its adoption, or "" if the
	// spec names it. For Refuse, Adopt and Observe. Nil with all three in Skip, or without Observe
	// in Skip if the kind observes an object that always exists.
	Foreign func(e *env, mg T) string

	// Adopt changes mg so that it adopts Foreign's object. Nil sets the external name.
	Adopt func(mg T, externalName string)

	// Identify changes mg so that it observes Foreign's object. Nil sets the external name, if
	// there is one.
	Identify func(mg T, externalName string)

	// Refused is a part of the condition's message with the reason why mg must not manage Foreign's
	// object.
	Refused string

	// Connection are the keys of the connection Secret when mg is Ready. A lost Secret must come
	// back.
	Connection []string

	// Scope of the API calls whose scope depends on their body instead of the path. Empty if the
	// kind has none.
	Scope string

	// Optional are API calls, as env.sim.Calls() names them, without a condition for a missing
	// scope. The value is the reason.
	Optional map[string]string

	// Skip has the steps that do not apply, with the reason.
	Skip map[step]string

	// Bad is input that the API server must reject.
	Bad []badInput[T]
}

// caseNames are what the objects of shared cases use in a tailnet.
var caseNames = lifecycle.Names{Prefix: "case", Tags: []v1alpha1.Tag{"tag:k8s", "tag:web"}}

// share sets the functions that the case has only as shared ones.
func (k *kindCase[T]) share() {
	c := k.Shared
	if k.New == nil && c.New != nil {
		k.New = func(*env) T { return c.New() }
	}
	if k.Check == nil && c.Check != nil {
		k.Check = func(e *env, mg T) error { return c.Check(e.Context(), e.tailnet, mg) }
	}
	if k.Drift == nil && c.Drift != nil {
		k.Drift = func(e *env, mg T) { e.must(c.Drift(e.Context(), e.tailnet, mg)) }
	}
	if k.Update == nil && c.Update != nil {
		k.Update = func(_ *env, mg T) { c.Update(mg) }
	}
}

// A badInput is a mistake that the schema must reject.
type badInput[T resource.ModernManaged] struct {
	// Name of the case, in PascalCase.
	Name string

	// Break changes New's object.
	Break func(mg T)

	// OnUpdate applies the unchanged object first.
	OnUpdate bool

	// Want are parts of the API server's error: the field's path, and the mistake.
	Want []string
}

// anyCase is a kindCase of any type.
type anyCase = kindCase[resource.ModernManaged]

// erase removes the type of a kindCase.
func (k kindCase[T]) erase() anyCase {
	k.share()
	out := anyCase{
		Kind: k.Kind, Seed: k.Seed, Others: k.Others, Count: k.Count, Parts: k.Parts,
		Refused: k.Refused, Connection: k.Connection, Scope: k.Scope, Optional: k.Optional, Skip: k.Skip,
		New:   func(e *env) resource.ModernManaged { return k.New(e) },
		Check: func(e *env, mg resource.ModernManaged) error { return k.Check(e, mg.(T)) },
	}
	if k.Drift != nil {
		out.Drift = func(e *env, mg resource.ModernManaged) { k.Drift(e, mg.(T)) }
	}
	if k.Update != nil {
		out.Update = func(e *env, mg resource.ModernManaged) { k.Update(e, mg.(T)) }
	}
	if k.Foreign != nil {
		out.Foreign = func(e *env, mg resource.ModernManaged) string { return k.Foreign(e, mg.(T)) }
	}
	if k.Adopt != nil {
		out.Adopt = func(mg resource.ModernManaged, id string) { k.Adopt(mg.(T), id) }
	}
	if k.Identify != nil {
		out.Identify = func(mg resource.ModernManaged, id string) { k.Identify(mg.(T), id) }
	}
	for _, b := range k.Bad {
		out.Bad = append(out.Bad, badInput[resource.ModernManaged]{
			Name: b.Name, OnUpdate: b.OnUpdate, Want: b.Want,
			Break: func(mg resource.ModernManaged) { b.Break(mg.(T)) },
		})
	}
	return out
}

// snapshot returns a value as JSON, for a later comparison.
func snapshot(read func() (any, error)) (string, error) {
	v, err := read()
	if err != nil {
		return "", err
	}
	b, err := json.MarshalIndent(v, "", " ")
	return string(b), err
}
