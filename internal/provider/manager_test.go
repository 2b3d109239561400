// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/secrets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

func owner(i int) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ServiceAccount", Name: fmt.Sprintf("a%d", i), UID: types.UID(strconv.Itoa(i))}
}

func TestStripMetadata(t *testing.T) {
	controller := owner(0)
	controller.Controller = ptr.To(true)
	cases := map[string]struct {
		reason string
		input  metav1.ObjectMeta
		want   metav1.ObjectMeta
	}{
		"Own": {
			reason: "Metadata that event handlers read stays.",
			input: metav1.ObjectMeta{
				Namespace: "ns", Name: "s", UID: "u", ResourceVersion: "1", Labels: map[string]string{meta.LabelSecretType: "state", meta.LabelMachine: "m"},
				Finalizers: []string{secrets.FinalizerState, clients.Finalizer}, OwnerReferences: []metav1.OwnerReference{controller},
			},
			want: metav1.ObjectMeta{
				Namespace: "ns", Name: "s", UID: "u", ResourceVersion: "1", Labels: map[string]string{meta.LabelSecretType: "state", meta.LabelMachine: "m"},
				Finalizers: []string{secrets.FinalizerState, clients.Finalizer}, OwnerReferences: []metav1.OwnerReference{controller},
			},
		},
		"Other": {
			reason: "Other metadata does not.",
			input: metav1.ObjectMeta{
				Name: "s", Annotations: map[string]string{"a": "b"}, Labels: map[string]string{"a": "b", meta.LabelSecretType: "state"},
				Finalizers: []string{"a/b", clients.Finalizer}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
			},
			want: metav1.ObjectMeta{Name: "s", Labels: map[string]string{meta.LabelSecretType: "state"}, Finalizers: []string{clients.Finalizer}},
		},
		"Owners": {
			reason: "A few owners stay, and the controller.",
			input:  metav1.ObjectMeta{Name: "s", OwnerReferences: []metav1.OwnerReference{owner(1), owner(2), owner(3), owner(4), owner(5), controller}},
			want:   metav1.ObjectMeta{Name: "s", OwnerReferences: []metav1.OwnerReference{owner(1), owner(2), owner(3), owner(4), controller}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := stripMetadata(&metav1.PartialObjectMetadata{ObjectMeta: tc.input})
			if err != nil {
				t.Fatal(err)
			}
			// Empty and absent are the same.
			want, err := json.Marshal(&metav1.PartialObjectMetadata{ObjectMeta: tc.want})
			if err != nil {
				t.Fatal(err)
			}
			actual, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(actual)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestStripMetadataSize checks that no object takes more of the cache than a limit.
func TestStripMetadataSize(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	input := metav1.ObjectMeta{Name: "s", Annotations: map[string]string{"a": long}, Labels: map[string]string{}}
	for i := range 5000 {
		input.Labels[fmt.Sprintf("gateway.tailscale.com/label-%d", i)] = "x"
		input.Finalizers = append(input.Finalizers, fmt.Sprintf("gateway.tailscale.com/finalizer-%d", i))
		input.OwnerReferences = append(input.OwnerReferences, owner(i))
	}
	got, err := stripMetadata(&metav1.PartialObjectMetadata{ObjectMeta: input})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > 1<<10 {
		t.Errorf("want at most 1 KiB, got %d bytes", len(b))
	}
}
