// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
)

func TestForControllerRuntime(t *testing.T) {
	o := Options{Options: controller.Options{MaxConcurrentReconciles: 3}}.ForControllerRuntime()
	if o.MaxConcurrentReconciles != 3 || !ptr.Deref(o.RecoverPanic, false) {
		t.Errorf("ForControllerRuntime(): Crossplane's options are lost: %d at once, RecoverPanic %v", o.MaxConcurrentReconciles, o.RecoverPanic)
	}
	var got []time.Duration
	for range 10 {
		got = append(got, o.RateLimiter.When(reconcile.Request{}))
	}
	want := []time.Duration{
		200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond, 3200 * time.Millisecond,
		6400 * time.Millisecond, 12800 * time.Millisecond, 25600 * time.Millisecond, 51200 * time.Millisecond, time.Minute,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ForControllerRuntime(): how long an object waits: -want, +got:\n%s", diff)
	}
}

func TestJitter(t *testing.T) {
	hook := Jitter(func(_ resource.Managed, d time.Duration) time.Duration { return d })
	for range 100 {
		if got := hook(nil, time.Minute); got > time.Minute || got < 54*time.Second {
			t.Fatalf("Jitter(...): want at most a tenth less than a minute, got %s", got)
		}
	}
}
