// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package forwarding

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleendpoints/proxies"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleendpoints/targets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// newPlan returns the plan of a spec with two replicas. If reported is true, the pods report each target,
// with the number of machines that reach it.
func newPlan(t *testing.T, spec gatewayv1alpha1.TailscaleEndpointsSpec, machines int32, reported bool) Plan {
	t.Helper()
	spec.Proxy.Replicas = ptr.To[int32](2)
	f := proxies.Facts{Owner: compose.Owner{Name: "web"}, Spec: spec}
	all := targets.New(targets.Facts{Spec: spec})
	p, err := New(Facts{Targets: all, Proxies: proxies.New(f).Egress})
	if err != nil {
		t.Fatal(err)
	}
	if !reported {
		return p
	}
	set := &tailnetv1alpha1.MachineSet{}
	set.Status.StatefulSet = &tailnetv1alpha1.StatefulSetSummary{Observed: true, Replicas: 2, ReadyReplicas: 2, UpdatedReplicas: 2}
	for _, o := range p.Targets.All {
		set.Status.Egress = append(set.Status.Egress, tailnetv1alpha1.MachineSetEgressPort{
			Port: o.ProxyPort, Protocol: corev1.ProtocolTCP, Target: o.Key, ReadyMachines: machines, Message: "It refused the connection",
		})
	}
	f.MachineSets = map[string]*tailnetv1alpha1.MachineSet{proxy.DirectionEgress: set}
	if p, err = New(Facts{Targets: all, Proxies: proxies.New(f).Egress, Config: p.Data}); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCondition(t *testing.T) {
	db := gatewayv1alpha1.Endpoint{Name: "db", TailscaleIP: "100.64.0.9", Port: ptr.To[int32](5432)}
	type result struct {
		Status compose.Status
		Reason xpv2.ConditionReason
	}
	cases := map[string]struct {
		reason   string
		spec     gatewayv1alpha1.TailscaleEndpointsSpec
		reported bool
		machines int32
		want     result
	}{
		"NoProxies": {
			reason: "The spec lists only the other direction.",
			spec:   gatewayv1alpha1.TailscaleEndpointsSpec{Endpoints: []gatewayv1alpha1.Endpoint{db}, Proxy: gatewayv1alpha1.Proxy{ConnectionType: gatewayv1alpha1.ConnectionTypeIngress}},
			want:   result{compose.False, meta.ReasonNoEgressProxies},
		},
		"Refused": {
			reason: "Two targets have one name.",
			spec:   gatewayv1alpha1.TailscaleEndpointsSpec{Endpoints: []gatewayv1alpha1.Endpoint{db, db}},
			want:   result{compose.False, meta.ReasonTargetsRefused},
		},
		"Portless": {
			reason: "An endpoint has no port.",
			spec:   gatewayv1alpha1.TailscaleEndpointsSpec{Endpoints: []gatewayv1alpha1.Endpoint{{Name: "db", TailscaleIP: "100.64.0.9"}}},
			want:   result{compose.False, meta.ReasonNoPorts},
		},
		"Unplaced": {
			reason: "Without the tailnet's domain it is not known whether a name is in it.",
			spec:   gatewayv1alpha1.TailscaleEndpointsSpec{Endpoints: []gatewayv1alpha1.Endpoint{{Name: "db", ExternalTarget: "db.example.com:5432"}}},
			want:   result{compose.False, meta.ReasonTargetsNotPlaced},
		},
		"Waiting": {
			reason: "No proxy has reported yet.",
			spec:   gatewayv1alpha1.TailscaleEndpointsSpec{Endpoints: []gatewayv1alpha1.Endpoint{db}},
			want:   result{compose.False, meta.ReasonReplicasNotReady},
		},
		"Unreached": {
			reason:   "No proxy reaches the target.",
			spec:     gatewayv1alpha1.TailscaleEndpointsSpec{Endpoints: []gatewayv1alpha1.Endpoint{db}},
			reported: true,
			want:     result{compose.False, meta.ReasonTargetsNotReady},
		},
		"Reached": {
			reason:   "One proxy is enough.",
			spec:     gatewayv1alpha1.TailscaleEndpointsSpec{Endpoints: []gatewayv1alpha1.Endpoint{db}},
			reported: true,
			machines: 1,
			want:     result{compose.True, meta.ReasonAllTargetsReady},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newPlan(t, tc.spec, tc.machines, tc.reported).Condition()
			if diff := cmp.Diff(tc.want, result{c.Status, c.Reason}); diff != "" {
				t.Errorf("\n%s\nCondition(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
