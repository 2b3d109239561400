// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/causes"
)

// parse returns the objects of manifests, as status reads them.
func parse(t *testing.T, manifests string) []causes.Object {
	t.Helper()
	var all []*unstructured.Unstructured
	for doc := range strings.SplitSeq(manifests, "\n---\n") {
		u := &unstructured.Unstructured{}
		j, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		if err := u.UnmarshalJSON(j); err != nil {
			t.Fatal(err)
		}
		all = append(all, u)
	}
	sets := map[causes.Reference]causes.Reference{}
	for _, u := range all {
		if u.GetKind() == "MachineSet" {
			sets[referenceOf(u)] = ownerOf(u)
		}
	}
	var out []causes.Object
	for _, u := range all {
		if u.GetKind() != "MachineSet" {
			out = append(out, objectOf(u, sets))
		}
	}
	return out
}

const composites = `
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleTailnet
metadata: {name: example}
status: {tailnetInfo: {name: example.com, magicDNSSuffix: tail1.ts.net}, conditions: [{type: Synced, status: "True"}, {type: Ready, status: "True"}]}
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleEndpoints
metadata: {name: web, namespace: shop}
spec: {tailnet: example}
status: {healthyEndpoints: 0, totalEndpoints: 1, conditions: [{type: MachinesReady, status: "False", reason: MachinesNotReady, message: 0 of 1 are ready}, {type: Ready, status: "False", reason: Creating}]}
---
apiVersion: tailnet.gateway.tailscale.com/v1alpha1
kind: MachineSet
metadata: {name: web-ingress, namespace: shop, ownerReferences: [{apiVersion: gateway.tailscale.com/v1alpha1, kind: TailscaleEndpoints, name: web, uid: "1", controller: true}]}
---
apiVersion: tailnet.gateway.tailscale.com/v1alpha1
kind: Machine
metadata: {name: web-ingress-0, namespace: shop, ownerReferences: [{apiVersion: tailnet.gateway.tailscale.com/v1alpha1, kind: MachineSet, name: web-ingress, uid: "2", controller: true}]}
spec: {providerConfigRef: {kind: ClusterProviderConfig, name: example}}
status: {conditions: [{type: Synced, status: "False", reason: ReconcileError, message: "requested tags [tag:shop] are invalid or not permitted"}, {type: Ready, status: "False", reason: Creating}]}
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: api, namespace: shop}
status: {vipServiceStatus: {dnsName: api.tail1.ts.net.}, conditions: [{type: Synced, status: "True"}, {type: Ready, status: "True"}]}
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: web, namespace: shop}
status: {conditions: [{type: Synced, status: "True"}, {type: Advertised, status: "False", reason: NoHealthyBackend, message: No backend answers}, {type: Ready, status: "False", reason: Creating}]}
`

func TestState(t *testing.T) {
	l := statusOf(inventory{objects: parse(t, composites)}, "kubectl --context=lab")
	want := `TailscaleEndpoints shop/web is not ready: requested tags [tag:shop] are invalid or not permitted (ReconcileError of Machine shop/web-ingress-0)
  Next: in tagOwners of the tailnet's policy file, let a tag of the credential own it: "tag:shop": ["TAG-OF-THE-CREDENTIAL"]

TailscaleServices shop/web is not ready: No backend answers (NoHealthyBackend)
  Next: make the backend answer its probe: see the readiness of its pods and their NetworkPolicies

Tailnets: 1 of 1 ready
  example   Ready   example.com tail1.ts.net

Proxies: 0 of 1 ready
  shop/web   ReconcileError   0 of 1 machines

Services: 1 of 2 ready
  shop/web   NoHealthyBackend
  shop/api   Ready   api.tail1.ts.net
`
	if diff := cmp.Diff(want, l.screen(20)); diff != "" {
		t.Errorf("screen(...): -want, +got:\n%s", diff)
	}
}

// TestStateClaims checks that what the composite of a claim composes belongs to the claim.
func TestStateClaims(t *testing.T) {
	l := statusOf(inventory{objects: parse(t, `
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: web, namespace: shop}
status: {conditions: [{type: Ready, status: "False", reason: Waiting, message: Claim is waiting for composite resource to become Ready}]}
---
apiVersion: tailnet.gateway.tailscale.com/v1alpha1
kind: VIPService
metadata:
  name: web
  namespace: shop
  labels: {crossplane.io/claim-name: web, crossplane.io/claim-namespace: shop}
  ownerReferences: [{apiVersion: gateway.tailscale.com/v1alpha1, kind: XTailscaleServices, name: web-x7k2, uid: "2", controller: true}]
status: {conditions: [{type: Ready, status: "False", reason: ForeignService, message: The service belongs to others}]}
`)}, "kubectl")
	want := []causeStatus{{
		Condition: causes.Condition{Type: "Ready", Status: "False", Reason: "ForeignService", Message: "The service belongs to others"},
		Object:    causes.Reference{Kind: "VIPService", Namespace: "shop", Name: "web"},
		Objects:   []causes.Reference{{Kind: "TailscaleServices", Namespace: "shop", Name: "web"}},
		NextStep:  "kubectl describe vipservice.tailnet.gateway.tailscale.com --namespace=shop web",
	}}
	if diff := cmp.Diff(want, l.Causes); diff != "" {
		t.Errorf("statusOf(...): -want, +got:\n%s", diff)
	}
}

// TestStateTailnet checks that one credential that fails is one cause of many objects.
func TestStateTailnet(t *testing.T) {
	failed := `{conditions: [{type: Authenticated, status: "False", reason: CredentialRejected, message: The OAuth client was revoked}, {type: Ready, status: "False", reason: Creating}]}`
	manifests := []string{"apiVersion: gateway.tailscale.com/v1alpha1\nkind: TailscaleTailnet\nmetadata: {name: example}\nstatus: " + failed}
	for n := range 50 {
		manifests = append(manifests, fmt.Sprintf("apiVersion: gateway.tailscale.com/v1alpha1\nkind: TailscaleEndpoints\nmetadata: {name: web-%d, namespace: shop}\nspec: {tailnet: example}\n", n))
	}
	l := statusOf(inventory{objects: parse(t, strings.Join(manifests, "\n---\n"))}, "kubectl")
	if len(l.Causes) != 1 || l.Causes[0].Reason != "CredentialRejected" || len(l.Causes[0].Objects) != 51 {
		t.Errorf("statusOf(...): %d causes, want 1: %+v", len(l.Causes), l.Causes)
	}
	out := l.screen(3)
	if !strings.Contains(out, "47 more; --limit=0 prints all") || strings.Count(out, "\n") > 14 {
		t.Errorf("screen(3):\n%s", out)
	}
}

// TestStateHostile checks that texts of objects do nothing to a terminal, and that fields of other types are absent.
func TestStateHostile(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "gateway.tailscale.com/v1alpha1", "kind": "TailscaleServices", "metadata": map[string]any{"name": hostile, "namespace": "ns"},
		"spec":   map[string]any{"tailnets": "none"},
		"status": map[string]any{"vipServiceStatus": map[string]any{"dnsName": hostile}, "conditions": []any{"none", map[string]any{"type": "Ready", "status": "False", "reason": hostile, "message": hostile}}},
	}}
	out := statusOf(inventory{objects: []causes.Object{objectOf(u, nil)}}, "kubectl").screen(0)
	if strings.ContainsAny(out, "\x1b\u202e") {
		t.Errorf("screen(...) has control characters: %q", out)
	}
}

// TestStatus runs the command in a cluster without objects, and without the kinds.
func TestStatus(t *testing.T) {
	w := newWorld(t)
	code, out, errs := w.run("status")
	if code != ExitNone || errs != "" || out != "There are no tailnets, proxies, services or Gateways.\n" {
		t.Errorf("status: code %d, %q, %s", code, out, errs)
	}
	code, out, errs = w.run("status", "-n", "shop", "-o", "json")
	l := statusList{}
	if err := json.Unmarshal([]byte(out), &l); err != nil || code != ExitNone {
		t.Errorf("status -o json: code %d, %v, %s:\n%s", code, err, errs, out)
	}
	w.deny = "TailscaleServices"
	if code, _, errs := w.run("status"); code != ExitFailed || !strings.Contains(errs, "cannot list objects of kind TailscaleServices") {
		t.Errorf("status without the right to list: code %d, %s", code, errs)
	}
}

// TestStatusTenant checks that a user of a namespace sees its objects without the rights to list what is composed from
// them, and tailnets.
func TestStatusTenant(t *testing.T) {
	cases := map[string]struct {
		reason string
		deny   string
		args   []string
		code   int
		want   []string
	}{
		"Composed":   {reason: "Without what is composed, objects of users are shown.", deny: "Machine", args: []string{"-n", "shop"}, code: ExitNone, want: []string{"Machine", "MachineSet"}},
		"Everywhere": {reason: "So they are in all namespaces.", deny: "VIPService", code: ExitNone, want: []string{"VIPService"}},
		"Tailnets":   {reason: "A tailnet is not in the namespace.", deny: "TailscaleTailnet", args: []string{"-n", "shop"}, code: ExitNone, want: []string{"TailscaleTailnet"}},
		"AllTailnets": {
			reason: "In all namespaces nothing shows that all tailnets are ready.", deny: "TailscaleTailnet", code: ExitFailed,
		},
		"Services": {reason: "Nor that services are.", deny: "TailscaleServices", args: []string{"-n", "shop"}, code: ExitFailed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.deny = tc.deny
			code, out, errs := w.run(append([]string{"status", "-o", "json"}, tc.args...)...)
			l := statusList{}
			if err := json.Unmarshal([]byte(out), &l); (err != nil) != (tc.code == ExitFailed) || code != tc.code {
				t.Fatalf("%s\nstatus: code %d, %v, %s", tc.reason, code, err, errs)
			}
			if diff := cmp.Diff(tc.want, l.NotRead); diff != "" {
				t.Errorf("%s\nstatus: not read: -want, +got:\n%s", tc.reason, diff)
			}
			if len(tc.want) == 0 {
				return
			}
			if _, out, _ := w.run(append([]string{"status"}, tc.args...)...); !strings.HasPrefix(out, "You may not list "+strings.Join(tc.want, ", ")+": ") {
				t.Errorf("%s\nstatus: %q", tc.reason, out)
			}
		})
	}
}

// TestStatusShape checks the fields of the output for scripts.
func TestStatusShape(t *testing.T) {
	out := &strings.Builder{}
	if err := encode(out, "yaml", statusOf(inventory{objects: parse(t, composites), notRead: []string{"Machine"}}, "kubectl")); err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	if err := yaml.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	causes, objects := got["causes"].([]any), got["objects"].([]any)
	wantCause := map[string]any{
		"type": "Advertised", "reason": "NoHealthyBackend", "message": "No backend answers",
		"object":   map[string]any{"kind": "TailscaleServices", "namespace": "shop", "name": "web"},
		"objects":  []any{map[string]any{"kind": "TailscaleServices", "namespace": "shop", "name": "web"}},
		"nextStep": "make the backend answer its probe: see the readiness of its pods and their NetworkPolicies",
	}
	if diff := cmp.Diff(wantCause, causes[1]); diff != "" {
		t.Errorf("causes[1]: -want, +got:\n%s", diff)
	}
	wantObject := map[string]any{"kind": "TailscaleTailnet", "name": "example", "ready": true, "details": "example.com tail1.ts.net"}
	if diff := cmp.Diff(wantObject, objects[0]); diff != "" {
		t.Errorf("objects[0]: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]any{"Machine"}, got["notRead"]); diff != "" {
		t.Errorf("notRead: -want, +got:\n%s", diff)
	}
}

// TestVersionProxies checks that images of proxies, which tenants choose, do nothing to a terminal.
func TestVersionProxies(t *testing.T) {
	set := func(name, image string) *appsv1.StatefulSet {
		return &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{meta.LabelEndpoints: name}},
			Spec:       appsv1.StatefulSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: image}}}}},
		}
	}
	w := newWorld(t, set("a", "ghcr.io/tailscale-gateway/agent:v0.1.0"), set("b", "ghcr.io/tailscale-gateway/agent:v0.1.0"), set("c", "example.com/"+hostile+":v1"), set("d", strings.Repeat("x", 1<<16)))
	code, out, errs := w.run("version")
	if code != ExitNone || errs != "" || strings.ContainsAny(out, "\x1b\u202e") {
		t.Errorf("version: code %d, %s, %q", code, errs, out)
	}
	if strings.Count(out, "proxies: agent ") != 1 || len(out) > 1<<12 {
		t.Errorf("version: %d bytes:\n%.2000s", len(out), out)
	}
	w.deny = "StatefulSet"
	code, out, _ = w.run("version", "-o", "json")
	l := versionList{}
	if err := json.Unmarshal([]byte(out), &l); err != nil || code != ExitNone {
		t.Fatalf("version: code %d, %v", code, err)
	}
	last := l.Versions[len(l.Versions)-1]
	if last.Component != "proxies" || last.Version != "" || !strings.Contains(last.Unknown, "forbidden") {
		t.Errorf("version without the right to list: %+v", last)
	}
}

func TestVersion(t *testing.T) {
	w := newWorld(t)
	code, out, errs := w.run("version", "-o", "json")
	l := versionList{}
	if err := json.Unmarshal([]byte(out), &l); err != nil || code != ExitNone {
		t.Fatalf("version: code %d, %v, %s:\n%s", code, err, errs, out)
	}
	want := []componentVersion{{Component: "plugin", Version: "v0.1.0-dev"}, {Component: "kubernetes", Version: "v1.35.4"}}
	if diff := cmp.Diff(want, l.Versions); diff != "" {
		t.Errorf("version: -want, +got:\n%s", diff)
	}
	if code, out, _ := w.run("version", "--client"); code != ExitNone || strings.Count(out, "\n") != 1 {
		t.Errorf("version --client: code %d:\n%s", code, out)
	}
}

func TestTag(t *testing.T) {
	cases := map[string]struct{ reason, image, want string }{
		"Tag":    {reason: "A tag is the version.", image: "ghcr.io/tailscale-gateway/agent:v0.1.0", want: "v0.1.0"},
		"Both":   {reason: "A tag says more than a digest.", image: "docker.io/tailscale/tailscale:v1.102.5@sha256:ab", want: "v1.102.5"},
		"Digest": {reason: "A digest is better than nothing.", image: "localhost:5000/agent@sha256:ab", want: "sha256:ab"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tagOf(tc.image); got != tc.want {
				t.Errorf("%s\ntagOf(...): got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
