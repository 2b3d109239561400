// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// exporter returns a cluster whose ServiceExport is some minutes old, with changes of a plain Service.
func exporter(cluster string, age int, changes ...func(*tailnetv1alpha1.ExportedService)) Exporter {
	out := Exporter{Cluster: cluster}
	out.Created = metav1.NewTime(time.Date(2026, 1, 2, 3, 59-age, 0, 0, time.UTC))
	out.Type = tailnetv1alpha1.ExportedServiceClusterSetIP
	out.Ports = []tailnetv1alpha1.ExportedPort{{Name: "tcp", Protocol: corev1.ProtocolTCP, Port: 42}}
	for _, c := range changes {
		c(&out.ExportedService)
	}
	return out
}

func ports(ps ...tailnetv1alpha1.ExportedPort) func(*tailnetv1alpha1.ExportedService) {
	return func(e *tailnetv1alpha1.ExportedService) { e.Ports = ps }
}

func TestResolve(t *testing.T) {
	tcp := tailnetv1alpha1.ExportedPort{Name: "tcp", Protocol: corev1.ProtocolTCP, Port: 42}
	sctp := tailnetv1alpha1.ExportedPort{Name: "stcp", Protocol: corev1.ProtocolSCTP, Port: 142}
	cases := map[string]struct {
		reason    string
		exporters []Exporter
		oldest    string
		ports     []tailnetv1alpha1.ExportedPort
		kind      tailnetv1alpha1.ExportedServiceType
		conflict  string
	}{
		"Alone":  {reason: "A single cluster decides.", exporters: []Exporter{exporter("b", 5)}, oldest: "b", ports: []tailnetv1alpha1.ExportedPort{tcp}},
		"Agree":  {reason: "Equal Services are no conflict.", exporters: []Exporter{exporter("b", 5), exporter("a", 4)}, oldest: "b", ports: []tailnetv1alpha1.ExportedPort{tcp}},
		"Second": {reason: "Of two of the same time, the smaller ID is older.", exporters: []Exporter{exporter("b", 5), exporter("a", 5)}, oldest: "a", ports: []tailnetv1alpha1.ExportedPort{tcp}},
		"Union": {
			reason:    "The ports are those of all.",
			exporters: []Exporter{exporter("a", 4, ports(tcp, sctp)), exporter("b", 5)},
			oldest:    "b", ports: []tailnetv1alpha1.ExportedPort{tcp, sctp}, conflict: "PortConflict",
		},
		"PortNumbers": {
			reason:    "Of two ports of one name, that of the oldest counts.",
			exporters: []Exporter{exporter("a", 5), exporter("b", 4, ports(tailnetv1alpha1.ExportedPort{Name: "tcp", Port: 43}))},
			oldest:    "a", ports: []tailnetv1alpha1.ExportedPort{tcp}, conflict: "PortConflict",
		},
		"PortNames": {
			reason:    "A Service has no number twice.",
			exporters: []Exporter{exporter("a", 5), exporter("b", 4, ports(tailnetv1alpha1.ExportedPort{Name: "other", Port: 42}))},
			oldest:    "a", ports: []tailnetv1alpha1.ExportedPort{tcp}, conflict: "PortConflict",
		},
		"PortOrder": {
			reason:    "The order of ports, and an absent protocol, make no difference.",
			exporters: []Exporter{exporter("a", 5, ports(tcp, sctp)), exporter("b", 4, ports(sctp, tailnetv1alpha1.ExportedPort{Name: "tcp", Port: 42}))},
			oldest:    "a", ports: []tailnetv1alpha1.ExportedPort{tcp, sctp},
		},
		"Headless": {
			reason:    "The oldest decides the type.",
			exporters: []Exporter{exporter("a", 5), exporter("b", 4, func(e *tailnetv1alpha1.ExportedService) { e.Type = tailnetv1alpha1.ExportedServiceHeadless })},
			oldest:    "a", ports: []tailnetv1alpha1.ExportedPort{tcp}, conflict: "TypeConflict",
		},
		"HeadlessOldest": {
			reason:    "Also if it is headless.",
			exporters: []Exporter{exporter("a", 4), exporter("b", 5, func(e *tailnetv1alpha1.ExportedService) { e.Type = tailnetv1alpha1.ExportedServiceHeadless })},
			oldest:    "b", ports: []tailnetv1alpha1.ExportedPort{tcp}, kind: tailnetv1alpha1.ExportedServiceHeadless, conflict: "TypeConflict",
		},
		"Rest": {
			reason: "Each property that differs has its reason, once.",
			exporters: []Exporter{exporter("a", 5), exporter("c", 3, func(e *tailnetv1alpha1.ExportedService) { e.Labels = map[string]string{"a": "c"} }), exporter("b", 4, func(e *tailnetv1alpha1.ExportedService) {
				e.SessionAffinity, e.SessionAffinityTimeoutSeconds = corev1.ServiceAffinityClientIP, ptr.To[int32](10)
				e.InternalTrafficPolicy, e.TrafficDistribution = ptr.To(corev1.ServiceInternalTrafficPolicyLocal), ptr.To("PreferClose")
				e.Labels, e.Annotations = map[string]string{"a": "b"}, map[string]string{"a": "b"}
			})},
			oldest: "a", ports: []tailnetv1alpha1.ExportedPort{tcp},
			conflict: "SessionAffinityConflict,SessionAffinityConfigConflict,AnnotationsConflict,LabelsConflict,InternalTrafficPolicyConflict,TrafficDistributionConflict",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := Resolve(tc.exporters)
			if tc.kind == "" {
				tc.kind = tailnetv1alpha1.ExportedServiceClusterSetIP
			}
			reason, message := r.Conflict()
			if r.Oldest != tc.oldest || r.Type != tc.kind || reason != tc.conflict || (message == "") != (reason == "") {
				t.Errorf("\n%s\nResolve(...): want oldest %s, type %s and conflict %q, got %s, %s and %q: %s", tc.reason, tc.oldest, tc.kind, tc.conflict, r.Oldest, r.Type, reason, message)
			}
			if diff := cmp.Diff(tc.ports, r.Ports); diff != "" {
				t.Errorf("\n%s\nResolve(...): ports: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
