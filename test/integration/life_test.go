// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A life is one object of a kind in an env, from seed to end.
type life struct {
	*env

	kind anyCase
	mg   resource.ModernManaged

	base   int // The objects of other owners in the tailnet.
	others func() (any, error)
	seeded string // The initial state of the other owner's object.
}

// begin seeds the tailnet. It creates the object without applying it.
func begin(e *env, k anyCase) *life {
	e.Helper()
	l := &life{env: e, kind: k}
	if k.Seed != nil {
		k.Seed(e)
	}
	if k.Others != nil {
		l.others = k.Others(e)
		var err error
		l.seeded, err = snapshot(l.others)
		e.must(err)
	}
	l.base = l.count()
	l.mg = e.subject(k)
	return l
}

func (l *life) count() int {
	if l.kind.Count == nil {
		return 0
	}
	return l.kind.Count(l.env)
}

// policies sets the object's management policies.
func (l *life) policies(ps ...xpv2.ManagementAction) { l.mg.SetManagementPolicies(ps) }

// adopt makes the object adopt Foreign's object.
func (l *life) adopt(name string) {
	if l.kind.Adopt != nil {
		l.kind.Adopt(l.mg, name)
		return
	}
	xpmeta.SetExternalName(l.mg, name)
}

// identify makes the object refer to Foreign's object.
func (l *life) identify(name string) {
	switch {
	case l.kind.Identify != nil:
		l.kind.Identify(l.mg, name)
	case name != "":
		xpmeta.SetExternalName(l.mg, name)
	}
}

// settled waits until the object is Ready and the tailnet matches.
func (l *life) settled(description string) {
	l.Helper()
	l.eventually(description, l.unsettled)
	l.single(description)
}

func (l *life) unsettled() error {
	if err := l.refresh(l.mg); err != nil {
		return err
	}
	if err := ready(l.mg); err != nil {
		return err
	}
	if err := l.kind.Check(l.env, l.mg); err != nil {
		return errors.Wrap(err, "the tailnet does not match the object")
	}
	return l.connected()
}

// connected returns an error if the connection Secret lacks a key.
func (l *life) connected() error {
	if len(l.kind.Connection) == 0 {
		return nil
	}
	s := &corev1.Secret{}
	if err := shared.kube.Get(l.Context(), l.connection(), s); err != nil {
		return errors.Wrap(err, "cannot get connection Secret")
	}
	for _, k := range l.kind.Connection {
		if len(s.Data[k]) == 0 {
			return errors.Errorf("the connection Secret lacks %s", k)
		}
	}
	return nil
}

func (l *life) connection() types.NamespacedName {
	return types.NamespacedName{Namespace: l.namespace, Name: connectionSecret}
}

// single fails the test unless there is exactly one object of the provider.
func (l *life) single(description string) {
	l.Helper()
	if l.kind.Count == nil {
		return
	}
	// A replaced object and its replacement exist together for a moment.
	l.eventually(description+": one object of ours", func() error {
		if n := l.count() - l.base; n != l.ours() {
			return errors.Errorf("there are %d objects of ours", n)
		}
		return nil
	})
}

// ours returns the number of tailnet objects of a settled object. A kind that deletes nothing has
// created nothing.
func (l *life) ours() int {
	switch {
	case l.kind.Parts > 0:
		return l.kind.Parts
	case l.kind.Skip[stepDelete] != "":
		return 0
	}
	return 1
}

// update changes the object and waits until the tailnet follows.
func (l *life) update() {
	l.Helper()
	l.change(l.mg, func() { l.kind.Update(l.env, l.mg) })
	l.settled("update")
}

// delete deletes the object and waits until it is gone.
func (l *life) delete() {
	l.Helper()
	l.must(client.IgnoreNotFound(shared.kube.Delete(l.Context(), l.mg)))
	l.eventually("the object is gone", l.present)
}

// present returns an error while the object exists, with the cause.
func (l *life) present() error {
	o := l.mg.DeepCopyObject().(resource.ModernManaged)
	err := shared.cache.Get(l.Context(), client.ObjectKeyFromObject(l.mg), o)
	if kerrors.IsNotFound(err) {
		return nil
	}
	return errors.Errorf("the object still exists: %v %v", err, conditionsOf(o))
}

// gone fails the test unless the provider's objects in the tailnet are gone or, for a kind that
// deletes nothing, unless the tailnet is unchanged.
func (l *life) gone() {
	l.Helper()
	if reason := l.kind.Skip[stepDelete]; reason != "" {
		if err := l.kind.Check(l.env, l.mg); err != nil {
			l.Errorf("the tailnet changed, though %s: %v", reason, err)
		}
	} else if err := l.kind.Check(l.env, l.mg); err == nil {
		l.Error("the tailnet still matches the deleted object")
	}
	if n := l.count(); n != l.base {
		l.Errorf("there are %d objects in the tailnet, want %d of other owners", n, l.base)
	}
	l.unharmed()
}

// unharmed fails the test if an object of another owner was changed.
func (l *life) unharmed() {
	l.Helper()
	if l.others == nil {
		return
	}
	current, err := snapshot(l.others)
	l.must(err)
	if current != l.seeded {
		l.Errorf("an object of another owner was changed: before %s, after %s", l.seeded, current)
	}
}

// polls waits until the object was observed three more times. It counts calls from zero, and
// returns those that are not reads.
func (l *life) polls() []string {
	l.Helper()
	l.sim.ResetCalls()
	most := map[string]int{}
	// A poll needs one read at least; caches may serve some of several.
	l.eventually("three polls", func() error {
		for c, n := range l.sim.Calls() {
			if most[c] = n; n >= 3 && strings.HasPrefix(c, "GET ") {
				return nil
			}
		}
		return errors.Errorf("calls: %v", most)
	})
	return l.writes()
}

// rests fails the test if a settled object or its tailnet is written.
func (l *life) rests() {
	l.Helper()
	if w := l.polls(); len(w) > 0 {
		l.Errorf("the tailnet was written though nothing changed: %v", w)
	}
	var previous, current json.RawMessage
	read := func(target *json.RawMessage) {
		l.must(shared.kube.Get(l.Context(), client.ObjectKeyFromObject(l.mg), l.mg))
		b, err := json.Marshal(l.mg)
		l.must(err)
		*target = b
	}
	read(&previous)
	version := l.mg.GetResourceVersion()
	l.polls()
	read(&current)
	if v := l.mg.GetResourceVersion(); v != version {
		l.Errorf("the object was written though nothing changed:\nbefore %s\nafter  %s", previous, current)
	}
}

// skips reports whether the kind skips a step, and logs the reason.
func (l *life) skips(s step) bool {
	l.Helper()
	reason, ok := l.kind.Skip[s]
	if ok {
		l.Logf("%s has no step %s: %s", l.kind.Kind, s, reason)
	}
	return ok
}

// allSteps is for the check that a case skips existing steps only.
var allSteps = []step{stepDrift, stepUpdate, stepDelete, stepOrphan, stepRefuse, stepAdopt, stepObserve, stepObserveNone, stepWithoutUpdate}

// valid returns an error if a case is incomplete.
func valid(k anyCase) error {
	for s, reason := range k.Skip {
		if !slices.Contains(allSteps, s) || reason == "" {
			return errors.Errorf("step %q does not exist or is skipped without a reason", s)
		}
	}
	for s, f := range map[step]bool{stepDrift: k.Drift != nil, stepUpdate: k.Update != nil, stepAdopt: k.Foreign != nil, stepRefuse: k.Refused != ""} {
		if !f && k.Skip[s] == "" {
			return errors.Errorf("step %s has neither its functions nor a reason to skip it", s)
		}
	}
	if len(k.Bad) == 0 {
		return errors.New("there is no bad input")
	}
	return nil
}
