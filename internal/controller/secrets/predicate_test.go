// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

func labelled(kind, version string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version, Labels: map[string]string{meta.LabelSecretType: kind}}}
}

func TestOfType(t *testing.T) {
	cases := map[string]struct {
		reason   string
		old, new *corev1.Secret
		want     bool
	}{
		"Changed":      {reason: "Any change passes.", old: labelled("state", "1"), new: labelled("state", "2"), want: true},
		"Resync":       {reason: "A resync does not pass.", old: labelled("state", "1"), new: labelled("state", "1")},
		"OtherType":    {reason: "Secrets of other types do not pass.", old: labelled("other", "1"), new: labelled("other", "2")},
		"LabelRemoved": {reason: "A Secret that loses its label passes.", old: labelled("state", "1"), new: labelled("", "2"), want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := OfType("state", "config").Update(event.UpdateEvent{ObjectOld: tc.old, ObjectNew: tc.new}); got != tc.want {
				t.Errorf("\n%s\nUpdate(...): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}
