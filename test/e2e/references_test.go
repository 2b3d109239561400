// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// wrongManifest refers to objects that the schema allows and that the cluster or the tailnet lacks.
const wrongManifest = `apiVersion: v1
kind: Namespace
metadata: {name: elsewhere}
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: absent, namespace: quickstart}
spec:
  selector: {matchLabels: {app: web}}
  vipService: {ports: ["tcp:80"], tags: ["tag:k8s"]}
  backends: [{name: nobody, port: 80}]
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: mute, namespace: quickstart}
spec:
  selector: {matchLabels: {app: web}}
  vipService: {ports: ["tcp:80"], tags: ["tag:k8s"]}
  backends: [{name: web, port: 81}]
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: twin, namespace: quickstart}
spec:
  selector: {matchLabels: {app: web}}
  vipService: {name: "svc:web", ports: ["tcp:80"], tags: ["tag:k8s"]}
  backends: [{name: web, port: 80}]
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: stranger, namespace: elsewhere}
spec:
  selector: {matchLabels: {app: web}}
  vipService: {ports: ["tcp:80"], tags: ["tag:k8s"]}
  backends: [{name: web, port: 80}]
`

// longManifest has names of the maximum length of a DNS label.
const longManifest = `apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleEndpoints
metadata: {name: %[1]s, namespace: quickstart, labels: {app: long}}
spec: {tailnet: quickstart, proxy: {replicas: 1}}
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: %[1]s, namespace: quickstart}
spec:
  selector: {matchLabels: {app: long}}
  vipService: {ports: ["tcp:80"], tags: ["tag:k8s"]}
  backends: [{name: web, port: 80}]
`

// long has the maximum length of a DNS label.
var long = "long" + strings.Repeat("-name", 11) + "-end"

// reportsInvalidReferences checks that the conditions of an object report its missing references,
// and that older objects still work.
func reportsInvalidReferences(t *testing.T) {
	apply(t, wrongManifest)
	apply(t, fmt.Sprintf(longManifest, long))
	for name, tc := range map[string]struct{ object, condition, reason, hint string }{
		"MissingService":  {"absent", "Advertised", "NoHealthyBackend", "Service nobody"},
		"PortNothingHas":  {"mute", "Advertised", "NoHealthyBackend", "Service web"},
		"OneNameForTwo":   {"twin", "VIPServiceReady", "NameTaken", "quickstart/web"},
		"OtherNamespaces": {"stranger", "EndpointsSelected", "NoEndpointsMatch", `"elsewhere"`},
	} {
		t.Run(name, func(t *testing.T) {
			ns := namespace
			if tc.object == "stranger" {
				ns = "elsewhere"
			}
			// The conditions of a new object change: wait for the lasting message.
			eventually(t, patience, fmt.Sprintf("a message that names %q", tc.hint), func() string {
				if msg := conditionIn(t, ns, "tailscaleservices", tc.object, tc.condition, "False", tc.reason, patience); !strings.Contains(msg, tc.hint) {
					return "the message is " + msg
				}
				return ""
			})
		})
	}
	t.Run("LongestName", func(t *testing.T) {
		if len(long) != 63 {
			t.Fatalf("the name has %d characters", len(long))
		}
		answered(t, long, "web", patience)
	})
	conditionOf(t, "tailscaleservices", "web", "Advertised", "True", "HostsAdvertising", patience)
	answered(t, "web", "web", patience)

	kubectl(t, "delete", "tailscaleservices,tailscaleendpoints", long, "-n", namespace, "--timeout=3m")
	kubectl(t, "delete", "tailscaleservices", "absent", "mute", "twin", "-n", namespace, "--timeout=3m")
	kubectl(t, "delete", "namespace", "elsewhere", "--timeout=3m")
	goneFrom(t, namespace, "absent", "mute", "twin", "long")
	// The twin is gone, and the object that it conflicted with still exists.
	answered(t, "web", "web", patience)
}

// appliesAllowedNamespaces allows namespaces in each way of a tailnet.
func appliesAllowedNamespaces(t *testing.T) {
	u := fromLab(t, "TAILNET_API_IN_CLUSTER")
	tailnet := fmt.Sprintf(tailnetManifest, "fenced", "tailscale-oauth", "-", u, u)
	allow := func(namespaces string) { apply(t, tailnet+"  allowedNamespaces: "+namespaces+"\n") }
	// When children come or go with a condition, Crossplane's cache lags behind both, and keeps the
	// old condition until the next run: the hint identifies the condition.
	becomes := func(status, reason, hint string) {
		t.Helper()
		eventually(t, patience, "TailnetAccepted that names "+hint, func() string {
			if got := conditionNow(t, namespace, "tailscaleendpoints", "fenced", "TailnetAccepted"); !strings.HasPrefix(got, status+"/"+reason+": ") || !strings.Contains(got, hint) {
				return "the condition is " + got
			}
			return ""
		})
	}
	allow("{from: List, names: [elsewhere]}")
	apply(t, "apiVersion: gateway.tailscale.com/v1alpha1\nkind: TailscaleEndpoints\nmetadata: {name: fenced, namespace: quickstart}\nspec: {tailnet: fenced, proxy: {replicas: 0}}\n")
	becomes("False", "NamespaceNotAllowed", "spec.allowedNamespaces.names")
	if remaining := kubectl(t, "get", "statefulsets,machinesets,secrets", "-n", namespace, "-o=name"); strings.Contains(remaining, "/fenced-") {
		t.Errorf("a namespace that is not allowed has %s", remaining)
	}
	allow("{from: List, names: [elsewhere, quickstart]}")
	becomes("True", "Accepted", "quickstart")
	allow("{from: Selector, selector: {matchLabels: {fenced: inside}}}")
	becomes("False", "NamespaceNotAllowed", "fenced=inside")
	kubectl(t, "label", "namespace", namespace, "fenced=inside")
	becomes("True", "Accepted", "quickstart")
	kubectl(t, "label", "namespace", namespace, "fenced-")
	becomes("False", "NamespaceNotAllowed", "fenced=inside")
	allow("{from: All}")
	becomes("True", "Accepted", "quickstart")

	kubectl(t, "delete", "tailscaleendpoints", "fenced", "-n", namespace, "--timeout=60s")
	goneFrom(t, namespace, "fenced")
	kubectl(t, "delete", "tailscaletailnets", "fenced", "--timeout=60s")
}
