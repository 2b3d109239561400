// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"encoding/json"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
)

// A step of the lifecycle matrix that a kind may be without.
type step string

// Steps. Each has its meaning in lifecycle_test.go.
const (
	stepDrift         step = "Drift"         // What somebody changed is put right; not while paused.
	stepUpdate        step = "Update"        // A change of the object reaches the tailnet.
	stepDelete        step = "Delete"        // The tailnet's object goes with ours. Without it: stays.
	stepOrphan        step = "Orphan"        // Without the policy Delete the tailnet's object stays.
	stepRefuse        step = "Refuse"        // What others made is refused.
	stepAdopt         step = "Adopt"         // It is taken over when the object says so.
	stepObserve       step = "Observe"       // Policy Observe sees what others made, and writes nothing.
	stepObserveNone   step = "ObserveNone"   // Policy Observe says that there is nothing, and writes nothing.
	stepWithoutUpdate step = "WithoutUpdate" // Without the policy Update drift stays.
)

// A kindCase is what the matrices must know of a kind. The functions run on the
// test's goroutine and may call e.Fatalf.
type kindCase[T resource.ModernManaged] struct {
	// Kind as in manifests.
	Kind string

	// New makes the least object that becomes Ready.
	New func(e *env) T

	// Seed prepares tailnet and namespace before the object is applied, such as a
	// device to manage. It may start goroutines that end with e.Context(). Nil
	// prepares nothing.
	Seed func(e *env)

	// Others makes an object of the kind that is somebody else's and that the
	// object must leave alone, and returns what reads it. The harness reads it
	// before and after. Nil where a tailnet holds one only.
	Others func(e *env) (read func() (any, error))

	// Count of objects of the kind in the tailnet, of ours and of others; also of
	// what else could be left over, such as old keys. Nil where a tailnet always
	// holds exactly one: then nothing can be made twice.
	Count func(e *env) int

	// Parts is how many Count counts for one object. The default is 1, and 0 for a
	// kind that leaves the tailnet as it is when it goes.
	Parts int

	// Check returns why the tailnet is not as mg's spec says, nil if it is.
	Check func(e *env, mg T) error

	// Drift changes by hand what mg manages, or deletes it, so that Check fails.
	Drift func(e *env, mg T)

	// Update changes mg's spec, so that Check fails until the change was made.
	Update func(e *env, mg T)

	// Foreign makes, as somebody else, what New's object would manage, but with
	// other content, so that Check fails. It returns the external name to adopt it
	// by, or "" if the spec names it. For Refuse, Adopt and Observe; nil with all
	// three in Skip, or with Observe left if the kind observes what always exists.
	Foreign func(e *env, mg T) string

	// Adopt changes mg so that it takes over what Foreign made. Nil sets the
	// external name.
	Adopt func(mg T, externalName string)

	// Identify changes mg so that it observes what Foreign made. Nil sets the
	// external name, if there is one.
	Identify func(mg T, externalName string)

	// Refused is a part of the condition's message that says why mg is not
	// allowed to manage what Foreign made.
	Refused string

	// Connection are the keys that the connection Secret holds when mg is Ready.
	// One that is lost must come back.
	Connection []string

	// Scope of the API calls of which the body, and no path, says the scope. Empty if
	// the kind makes none.
	Scope string

	// Optional are API calls, as env.sim.Calls() names them, that a credential may
	// lack the scope for without a condition that says so. The value says why.
	Optional map[string]string

	// Skip names the steps that do not apply, and why.
	Skip map[step]string

	// Bad is input that the API server refuses.
	Bad []badInput[T]
}

// A badInput is a mistake that the schema must catch.
type badInput[T resource.ModernManaged] struct {
	// Name of the case, in PascalCase.
	Name string

	// Break makes the mistake in what New returned.
	Break func(mg T)

	// OnUpdate applies the object as New made it first, and then the mistake.
	OnUpdate bool

	// Want are parts of the API server's answer: the field's path, and what is
	// wrong with it.
	Want []string
}

// anyCase is a kindCase of any type.
type anyCase = kindCase[resource.ModernManaged]

// erase forgets the type of a kindCase.
func (k kindCase[T]) erase() anyCase {
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

// differ compares what is with what should be, for Check.
func differ(want, got any) error {
	if d := cmp.Diff(want, got); d != "" {
		return errors.Errorf("-want, +got:\n%s", d)
	}
	return nil
}

// snapshot is a value as JSON, to compare with later.
func snapshot(read func() (any, error)) (string, error) {
	v, err := read()
	if err != nil {
		return "", err
	}
	b, err := json.MarshalIndent(v, "", " ")
	return string(b), err
}
