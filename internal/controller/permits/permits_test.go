// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package permits

import (
	"context"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

func has(t *testing.T, r *Store, uid, config types.UID) bool {
	t.Helper()
	ok, err := r.Has(t.Context(), uid, config)
	if err != nil {
		t.Fatalf("Has(...): %v", err)
	}
	return ok
}

func TestStore(t *testing.T) {
	writes := 0
	kube := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			writes++
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			writes++
			return c.Update(ctx, o, opts...)
		},
	}).Build()
	first := New(kube, "system")
	if has(t, first, "a", "home") {
		t.Error("want no permit before one is recorded")
	}
	p := Permit{Kind: "Machine", Namespace: "apps", Config: "home"}
	for range 3 {
		if err := first.Add(t.Context(), "a", p); err != nil {
			t.Fatalf("Add(...): %v", err)
		}
	}
	if writes != 1 {
		t.Errorf("want one write for a permit, got %d", writes)
	}
	// The next leader, which has read nothing yet, and the previous one, which has an older
	// version.
	second := New(kube, "system")
	if !has(t, second, "a", "home") {
		t.Error("want the permit after a restart of the provider")
	}
	if has(t, second, "a", "other") {
		t.Error("want the permit for one config only")
	}
	for i := range 200 {
		uid := types.UID(strconv.Itoa(i))
		if err := second.Add(t.Context(), uid, p); err != nil {
			t.Fatalf("Add(...): %v", err)
		}
	}
	if err := first.Add(t.Context(), "b", p); err != nil {
		t.Fatalf("Add(...) over another's write: %v", err)
	}
	third := New(kube, "system")
	for _, uid := range []types.UID{"a", "b", "7", "199"} {
		if !has(t, third, uid, "home") {
			t.Errorf("want the permits of all writers: %s is gone", uid)
		}
	}
	if err := third.Forget(t.Context(), "a"); err != nil {
		t.Fatalf("Forget(...): %v", err)
	}
	if has(t, New(kube, "system"), "a", "home") {
		t.Error("want no permit after Forget")
	}
}

func TestStoreFails(t *testing.T) {
	broken := true
	kube := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if broken {
				return errors.New("boom")
			}
			return c.Create(ctx, o, opts...)
		},
	}).Build()
	r := New(kube, "system")
	p := Permit{Kind: "Machine", Namespace: "apps", Config: "home"}
	if err := r.Add(t.Context(), "a", p); err == nil {
		t.Error("Add(...): want an error")
	}
	if has(t, r, "a", "home") {
		t.Error("a permit that was not written must not count")
	}
	broken = false
	if err := r.Add(t.Context(), "a", p); err != nil || !has(t, r, "a", "home") {
		t.Errorf("Add(...) after a failure: %v", err)
	}
}

func TestPrune(t *testing.T) {
	kube := fake.NewClientBuilder().Build()
	r := New(kube, "system")
	for uid, p := range map[types.UID]Permit{
		"here":  {Kind: "Machine", Namespace: "apps", Config: "home"},
		"gone":  {Kind: "Machine", Namespace: "apps", Config: "home"},
		"other": {Kind: "DNS", Namespace: "apps", Config: "home"},
		"far":   {Kind: "Machine", Namespace: "elsewhere", Config: "home"},
	} {
		if err := r.Add(t.Context(), uid, p); err != nil {
			t.Fatal(err)
		}
	}
	list := func(ctx context.Context) ([]types.UID, error) {
		err := r.Add(ctx, "new", Permit{Kind: "Machine", Namespace: "apps", Config: "home"})
		return []types.UID{"here"}, err
	}
	if err := r.Prune(t.Context(), "Machine", func(n string) bool { return n == "apps" }, list); err != nil {
		t.Fatalf("Prune(...): %v", err)
	}
	for uid, want := range map[types.UID]bool{"here": true, "gone": false, "other": true, "far": true, "new": true} {
		if got := has(t, New(kube, "system"), uid, "home"); got != want {
			t.Errorf("permit of %s: want %t, got %t", uid, want, got)
		}
	}
	boom := errors.New("boom")
	if err := r.Prune(t.Context(), "Machine", func(string) bool { return true }, func(context.Context) ([]types.UID, error) { return nil, boom }); !errors.Is(err, boom) {
		t.Errorf("Prune(...): want %v, got %v", boom, err)
	}
	if !has(t, r, "here", "home") {
		t.Error("want all permits after a failed list")
	}
}

func TestStoreConcurrently(t *testing.T) {
	kube := fake.NewClientBuilder().Build()
	var wg sync.WaitGroup
	r := New(kube, "system")
	for i := range 50 {
		wg.Go(func() {
			if err := r.Add(context.Background(), types.UID(strconv.Itoa(i)), Permit{Kind: "DNS", Namespace: "apps", Config: "home"}); err != nil {
				t.Errorf("Add(...): %v", err)
			}
		})
	}
	wg.Wait()
	l := &corev1.SecretList{}
	if err := kube.List(t.Context(), l, client.InNamespace("system")); err != nil {
		t.Fatal(err)
	}
	got := 0
	for _, s := range l.Items {
		got += len(s.Data)
	}
	if got != 50 {
		t.Errorf("want 50 permits, got %d", got)
	}
}

// TestRemember shows how long the Store remembers what a resource made.
func TestRemember(t *testing.T) {
	kube := fake.NewClientBuilder().Build()
	r := New(kube, "system")
	step := func(reason string, fn func(r *Store) error, want string) {
		t.Helper()
		if err := fn(r); err != nil {
			t.Fatalf("\n%s\n%v", reason, err)
		}
		// The record is read again, as after a restart.
		p, _, err := New(kube, "system").Get(t.Context(), "uid", "home")
		if err != nil || p.Product != want {
			t.Errorf("\n%s\nwant %q, got %q, %v", reason, want, p.Product, err)
		}
	}
	step("A resource without a permit has no record.", func(r *Store) error { return r.Remember(t.Context(), "uid", "home", "svc:web,a") }, "")
	for _, claims := range []string{"", "c1", "c2"} {
		p := Permit{Kind: "VIPService", Namespace: "apps", Config: "home", Claims: claims}
		step("A permit is added.", func(r *Store) error { return r.Add(t.Context(), "uid", p) }, map[bool]string{true: "svc:web,a"}[claims != ""])
		step("The service of a resource is remembered.", func(r *Store) error { return r.Remember(t.Context(), "uid", "home", "svc:web,a") }, "svc:web,a")
		got, ok, err := r.Get(t.Context(), "uid", "home")
		p.Product = "svc:web,a"
		if err != nil || !ok || got != p {
			t.Errorf("want the permit %v, got %v, %v", p, got, err)
		}
	}
	step("Another config leads to another tailnet.", func(r *Store) error {
		return r.Remember(t.Context(), "uid", "other", "svc:web,b")
	}, "svc:web,a")
	step("The service in another tailnet is another one.", func(r *Store) error {
		if err := r.Add(t.Context(), "uid", Permit{Kind: "VIPService", Namespace: "apps", Config: "other"}); err != nil {
			return err
		}
		return r.Add(t.Context(), "uid", Permit{Kind: "VIPService", Namespace: "apps", Config: "home"})
	}, "")
}

// TestTailnet shows that the tailnet of a resource outlives its permits, and that nothing else does.
func TestTailnet(t *testing.T) {
	kube := fake.NewClientBuilder().Build()
	r := New(kube, "system")
	add := func(config types.UID) {
		t.Helper()
		if err := r.Add(t.Context(), "a", Permit{Kind: "Webhook", Namespace: "apps", Config: config}); err != nil {
			t.Fatalf("Add(...): %v", err)
		}
	}
	check := func(stage, want string) {
		t.Helper()
		// Another leader has read nothing yet.
		for _, r := range []*Store{r, New(kube, "system")} {
			if got, err := r.Tailnet(t.Context(), "a"); err != nil || got != want {
				t.Errorf("%s: Tailnet(...): want %q, got %q, %v", stage, want, got, err)
			}
		}
	}
	check("at first", "")
	add("home")
	if err := r.Remember(t.Context(), "a", "home", "svc:web"); err != nil {
		t.Fatalf("Remember(...): %v", err)
	}
	if err := r.SetTailnet(t.Context(), "a", "domain=a.ts.net"); err != nil {
		t.Fatalf("SetTailnet(...): %v", err)
	}
	check("recorded", "domain=a.ts.net")
	add("home")
	if p, _, err := r.Get(t.Context(), "a", "home"); err != nil || p.Product != "svc:web" {
		t.Errorf("Get(...): want what the resource made, got %v, %v", p, err)
	}
	if err := r.Move(t.Context(), "a", "domain=b.ts.net"); err != nil {
		t.Fatalf("Move(...): %v", err)
	}
	check("moved", "domain=b.ts.net")
	if p, ok, err := r.Get(t.Context(), "a", "home"); err != nil || !ok || p.Product != "" {
		t.Errorf("Get(...): want the permit without what the resource made elsewhere, got %v, %t, %v", p, ok, err)
	}
	add("other")
	check("another config", "domain=b.ts.net")
	if got, err := Configs(t.Context(), kube, "system"); err != nil || len(got) != 1 || got[0] != "other" {
		t.Errorf("Configs(...): want the config of the permit, got %v, %v", got, err)
	}
	none := func(context.Context) ([]types.UID, error) { return nil, nil }
	if err := r.Prune(t.Context(), "Webhook", func(string) bool { return true }, none); err != nil {
		t.Fatalf("Prune(...): %v", err)
	}
	check("pruned", "")
	add("home")
	if err := r.SetTailnet(t.Context(), "a", "domain=a.ts.net"); err != nil {
		t.Fatalf("SetTailnet(...): %v", err)
	}
	if err := r.Forget(t.Context(), "a"); err != nil {
		t.Fatalf("Forget(...): %v", err)
	}
	check("forgotten", "")
}
