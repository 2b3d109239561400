// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package dns

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
	mg := &v1alpha1.DNS{Spec: v1alpha1.DNSSpec{ForProvider: v1alpha1.DNSParameters{
		Nameservers: &v1alpha1.DNSNameservers{Addresses: []string{"192.0.2.1"}},
		SplitDNS:    []v1alpha1.SplitDNSDomain{{Domain: "a.example.com", Nameservers: []string{"2001:DB8::1", "192.0.2.2"}}},
		Preferences: &v1alpha1.DNSPreferences{MagicDNS: true},
	}}}
	mg.SetAnnotations(map[string]string{string(annotationRecord): `{"searchPaths":[["b.example.com"],["c.example.com"]],"preferences.magicDNS":[["true"]]}`})
	record := []string{"searchPaths b.example.com", "searchPaths c.example.com"}
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
	check("A permit covers the record, and what the object writes next.",
		append([]string{"nameservers 192.0.2.1"}, append(record, "splitDNS/a.example.com 2001:db8::1 192.0.2.2")...)...)
	deleted := metav1.Now()
	mg.DeletionTimestamp = &deleted
	check("A deletion removes what the record says.", record...)
}
