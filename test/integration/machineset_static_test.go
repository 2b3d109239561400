// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"tailscale.com/ipn"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// staticRights are those of the chart with provider.staticEndpoints. They stay: without them the
// watches of other cases would fail.
const staticRights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: static-endpoints}
rules:
- {apiGroups: [""], resources: [nodes], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [services], verbs: [get, list, watch, create, update, patch, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: static-endpoints}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: static-endpoints}
subjects:
- {kind: ServiceAccount, namespace: %s, name: %s}
`

// TestMachineSetStatic gives pods node ports of a real API server, refuses them until they are
// granted, and follows a node that changes its address.
func TestMachineSetStatic(t *testing.T) {
	t.Parallel()
	s := newPodSet(t, 2)
	config := "static-" + s.namespace
	s.config(v1alpha1.ClusterProviderConfigKind, config, fmt.Sprintf(
		"  apiURL: %s\n  clusterID: %s\n  tags: [\"tag:k8s\"]\n  credentials: {oauthSecretRef: {name: %s, namespace: %s}}\n  allowedNamespaces: {from: Grants, grants: [{names: [%s]}]}",
		s.sim.URL, s.clusterID, credentialsSecret, s.namespace, s.namespace))
	pc := &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: config}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "static-" + s.namespace, Labels: map[string]string{"edge": s.namespace}}}
	t.Cleanup(func() {
		for _, o := range []client.Object{node, pc} {
			if err := client.IgnoreNotFound(shared.kube.Delete(context.WithoutCancel(s.Context()), o)); err != nil {
				t.Logf("cannot delete %T: %v", o, err)
			}
		}
	})
	s.must(shared.kube.Create(t.Context(), node))
	address := func(a string) {
		s.Helper()
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeExternalIP, Address: a}}
		s.must(shared.kube.Status().Update(t.Context(), node))
	}
	address("198.51.100.7")

	static := func(p *v1alpha1.MachineSetPods) {
		p.StaticEndpoints = &v1alpha1.StaticEndpoints{NodeSelector: map[string]v1alpha1.LabelValue{"edge": v1alpha1.LabelValue(s.namespace)}}
	}
	s.set.Spec.ProviderConfigReference = xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: config}
	s.want(2, static)
	s.create(s.set)
	s.hasMessage("spec.pods.staticEndpoints", "grants[0].staticEndpoints")
	services := func() []corev1.Service {
		s.Helper()
		l := &corev1.ServiceList{}
		s.must(shared.kube.List(t.Context(), l, client.InNamespace(s.namespace), client.MatchingLabels{meta.LabelMachineSet: subject}))
		return l.Items
	}
	if n := len(services()); n != 0 {
		t.Errorf("%d Services exist without a grant", n)
	}

	s.must(retry.RetryOnConflict(conflicts, func() error {
		if err := shared.kube.Get(t.Context(), client.ObjectKeyFromObject(pc), pc); err != nil {
			return err
		}
		enabled := true
		pc.Spec.AllowedNamespaces.Grants[0].StaticEndpoints = &enabled
		return shared.kube.Update(t.Context(), pc)
	}))
	// The provider has the rights only if the chart is installed so.
	s.hasMessage("provider.staticEndpoints=true")
	s.apply(fmt.Sprintf(staticRights, apiserver.CrossplaneNamespace, apiserver.AccountProvider))
	announces := func(address string) func() error {
		return func() error {
			if err := s.runs(2); err != nil {
				return err
			}
			for _, m := range members(2) {
				svc := &corev1.Service{}
				if err := shared.kube.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: proxy.StaticServiceName(m.Name)}, svc); err != nil {
					return err
				}
				secret := &corev1.Secret{}
				if err := shared.kube.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: m.Name + meta.ConfigSecretSuffix}, secret); err != nil {
					return err
				}
				var cfg ipn.ConfigVAlpha
				if err := json.Unmarshal(secret.Data[meta.ConfigKey], &cfg); err != nil {
					return err
				}
				want := netip.AddrPortFrom(netip.MustParseAddr(address), uint16(svc.Spec.Ports[0].NodePort))
				if len(cfg.StaticEndpoints) != 1 || cfg.StaticEndpoints[0] != want {
					return errors.Errorf("%s announces %v, want %s", m.Name, cfg.StaticEndpoints, want)
				}
			}
			return nil
		}
	}
	s.eventually("both machines announce their node ports", announces("198.51.100.7"))
	versions := func() map[string]string {
		out := map[string]string{}
		for _, svc := range services() {
			out[svc.GetName()] = svc.GetResourceVersion()
		}
		return out
	}
	previous := versions()
	address("198.51.100.8")
	s.eventually("the node's other address is announced", announces("198.51.100.8"))
	for name, v := range versions() {
		if previous[name] != v {
			t.Errorf("Service %s was written again, though nothing of it changed", name)
		}
	}

	s.scale(2)
	s.eventually("nothing is left of static endpoints", func() error {
		if n := len(services()); n > 0 {
			return errors.Errorf("%d Services are left", n)
		}
		for _, m := range members(2) {
			o := &v1alpha1.Machine{}
			if err := shared.kube.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: m.Name}, o); err != nil {
				return err
			}
			if e := o.Spec.ForProvider.StaticEndpoints; len(e) > 0 {
				return errors.Errorf("%s still announces %v", m.Name, e)
			}
		}
		return nil
	})
}
