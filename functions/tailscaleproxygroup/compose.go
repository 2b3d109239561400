// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleproxygroup

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
)

// startAtOnce is the maximum number of endpoints that wait for their first devices. Each changes a
// dozen times until then, and Crossplane's circuit breaker counts each change twice against the
// group: a budget of 100, and one more per second. Endpoints that wait for a user do not count.
const startAtOnce = 2

// children returns a plan with the existing endpoints and as many new ones as may start.
func (g *group) children() compose.Plan {
	var p compose.Plan
	starting := 0
	for _, m := range g.members {
		if m.endpoints().Starting() {
			starting++
		}
	}
	for _, m := range g.members {
		if m.observed == nil && starting >= startAtOnce {
			// Some of the desired endpoints are missing, so ready children are not enough.
			p.NotReady = true
			continue
		}
		if m.observed == nil {
			starting++
		}
		p.Children = append(p.Children, compose.Child{Name: m.key(), Object: g.composeEndpoints(m), Ready: m.endpoints().Settled()})
	}
	for _, m := range g.leaving {
		if !g.replaced(m) {
			p.Children = append(p.Children, compose.Child{Name: m.key(), Object: g.copyEndpoints(m), Ready: true})
		}
	}
	return p
}

// replaced reports whether endpoints that are no longer wanted may be deleted. A tailnet that the
// group still has keeps them until one of the wanted endpoints is settled, and none has yet to get
// devices that it never had. When zones are set for the first time, or removed, all must be settled.
func (g *group) replaced(old *member) bool {
	removed, settled := true, false
	for _, m := range g.members {
		if m.tailnet != old.tailnet {
			continue
		}
		removed = false
		e := m.endpoints()
		switch {
		case e.Settled():
			settled = true
		case (m.zone == "") != (old.zone == ""), e.Unfinished():
			return false
		}
	}
	return removed || settled
}

// composeEndpoints returns the TailscaleEndpoints of a member.
func (g *group) composeEndpoints(m *member) *gatewayv1alpha1.TailscaleEndpoints {
	t := g.spec.Template.DeepCopy()
	pods := t.Proxy
	if m.zone != "" {
		n := map[string]string{}
		maps.Copy(n, pods.NodeSelector)
		n[corev1.LabelTopologyZone] = m.zone
		pods.NodeSelector = n
	}
	return &gatewayv1alpha1.TailscaleEndpoints{
		ObjectMeta: metav1.ObjectMeta{Name: m.name, Namespace: g.owner.Namespace, Labels: g.labels()},
		Spec: gatewayv1alpha1.TailscaleEndpointsSpec{
			Tailnet: m.tailnet,
			Tags:    t.Tags,
			Proxy: gatewayv1alpha1.Proxy{
				Replicas:       ptr.To(m.replicas),
				ConnectionType: g.spec.Type,
				ProxyPods:      pods,
			},
			Ports:     t.Ports,
			Endpoints: t.Endpoints,
		},
	}
}

// copyEndpoints returns an observed TailscaleEndpoints unchanged.
func (g *group) copyEndpoints(m *member) *gatewayv1alpha1.TailscaleEndpoints {
	return &gatewayv1alpha1.TailscaleEndpoints{
		ObjectMeta: metav1.ObjectMeta{Name: m.name, Namespace: g.owner.Namespace, Labels: g.labels()},
		Spec:       m.observed.Spec,
	}
}
