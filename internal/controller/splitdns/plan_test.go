// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package splitdns

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// TestFacts shows which facts of an object are recorded in its permit, and which of them its deletion
// needs.
func TestFacts(t *testing.T) {
	mg := &v1alpha1.SplitDNS{Spec: v1alpha1.SplitDNSSpec{ForProvider: v1alpha1.SplitDNSParameters{
		Domains: []string{"a.example.com"}, Nameservers: []string{"192.0.2.1"},
	}}}
	mg.SetAnnotations(map[string]string{string(annotationRecord): `{"b.example.com":["192.0.2.2","192.0.2.3"]}`})
	record := []string{"b.example.com 192.0.2.2", "b.example.com 192.0.2.3"}
	check := func(reason string, want ...string) {
		t.Helper()
		got, err := facts(mg)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, slices.Sorted(slices.Values(got))); diff != "" {
			t.Errorf("\n%s\nfacts(...): -want, +got:\n%s", reason, diff)
		}
	}
	check("A permit covers the record, and what the object adds next.", append([]string{"a.example.com 192.0.2.1"}, record...)...)
	deleted := metav1.Now()
	mg.DeletionTimestamp = &deleted
	check("A deletion removes what the record says.", record...)
}
