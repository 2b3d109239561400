// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && tailnets

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const (
	// bakeryExample has the same objects as joinedExample, by the same names, in another namespace.
	bakeryExample = "examples/gateway-namespaces.yaml"
	bakery        = "bakery"

	// reserved is a TailscaleTailnet that allows the quickstart's namespace only.
	reserved = "reserved"
)

// lent permits the intruder to share the quickstart's Gateway, and nothing else.
const lent = `apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: lent, namespace: quickstart}
spec:
  from: [{group: gateway.tailscale.com, kind: TailscaleGateway, namespace: ` + bakery + `}]
  to: [{group: gateway.networking.k8s.io, kind: Gateway, name: ` + joined + `}]
`

// intruder refers to objects that its namespace may not use: a tailnet, a service name of the
// quickstart, and an extension for the quickstart's Gateway.
const intruder = `apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleGateway
metadata: {name: intruder, namespace: ` + bakery + `}
spec:
  gatewayRef: {name: ` + joined + `, namespace: quickstart}
  publishBackends: None
  extensionServer: {}
  tailnets:
  - {name: ` + reserved + `, proxy: {replicas: 1}}
  - name: quickstart
    proxy: {replicas: 1}
    vipService: {name: "svc:` + joined + `", tags: ["tag:k8s"]}
`

// separatesNamespaces checks TailscaleGateways of two namespaces whose objects have the same names.
func separatesNamespaces(t *testing.T) {
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Answers", answersInBothNamespaces},
		{"RejectsIntruder", rejectsIntruder},
		{"SurvivesOtherNamespace", survivesOtherNamespace},
		{"LeavesNothing", leavesNothingInBothNamespaces},
	} {
		if !t.Run(step.name, step.run) {
			return
		}
	}
}

// answersInBothNamespaces checks that pods of each namespace answer for the Gateway of that
// namespace and for its backends.
func answersInBothNamespaces(t *testing.T) {
	u := fromLab(t, "TAILNET_API_IN_CLUSTER")
	apply(t, fmt.Sprintf(tailnetManifest, reserved, "tailscale-oauth", "-", u, u)+"  allowedNamespaces: {from: List, names: [quickstart]}\n")
	kubectl(t, "apply", "-f", joinedExample)
	answeredFromNamespace(t, namespace, joined)

	kubectl(t, "apply", "-f", bakeryExample)
	apply(t, strings.ReplaceAll(readFile(t, "examples/quickstart/web.yaml"), "namespace: quickstart", "namespace: "+bakery))
	apply(t, intruder)
	answeredFromNamespace(t, bakery, joined+"-"+bakery)
	answeredFromNamespace(t, bakery, "web-"+bakery)
	answeredFromNamespace(t, namespace, "web-"+namespace)
	answeredFromNamespace(t, namespace, joined)
	for _, ns := range []string{namespace, bakery} {
		conditionIn(t, ns, "tailscalegateways", joined, "Ready", "True", "Available", patience)
	}
}

// answeredFromNamespace waits until a pod of a namespace answers for a Tailscale Service.
func answeredFromNamespace(t *testing.T, ns, service string) {
	t.Helper()
	u := tailnetOne.url(t, service)
	eventually(t, patience, "answer of "+u, func() string {
		response, err := curl(t, u)
		pods := strings.Fields(kubectl(t, "get", "pods", "-n", ns, "-l", "app=web", "-o=jsonpath={.items[*].metadata.name}"))
		if err != nil || !slices.Contains(pods, response) {
			return fmt.Sprintf("the response is %q, %v, want one of %v", response, err, pods)
		}
		return ""
	})
}

// rejectsIntruder checks that the status reports each reference that is not permitted, and that
// nothing is created for it.
func rejectsIntruder(t *testing.T) {
	eventually(t, patience, "GatewayValid of the intruder", func() string {
		got := conditionNow(t, bakery, "tailscalegateways", "intruder", "GatewayValid")
		if !strings.HasPrefix(got, "False/RefNotPermitted: ") || !strings.Contains(got, "namespace "+bakery+", to ") {
			return "the condition is " + got
		}
		return ""
	})
	apply(t, lent)
	for condition, tc := range map[string]struct{ reason, hint string }{
		"TailnetsValid":        {"NamespaceNotAllowed", `TailscaleTailnet "` + reserved + `" does not allow namespace "` + bakery + `"`},
		"ServicesReady":        {"ServiceError", namespace + "/" + joined + "-quickstart"},
		"ExtensionServerReady": {"OtherNamespace", "namespace " + namespace},
	} {
		eventually(t, patience, condition+" of the intruder", func() string {
			got := conditionNow(t, bakery, "tailscalegateways", "intruder", condition)
			if !strings.HasPrefix(got, "False/"+tc.reason+": ") || !strings.Contains(got, tc.hint) {
				return "the condition is " + got
			}
			return ""
		})
	}
	created := strings.Fields(kubectl(t, "get", "tailscaleendpoints,deployments", "-n", bakery, "-o=name"))
	want := []string{"tailscaleendpoints.gateway.tailscale.com/front-quickstart", "tailscaleendpoints.gateway.tailscale.com/intruder-quickstart", "deployment.apps/web"}
	slices.Sort(created)
	slices.Sort(want)
	if !slices.Equal(created, want) {
		t.Errorf("the namespace has %v, not %v", created, want)
	}
}

// survivesOtherNamespace deletes all objects of the other namespace under load on the Gateway of
// the same name.
func survivesOtherNamespace(t *testing.T) {
	u := tailnetOne.url(t, joined)
	r := underLoad(t, func() {
		kubectl(t, "delete", "referencegrants.gateway.networking.k8s.io", "lent", "-n", namespace)
		kubectl(t, "delete", "tailscalegateways", "intruder", joined, "-n", bakery, "--timeout=3m")
		goneFrom(t, bakery, "intruder", joined+"-quickstart", joined+"-"+bakery, "web-"+bakery)
		kubectl(t, "delete", "-f", bakeryExample, "--ignore-not-found", "--timeout=3m")
		answeredFromNamespace(t, namespace, joined)
	}, "--rate=20", "--new-connections", u)
	if r.Lost > 0 {
		t.Error(r)
	}
	conditionOf(t, "tailscalegateways", joined, "Ready", "True", "Available", patience)
	answeredFromNamespace(t, namespace, "web-"+namespace)
}

func leavesNothingInBothNamespaces(t *testing.T) {
	kubectl(t, "delete", "tailscalegateways", joined, "-n", namespace, "--timeout=3m")
	goneFrom(t, namespace, joined, "web-"+namespace)
	kubectl(t, "delete", "-f", joinedExample, "--ignore-not-found", "--timeout=3m")
	kubectl(t, "delete", "tailscaletailnets", reserved, "--timeout=1m")
}
