// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

func TestStrip(t *testing.T) {
	for k, o := range parse.Kinds() {
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "m"}})
		o.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"})
		if _, err := parse.Strip(o); err != nil {
			t.Error(err)
		}
		if o.GetManagedFields() != nil || o.GetAnnotations() != nil {
			t.Errorf("%s keeps fields that the extension does not read", k)
		}
	}
	// A Store has the same contents with stripped objects.
	var cs []Change
	for _, o := range decode(t, everything()...) {
		if _, err := parse.Strip(o); err != nil {
			t.Fatal(err)
		}
		cs = append(cs, Change{Object: o})
	}
	s := NewStore()
	if err := applyChanges(s, cs...); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(snapshotOf(t, everything()...), s.Snapshot(), compareSnapshots()); diff != "" {
		t.Errorf("-want, +got\n%s", diff)
	}
}
