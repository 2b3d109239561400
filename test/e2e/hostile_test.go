// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && hostile

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/test/load"
)

// Tenants of SECURITY.md, in a separate namespace.
const (
	hostileNamespace = "mallory"

	// routesTenant has the role of the chart, and routes. editTenant has Kubernetes' role edit and
	// Crossplane's, and what clusters before Kubernetes 1.22 gave to edit: EndpointSlices.
	routesTenant = "routes-tenant"
	editTenant   = "edit-tenant"
)

// hostileTenants is the namespace with its roles.
const hostileTenants = `apiVersion: v1
kind: Namespace
metadata: {name: mallory}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: routes, namespace: mallory}
rules:
- {apiGroups: [gateway.networking.k8s.io], resources: ["*"], verbs: ["*"]}
- {apiGroups: [gateway.envoyproxy.io], resources: [backendtrafficpolicies], verbs: ["*"]}
- {apiGroups: [""], resources: [configmaps], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: slices, namespace: mallory}
rules:
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: routes, namespace: mallory}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: routes}
subjects: [{kind: User, name: routes-tenant}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: ours, namespace: mallory}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "tailscale-gateway:edit"}
subjects: [{kind: User, name: routes-tenant}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: edit, namespace: mallory}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: User, name: edit-tenant}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: crossplane, namespace: mallory}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: crossplane-edit}
subjects: [{kind: User, name: edit-tenant}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: slices, namespace: mallory}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: slices}
subjects: [{kind: User, name: edit-tenant}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: client, namespace: mallory}
rules:
- {apiGroups: [""], resources: [secrets], resourceNames: [client], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: client, namespace: mallory}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: client}
subjects: [{kind: ServiceAccount, name: tailscale-gateway-extension, namespace: envoy-gateway-system}]
`

// An attack is what a tenant does. It has an effect that the tenant alone sees, and which shows that
// the product has dealt with it.
type attack struct {
	// name begins with the instance of SECURITY.md's kinds of faults.
	name string

	as, manifest string

	// action is for what a manifest cannot say.
	action func(t *testing.T)

	// missing returns what the effect still lacks. Nil if action checks the effect.
	missing func(t *testing.T) string
}

// tries runs kubectl as a user of the hostile namespace.
func tries(t *testing.T, user, stdin string, args ...string) (string, error) {
	t.Helper()
	return tryRun(t, stdin, "kubectl", append([]string{"--as=" + user, "-n", hostileNamespace}, args...)...)
}

// condition returns a function that waits for a condition to say a text.
func condition(kind, name, conditionType, text string) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		if got := conditionNow(t, hostileNamespace, kind, name, conditionType); !strings.Contains(got, text) {
			return fmt.Sprintf("%s of %s is %q, want %q", conditionType, name, got, text)
		}
		return ""
	}
}

// shows returns a function that waits until a user sees a text in a field of an object. An empty
// text is any value.
func shows(user, kind, name, field, text string) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		out, err := tries(t, user, "", "get", kind, name, "-o=jsonpath="+field)
		if err != nil || out == "" || !strings.Contains(out, text) {
			return fmt.Sprintf("%s of %s is %q, %v", field, name, out, err)
		}
		return ""
	}
}

func attacks(t *testing.T) []attack {
	t.Helper()
	victim := victimMachine(t, namespace, "proxies-ingress-0")
	var big strings.Builder
	for i := range 8 {
		fmt.Fprintf(&big, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ca-%d, namespace: mallory}\ndata: {ca.crt: %q}\n---\n", i, strings.Repeat("x", 900<<10))
	}
	return []attack{
		{
			name: "Own", as: routesTenant,
			manifest: `apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleEndpoints
metadata: {name: own, namespace: mallory, labels: {app: own}}
spec: {tailnet: quickstart, proxy: {replicas: 1, connectionType: ingress}}
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: own, namespace: mallory}
spec:
  selector: {matchLabels: {app: own}}
  vipService: {ports: ["tcp:80"], tags: ["tag:k8s"]}
  backends: [{kind: External, name: out, host: example.com, port: 80}]
`,
			missing: condition("tailscaleendpoints", "own", "MachinesReady", "True/"),
		},
		{
			name: "A1LeadingZeros", as: editTenant,
			manifest: `apiVersion: v1
kind: Service
metadata: {name: zeros, namespace: mallory}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: zeros, namespace: mallory, labels: {kubernetes.io/service-name: zeros}}
addressType: IPv4
ports: [{port: 80, protocol: TCP}]
endpoints: [{addresses: ["010.0.0.6"]}]
`,
			missing: shows(editTenant, "endpointslice", "zeros", "{.endpoints[*].addresses}", "010.0.0.6"),
		},
		{
			name: "A1LeadingZerosRouted", as: routesTenant,
			manifest: `apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: zeros, namespace: mallory}
spec:
  selector: {matchLabels: {app: own}}
  vipService: {ports: ["tcp:80"], tags: ["tag:k8s"], name: "svc:zeros"}
  backends: [{name: zeros, port: 80}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: zeros, namespace: mallory}
spec:
  parentRefs: [{name: web, namespace: quickstart}]
  hostnames: [zeros.example.com]
  rules: [{backendRefs: [{group: gateway.tailscale.com, kind: TailscaleServices, name: zeros, port: 80}]}]
`,
			missing: shows(routesTenant, "httproute", "zeros", "{.status.parents[*].conditions[*].reason}", ""),
		},
		{
			name: "B2Certificates", as: routesTenant,
			manifest: big.String() + `apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: big, namespace: mallory}
spec:
  targetRefs: [{group: gateway.tailscale.com, kind: TailscaleServices, name: zeros}]
  validation:
    hostname: zeros.example.com
    caCertificateRefs: [{group: "", kind: ConfigMap, name: ca-0}, {group: "", kind: ConfigMap, name: ca-1}, {group: "", kind: ConfigMap, name: ca-2}, {group: "", kind: ConfigMap, name: ca-3}, {group: "", kind: ConfigMap, name: ca-4}, {group: "", kind: ConfigMap, name: ca-5}, {group: "", kind: ConfigMap, name: ca-6}, {group: "", kind: ConfigMap, name: ca-7}]
`,
			missing: shows(routesTenant, "backendtlspolicy", "big", "{.metadata.name}", "big"),
		},
		{
			name: "T2Internals", as: editTenant,
			action: func(t *testing.T) {
				t.Helper()
				for _, kind := range []string{"machines", "machinesets", "proxysets", "serviceattachments"} {
					kind += ".tailnet.gateway.tailscale.com"
					if out := kubectl(t, "get", kind, "-n", hostileNamespace, "-o=name"); out == "" {
						t.Fatalf("the tenant has no %s to write", kind)
					}
					if out, err := tries(t, editTenant, "", "annotate", kind, "--all", "example.com/forged=yes"); err == nil || !strings.Contains(out, "orbidden") {
						t.Errorf("a tenant may write %s: %v, %s", kind, err, out)
					}
				}
			},
		},
		{
			name: "F1ForgedRecord", as: editTenant,
			action: func(t *testing.T) {
				t.Helper()
				for _, a := range []string{"retired-device-id=" + victim.NodeID, "auth-key-id=" + victimKey(t), "tailnet-device-id=" + victim.NodeID} {
					if out, err := tries(t, editTenant, "", "annotate", "--overwrite", "secret/own-ingress-0-config", "gateway.tailscale.com/"+a); err != nil {
						t.Fatalf("cannot annotate: %v\n%s", err, out)
					}
				}
				if out, err := tries(t, routesTenant, "", "delete", "tailscaleendpoints", "own", "--timeout=3m"); err != nil {
					t.Fatalf("cannot delete: %v\n%s", err, out)
				}
			},
			missing: func(t *testing.T) string {
				t.Helper()
				if out, err := tries(t, editTenant, "", "get", "machines.tailnet.gateway.tailscale.com", "-o=name"); err != nil || out != "" {
					return fmt.Sprintf("machines are left: %s, %v", out, err)
				}
				return ""
			},
		},
		{
			name: "F3NameOfAnother", as: routesTenant,
			manifest: `apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: taken, namespace: mallory}
spec:
  endpointTemplate: {tailnet: quickstart, proxy: {replicas: 1}}
  vipService: {name: "svc:web", ports: ["tcp:80"], tags: ["tag:k8s"]}
  backends: [{kind: External, name: out, host: example.com, port: 80}]
`,
			missing: condition("tailscaleservices", "taken", "VIPServiceReady", "False/NameTaken"),
		},
		{
			name: "G1Image", as: routesTenant,
			manifest: `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: own, namespace: mallory}
spec:
  gatewayClassName: envoy
  listeners: [{name: http, port: 8088, protocol: HTTP}]
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleGateway
metadata: {name: own, namespace: mallory}
spec:
  gatewayRef: {name: own}
  extensionServer: {image: "registry.example.com/mallory:latest"}
  tailnets: [{name: quickstart, proxy: {replicas: 1}}]
`,
			missing: condition("tailscalegateways", "own", "ExtensionServerReady", "False/"),
		},
		{
			name: "J7ForeignGateway", as: routesTenant,
			manifest: `apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleGateway
metadata: {name: foreign, namespace: mallory}
spec:
  gatewayRef: {name: web, namespace: quickstart}
  tailnets: [{name: quickstart, proxy: {replicas: 1}}]
`,
			missing: condition("tailscalegateways", "foreign", "GatewayValid", "False/RefNotPermitted"),
		},
		{
			name: "H3ExternalIPs", as: editTenant,
			manifest: `apiVersion: v1
kind: Service
metadata: {name: thief, namespace: mallory}
spec: {externalIPs: [192.0.2.77], ports: [{port: 80}]}
`,
			missing: shows(editTenant, "service", "thief", "{.spec.externalIPs}", "192.0.2.77"),
		},
		{
			name: "T4Device",
			action: func(t *testing.T) {
				t.Helper()
				// A user of the tailnet calls a device as a service is called.
				labCommand(t, "tailnet-client", "web-1")
			},
			missing: func(t *testing.T) string {
				t.Helper()
				for _, d := range tailnetState(t).Devices {
					if strings.HasPrefix(d.Hostname, "web-1") {
						return ""
					}
				}
				return "the device has not joined"
			},
		},
	}
}

// victimMachine returns the identity of a Machine.
func victimMachine(t *testing.T, ns, name string) hostileVictim {
	t.Helper()
	return hostileVictim{
		NodeID:    kubectl(t, "get", "machines.tailnet.gateway.tailscale.com", name, "-n", ns, `-o=jsonpath={.metadata.annotations.gateway\.tailscale\.com/node-id}`),
		Addresses: kubectl(t, "get", "machines.tailnet.gateway.tailscale.com", name, "-n", ns, "-o=jsonpath={.status.atProvider.addresses}"),
	}
}

// victimKey returns the ID of a key of a victim that is not revoked, or an invented one.
func victimKey(t *testing.T) string {
	t.Helper()
	for _, k := range tailnetState(t).Keys {
		if strings.Contains(k.Description, "quickstart") {
			return k.ID
		}
	}
	return "k0victim"
}

// A hostileVictim is what must not change of a victim's machine.
type hostileVictim struct{ NodeID, Addresses string }

// victimObjects returns what the cluster and the tailnet have of the victims.
func victimObjects(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, kind := range []string{"tailscaleendpoints,tailscaleservices,tailscalegateways", "statefulsets,services,secrets,configmaps,serviceaccounts,roles,rolebindings,networkpolicies", "httproutes,gateways"} {
		for _, name := range strings.Fields(kubectl(t, "get", kind, "-n", namespace, "-o=name")) {
			out["cluster "+name] = kubectl(t, "get", name, "-n", namespace, "-o=jsonpath={.metadata.uid} {.metadata.generation}")
		}
	}
	b, err := rawState(context.WithoutCancel(t.Context()), tailnetOne.env(t, "TAILNET_API"))
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Services []struct {
			Name  string            `json:"name"`
			Addrs []string          `json:"addrs"`
			Notes map[string]string `json:"annotations"`
		} `json:"services"`
	}
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	for _, v := range s.Services {
		if v.Name == "svc:web" {
			out["tailnet "+v.Name] = fmt.Sprint(v.Addrs, v.Notes)
		}
	}
	for i := range 2 {
		name := fmt.Sprintf("proxies-ingress-%d", i)
		out["machine "+name] = fmt.Sprint(victimMachine(t, namespace, name))
	}
	return out
}

// TestHostileTenant has tenants attack while victims are under load: from the tailnet to a Tailscale
// Service and to a Gateway by its hostname, and from the cluster through a Gateway. No request is
// lost, and nothing of theirs changes.
func TestHostileTenant(t *testing.T) {
	demo(t)
	scale(t, 2)
	answered(t, "web", "web", patience)
	apply(t, hostileTenants)
	answersByHostname(t)
	// The victims' Gateways are shared by tenants: all that they write reaches the same Envoys.
	for _, name := range []string{"web", named} {
		kubectl(t, "patch", "gateways.gateway.networking.k8s.io", name, "-n", namespace, "--type=json",
			`-p=[{"op": "add", "path": "/spec/listeners/0/allowedRoutes", "value": {"namespaces": {"from": "All"}}}]`)
	}
	previous := victimObjects(t)
	var loads []*load.Process
	for _, args := range [][]string{
		{"--from=tailnet", vipURL(t, "web")},
		{"--from=tailnet", "http://app." + namedDomain + "/"},
		{"--from=cluster", "--host=web.example.com", "http://" + addressOfGateway(t, "web") + "/"},
	} {
		l, err := load.StartProcess(t.Context(), lab, append([]string{"--new-connections", "--workers=10", "--rate=10", "--for=1h"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		loads = append(loads, l)
	}
	for _, a := range slices.Concat(attacks(t), floods(t), trespasses(t)) {
		t.Run(a.name, func(t *testing.T) {
			if a.manifest != "" {
				if out, err := tries(t, a.as, a.manifest, "apply", "--server-side", "--force-conflicts", "-f", "-"); err != nil {
					t.Fatalf("the tenant may do less than SECURITY.md says: %v\n%s", err, out)
				}
			}
			if a.action != nil {
				a.action(t)
			}
			if a.missing != nil {
				took := eventually(t, patience, a.name, func() string { return a.missing(t) })
				t.Logf("after %s", took.Round(100*time.Millisecond))
			}
		})
	}
	for _, l := range loads {
		if r := ended(t, l); r.Lost > 0 {
			t.Errorf("a victim: %s", r)
		}
	}
	current := victimObjects(t)
	if diff := cmp.Diff(previous, current); diff != "" {
		t.Errorf("objects of a victim have changed: -want, +got:\n%s", diff)
	}
	if images := kubectl(t, "get", "pods", "-n", hostileNamespace, "-o=jsonpath={.items[*].spec.containers[*].image}"); strings.Contains(images, "registry.example.com") {
		t.Errorf("the tenant's image runs: %s", images)
	}
}
