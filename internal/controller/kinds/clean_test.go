// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

func TestClean(t *testing.T) {
	shared := []string{"tag:a", "tag:\x1b[31m"}
	at := &metav1.Time{Time: time.Unix(1, 0)}
	d := &v1alpha1.Device{Spec: v1alpha1.DeviceSpec{ForProvider: v1alpha1.DeviceParameters{Name: ptr.To("\x00")}}}
	d.Status.AtProvider = v1alpha1.DeviceObservation{Name: "web\u202e.ts.net\r\n", User: strings.Repeat("x", 1<<20), Tags: shared, LastSeen: at}
	sanitize(d)
	want := v1alpha1.DeviceObservation{Name: "web.ts.net  ", User: strings.Repeat("x", 4096) + "...", Tags: []string{"tag:a", "tag: [31m"}, LastSeen: at}
	if diff := cmp.Diff(want, d.Status.AtProvider); diff != "" {
		t.Errorf("sanitize(...): -want, +got:\n%s", diff)
	}
	if shared[1] != "tag:\x1b[31m" {
		t.Error("shared values must not change")
	}
	if *d.Spec.ForProvider.Name != "\x00" {
		t.Error("the spec must not change")
	}
	for _, mg := range []*v1alpha1.Machine{{}, {Status: v1alpha1.MachineStatus{AtProvider: v1alpha1.MachineObservation{Name: "ok"}}}} {
		original := mg.DeepCopy()
		sanitize(mg)
		if diff := cmp.Diff(original, mg); diff != "" {
			t.Errorf("sanitize(...) what is clean: -want, +got:\n%s", diff)
		}
	}
	s := &said{}
	sanitizingRecorder{s}.WithAnnotations().Event(d, event.Normal("Joined", "Device a\x1bb joined"))
	if len(s.events) != 1 || s.events[0].Message != "Device a b joined" {
		t.Errorf("Event(...): got %v", s.events)
	}
}
