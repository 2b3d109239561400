// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

// results are the results of GetInformer by the names of objects.
type results map[string]error

func (r results) GetInformer(_ context.Context, o client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return nil, r[o.GetName()]
}

func TestKinds(t *testing.T) {
	object := func(name string) client.Object {
		o := &corev1.Secret{}
		o.SetName(name)
		return o
	}
	unknown := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "B"}}
	informers := results{"b": unknown, "c": errors.New("boom")}
	k := NewKinds(informers, map[string]client.Object{"A": object("a"), "B": object("b"), "C": object("c")}, logging.NewNopLogger())
	if k.Complete() {
		t.Error("Complete() before Try(...): want false")
	}

	steps := []struct {
		reason   string
		change   func()
		refuse   string
		started  []string
		missing  []string
		complete bool
	}{
		{reason: "Kinds with an informer are watched, unless their start fails.", refuse: "A", started: []string{"A"}, missing: []string{"A", "B", "C"}},
		{reason: "Kinds that are not watched are tried again.", started: []string{"A"}, missing: []string{"B", "C"}},
		{reason: "A kind that the API server does not know does not keep the others from being complete.", change: func() { delete(informers, "c") }, started: []string{"C"}, missing: []string{"B"}, complete: true},
		{reason: "A kind whose CRD is installed later is watched.", change: func() { delete(informers, "b") }, started: []string{"B"}, missing: []string{}, complete: true},
		{reason: "A watched kind is not started again.", missing: []string{}, complete: true},
	}
	for _, s := range steps {
		if s.change != nil {
			s.change()
		}
		var started []string
		k.Try(t.Context(), func(kind string, _ cache.Informer) error {
			started = append(started, kind)
			if kind == s.refuse {
				return errors.New("refused")
			}
			return nil
		})
		if diff := cmp.Diff(s.started, started); diff != "" {
			t.Errorf("\n%s\nTry(...): -want started, +got:\n%s", s.reason, diff)
		}
		missing := []string{}
		for _, kind := range []string{"A", "B", "C"} {
			if k.Missing()[kind] != nil {
				missing = append(missing, kind)
			}
		}
		if diff := cmp.Diff(s.missing, missing); diff != "" {
			t.Errorf("\n%s\nMissing(): -want, +got:\n%s", s.reason, diff)
		}
		if got := k.Complete(); got != s.complete {
			t.Errorf("\n%s\nComplete(): want %t, got %t", s.reason, s.complete, got)
		}
	}
}

func TestHandler(t *testing.T) {
	object := func(name string) client.Object {
		o := &corev1.Secret{}
		o.SetName(name)
		return o
	}
	var got []string
	h := Handler(func(old, current client.Object) {
		name := func(o client.Object) string {
			if o == nil {
				return "none"
			}
			return o.GetName()
		}
		got = append(got, name(old)+" to "+name(current))
	})
	h.OnAdd(object("a"), false)
	h.OnUpdate(object("a"), object("b"))
	h.OnDelete(object("b"))
	h.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: object("c")})
	h.OnAdd("no object", false)
	want := []string{"none to a", "a to b", "b to none", "c to none"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Handler(...): -want, +got:\n%s", diff)
	}
}
