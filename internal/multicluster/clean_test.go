// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

func TestClean(t *testing.T) {
	port := tailnetv1alpha1.ExportedPort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}
	valid := func(change func(*tailnetv1alpha1.ExportedService)) tailnetv1alpha1.ExportedService {
		e := tailnetv1alpha1.ExportedService{
			Name: "web", Type: tailnetv1alpha1.ExportedServiceClusterSetIP, SessionAffinity: corev1.ServiceAffinityNone,
			Ports: []tailnetv1alpha1.ExportedPort{port},
		}
		change(&e)
		return e
	}
	same := valid(func(*tailnetv1alpha1.ExportedService) {})
	cases := map[string]struct {
		reason string
		export tailnetv1alpha1.ExportedService
		want   tailnetv1alpha1.ExportedService
		ok     bool
	}{
		"Valid": {reason: "A valid export stays.", export: same, want: same, ok: true},
		"Name": {
			reason: "A name that no Service can have is refused.",
			export: valid(func(e *tailnetv1alpha1.ExportedService) { e.Name = "web-" }),
			want:   valid(func(e *tailnetv1alpha1.ExportedService) { e.Name = "web-" }),
		},
		"Ports": {
			reason: "Ports that no Service can have, or not together, are left out.",
			export: valid(func(e *tailnetv1alpha1.ExportedService) {
				e.Ports = append(e.Ports, tailnetv1alpha1.ExportedPort{Name: "zero"}, tailnetv1alpha1.ExportedPort{Name: "A B", Port: 81}, port,
					tailnetv1alpha1.ExportedPort{Name: "other", Port: 80}, tailnetv1alpha1.ExportedPort{Name: "icmp", Protocol: "ICMP", Port: 82})
			}),
			want: same, ok: true,
		},
		"Fields": {
			reason: "Values that no object can have are left out.",
			export: valid(func(e *tailnetv1alpha1.ExportedService) {
				e.Type, e.SessionAffinity, e.SessionAffinityTimeoutSeconds = "Foo", "Bar", ptr.To[int32](-1)
				e.InternalTrafficPolicy, e.TrafficDistribution = ptr.To[corev1.ServiceInternalTrafficPolicy]("Far"), ptr.To("not valid")
				e.Ports[0].AppProtocol = ptr.To("not valid")
			}),
			want: same, ok: true,
		},
		"Metadata": {
			reason: "Labels or annotations that no object can have are left out together, which is no conflict.",
			export: valid(func(e *tailnetv1alpha1.ExportedService) {
				e.Labels = map[string]string{"team": "a", "bad key!": strings.Repeat("x", 70)}
			}),
			want: valid(func(e *tailnetv1alpha1.ExportedService) { e.MetadataOmitted = true }), ok: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := Clean(tc.export)
			if diff := cmp.Diff(tc.want, got); diff != "" || ok != tc.ok {
				t.Errorf("\n%s\nClean(...): want %t, got %t; -want, +got:\n%s", tc.reason, tc.ok, ok, diff)
			}
		})
	}
}
