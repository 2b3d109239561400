//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// TestHostileTenant checks that a tenant with crossplane-edit cannot exceed the tenant's rights.
func TestHostileTenant(t *testing.T) {
	r := newRealm(t)
	c := r.as(hostile)
	for _, o := range r.in(tenant, internal) {
		kind := o.GetObjectKind().GroupVersionKind().Kind
		for action, attempt := range deeds() {
			// A merge patch of a status without a subresource is a patch of the object.
			if action == "write status" && !hasStatus(o) {
				continue
			}
			err := attempt(t.Context(), c, o)
			// crossplane-edit lacks the kinds of the extension's chart.
			named := kind == "TailscaleRevision" || err != nil && strings.Contains(err.Error(), "are written by Tailscale Gateway itself; write a Tailscale")
			if !kerrors.IsForbidden(err) || !named {
				t.Errorf("%s a %s: want it refused with the kind to write instead, got %v", action, kind, err)
			}
		}
	}
	for action, o := range map[string]string{
		"run pods":               "{apiVersion: v1, kind: Pod, metadata: {name: evil}, spec: {containers: [{name: evil, image: evil}]}}",
		"run StatefulSets":       "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web-ingress}}",
		"make service accounts":  "{apiVersion: v1, kind: ServiceAccount, metadata: {name: web-ingress}}",
		"grant rights":           "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: evil}}",
		"bind the provider's":    "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: evil}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: 'tailscale-gateway:provider'}}",
		"open network policies":  "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: evil}}",
		"make Services":          "{apiVersion: v1, kind: Service, metadata: {name: evil}}",
		"make config maps":       "{apiVersion: v1, kind: ConfigMap, metadata: {name: web-egress}}",
		"change policies":        "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: evil}}",
		"add a provider config":  "{apiVersion: tailnet.gateway.tailscale.com/v1alpha1, kind: ClusterProviderConfig, metadata: {name: evil}}",
		"add a tailnet":          "{apiVersion: gateway.tailscale.com/v1alpha1, kind: TailscaleTailnet, metadata: {name: evil}}",
		"write routes of others": "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: evil}}",
	} {
		if err := c.Create(t.Context(), r.in(tenant, o)[0], client.DryRunAll); !kerrors.IsForbidden(err) {
			t.Errorf("%s: want it refused, got %v", action, err)
		}
	}
	elsewhere := append(r.in(other, internal), r.in(other, users)...)
	elsewhere = append(elsewhere, r.in(apiserver.CrossplaneNamespace, "{apiVersion: v1, kind: Secret, metadata: {name: permits}}")...)
	for _, o := range elsewhere {
		if err := create(t.Context(), c, o); !kerrors.IsForbidden(err) {
			t.Errorf("%s in namespace %s: want it refused, got %v", o.GetObjectKind().GroupVersionKind().Kind, o.GetNamespace(), err)
		}
	}
}

// TestWriters checks that each internal kind's writers may write it.
func TestWriters(t *testing.T) {
	r := newRealm(t)
	byKind := map[string]client.Object{}
	for _, o := range r.in(tenant, internal) {
		byKind[o.GetObjectKind().GroupVersionKind().Kind] = o
	}
	annotate, keep, status := patch(`{"metadata":{"annotations":{"a":"b"}}}`), patch(`{"metadata":{"finalizers":null}}`), patchStatus(`{"status":{"readyMachines":1}}`)
	report := patchStatus(`{"status":{"agent":{"podIP":"10.0.0.1"}}}`)
	cases := map[string]struct {
		reason string
		user   string
		kinds  []string
		deeds  []deed
		refuse string
	}{
		"Crossplane": {
			reason: "Crossplane composes these kinds",
			user:   crossplane, kinds: []string{"MachineSet", "ProxySet", "ServiceAttachment"}, deeds: []deed{create, annotate, remove},
		},
		"CrossplaneMachine": {
			reason: "Only the provider writes Machines",
			user:   crossplane, kinds: []string{"Machine", "GatewayReport", "HealthReport"}, deeds: []deed{create, annotate, remove}, refuse: "are written by Tailscale Gateway itself",
		},
		"Provider": {
			reason: "The provider creates Machines",
			user:   provider, kinds: []string{"Machine"}, deeds: []deed{create, annotate, keep, remove, patchStatus(`{"status":{"atProvider":{"nodeID":"n"}}}`)},
		},
		"ProviderStatus": {
			reason: "The provider writes the status of a set",
			user:   provider, kinds: []string{"MachineSet"}, deeds: []deed{status},
		},
		"ProviderSets": {
			reason: "The provider creates no such objects",
			user:   provider, kinds: []string{"MachineSet", "ProxySet", "ServiceAttachment"}, deeds: []deed{create}, refuse: "are written by Tailscale Gateway itself",
		},
		"Extension": {
			reason: "The extension reports, and triggers translations of Envoy Gateway",
			user:   extension, kinds: []string{"GatewayReport", "HealthReport", "TailscaleRevision"}, deeds: []deed{create, annotate, remove},
		},
		"OwnExtension": {
			reason: "A dedicated extension does the same, except for health",
			user:   ownExtension, kinds: []string{"GatewayReport", "TailscaleRevision"}, deeds: []deed{create, annotate, remove},
		},
		"Agent": {
			reason: "An agent writes the status of its Machine",
			user:   agent, kinds: []string{"Machine"}, deeds: []deed{report},
		},
		"AgentDevice": {
			reason: "Only the provider writes the device's ID",
			user:   agent, kinds: []string{"Machine"},
			deeds: []deed{
				patchStatus(`{"status":{"atProvider":{"nodeID":"nVictim"}}}`),
				patchStatus(`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Fine","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`),
			},
			refuse: "a proxy pod may write only status.agent of its Machine",
		},
		"OtherAgent": {
			reason: "The policy protects the Machine of another agent, with any role",
			user:   otherAgent, kinds: []string{"Machine"}, deeds: []deed{report}, refuse: "are written by Tailscale Gateway itself",
		},
		"GarbageCollector": {
			reason: "Dependents are deleted with their owner",
			user:   collector, kinds: []string{"MachineSet", "Machine", "ProxySet", "ServiceAttachment", "GatewayReport", "HealthReport", "TailscaleRevision"}, deeds: []deed{keep, remove},
		},
		"NamespaceController": {
			reason: "All objects are deleted with their namespace",
			user:   namespaceCtrl, kinds: []string{"MachineSet", "Machine", "ProxySet", "ServiceAttachment", "GatewayReport", "HealthReport", "TailscaleRevision"}, deeds: []deed{remove},
		},
		"Administrator": {
			reason: "Administrators may write all kinds",
			kinds:  []string{"MachineSet", "Machine", "ProxySet", "ServiceAttachment", "GatewayReport", "HealthReport", "TailscaleRevision"}, deeds: []deed{create, annotate, remove},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := r.as(tc.user)
			for _, kind := range tc.kinds {
				for i, attempt := range tc.deeds {
					err := attempt(t.Context(), c, byKind[kind])
					if tc.refuse == "" && err != nil {
						t.Errorf("%s: deed %d on a %s: %v", tc.reason, i, kind, err)
					}
					if tc.refuse != "" && !kerrors.IsForbidden(err) {
						t.Errorf("%s: deed %d on a %s: want it refused, got %v", tc.reason, i, kind, err)
					}
				}
			}
		})
	}
}

// TestExtensionRoutes checks that the extension writes only objects with its label.
func TestExtensionRoutes(t *testing.T) {
	r := newRealm(t)
	ours := map[string]string{"app.kubernetes.io/managed-by": "tailscale-gateway-extension"}
	mine, theirs := r.route("HTTPRoute", "mine", ours), r.route("HTTPRoute", "theirs", nil)
	mineGRPC, theirsGRPC := r.route("GRPCRoute", "mine", ours), r.route("GRPCRoute", "theirs", nil)
	for _, o := range []client.Object{mine, theirs, mineGRPC, theirsGRPC} {
		r.create(o.DeepCopyObject().(client.Object))
	}
	take := patch(`{"metadata":{"labels":{"app.kubernetes.io/managed-by":"tailscale-gateway-extension"}}}`)
	drop := patch(`{"metadata":{"labels":null}}`)
	change := patch(`{"spec":{"hostnames":["a.example"]}}`)
	cases := map[string]struct {
		reason string
		users  []string
		route  client.Object
		deed   deed
		refuse bool
	}{
		"Create":       {reason: "The extension creates routes with the label", route: mine, deed: create},
		"Change":       {reason: "The extension changes routes with the label", route: mine, deed: change},
		"Delete":       {reason: "The extension deletes routes with the label", route: mine, deed: remove},
		"CreateBare":   {reason: "The extension creates no other route", route: theirs, deed: create, refuse: true},
		"ChangeTheirs": {reason: "The extension changes no other route", route: theirs, deed: change, refuse: true},
		"Take":         {reason: "The extension adds its label to no other route", route: theirs, deed: take, refuse: true},
		"Drop":         {reason: "The extension does not remove its label", route: mine, deed: drop, refuse: true},
		"DeleteTheirs": {reason: "The extension deletes no other route", route: theirs, deed: remove, refuse: true},
		"CreateGRPC":   {reason: "The extension creates GRPCRoutes with the label", route: mineGRPC, deed: create},
		"DeleteGRPC":   {reason: "The extension deletes GRPCRoutes with the label", route: mineGRPC, deed: remove},
		"BareGRPC":     {reason: "The extension creates no other GRPCRoute", route: theirsGRPC, deed: create, refuse: true},
		"TheirsGRPC":   {reason: "Nor delete", route: theirsGRPC, deed: remove, refuse: true},
		"Others":       {reason: "The policy applies only to the extension", users: []string{"", collector}, route: theirs, deed: change},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.users == nil {
				tc.users = []string{extension, ownExtension}
			}
			for _, u := range tc.users {
				err := tc.deed(t.Context(), r.as(u), tc.route)
				if tc.refuse && (!kerrors.IsForbidden(err) || !strings.Contains(err.Error(), "writes only what has the label")) || !tc.refuse && err != nil {
					t.Errorf("%s: %s: got %v", tc.reason, u, err)
				}
			}
		})
	}
}

// TestExtensionEndpoints checks that the extension writes only EndpointSlices with its label, whose endpoints
// receive no traffic.
func TestExtensionEndpoints(t *testing.T) {
	r := newRealm(t)
	slice := func(name, labels, conditions string) client.Object {
		return r.in(tenant, `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: `+name+`, labels: {kubernetes.io/service-name: web`+labels+`}}
addressType: IPv4
ports: [{name: http, port: 80, protocol: TCP}]
endpoints: [{addresses: [192.0.2.1]`+conditions+`}]
`)[0]
	}
	const label, unready = ", app.kubernetes.io/managed-by: tailscale-gateway-extension", ", conditions: {ready: false, serving: false}"
	mine, theirs := slice("mine", label, unready), slice("theirs", "", ", conditions: {ready: true}")
	for _, o := range []client.Object{mine, theirs} {
		r.create(o.DeepCopyObject().(client.Object))
	}
	const unlabelled, ready = "writes only what has the label", "writes only endpoints that are neither ready nor serving"
	cases := map[string]struct {
		reason string
		users  []string
		object client.Object
		deed   deed
		refuse string
	}{
		"Create":        {reason: "The extension creates endpoints that are not ready", object: mine, deed: create},
		"Delete":        {reason: "It deletes its own", object: mine, deed: remove},
		"CreateReady":   {reason: "It creates none that are ready", object: slice("new", label, ", conditions: {ready: true, serving: false}"), deed: create, refuse: ready},
		"CreateServing": {reason: "Nor any that serve, which get traffic while no other is ready", object: slice("new", label, ", conditions: {ready: false, serving: true, terminating: true}"), deed: create, refuse: ready},
		"CreateUnknown": {reason: "An unknown condition counts as ready", object: slice("new", label, ""), deed: create, refuse: ready},
		"Change":        {reason: "It makes none ready", object: mine, deed: patch(`{"endpoints":[{"addresses":["192.0.2.1"],"conditions":{"ready":true}}]}`), refuse: ready},
		"CreateBare":    {reason: "It creates none without its label", object: slice("new", "", unready), deed: create, refuse: unlabelled},
		"DeleteTheirs":  {reason: "It deletes none of others", object: theirs, deed: remove, refuse: unlabelled},
		"Others":        {reason: "The policy applies only to the extension", users: []string{"", collector}, object: theirs, deed: remove},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.users == nil {
				tc.users = []string{extension, ownExtension}
			}
			for _, u := range tc.users {
				err := tc.deed(t.Context(), r.as(u), tc.object)
				if tc.refuse != "" && (!kerrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.refuse)) || tc.refuse == "" && err != nil {
					t.Errorf("%s: %s: got %v", tc.reason, u, err)
				}
			}
		})
	}
}

// TestExtensionTLSStatus checks that the extension writes its own ancestors into the status of a tenant's
// BackendTLSPolicy, and nothing else of the policy.
func TestExtensionTLSStatus(t *testing.T) {
	r := newRealm(t)
	p := r.in(tenant, `
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: theirs}
spec:
  targetRefs: [{group: gateway.tailscale.com, kind: TailscaleServices, name: web}]
  validation: {hostname: web.example.com, wellKnownCACertificates: System}
`)[0]
	r.create(p)
	ancestor := func(controller, reason string) string {
		return fmt.Sprintf(`{"ancestorRef":{"name":"gw"},"controllerName":%q,"conditions":[{"type":"Accepted","status":"False","reason":%q,"message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`, controller, reason)
	}
	status := func(ancestors ...string) string {
		return `{"status":{"ancestors":[` + strings.Join(ancestors, ",") + `]}}`
	}
	const theirs, ours, dedicated = "gateway.envoyproxy.io/gatewayclass-controller", "gateway.tailscale.com/extension", "gateway.tailscale.com/extension-team"
	written := p.DeepCopyObject().(client.Object)
	if err := r.admin.Status().Patch(t.Context(), written, client.RawPatch(types.MergePatchType, []byte(status(ancestor(theirs, "A"), ancestor(ours, "A"))))); err != nil {
		t.Fatal(err)
	}
	both := []string{extension, ownExtension}
	cases := map[string]struct {
		reason string
		users  []string
		deed   deed
		refuse string
	}{
		"Add":     {reason: "An extension adds its own ancestors", users: both, deed: patchStatus(status(ancestor(theirs, "A"), ancestor(ours, "A"), ancestor(dedicated, "A")))},
		"Change":  {reason: "It changes them", users: both, deed: patchStatus(status(ancestor(theirs, "A"), ancestor(ours, "B")))},
		"Remove":  {reason: "It removes them", users: both, deed: patchStatus(status(ancestor(theirs, "A")))},
		"Drop":    {reason: "It removes none of others", users: both, deed: patchStatus(status(ancestor(ours, "A"))), refuse: "only ancestors with its own controllerName"},
		"Clear":   {reason: "Nor by removing all", users: both, deed: patchStatus(`{"status":{"ancestors":[]}}`), refuse: "only ancestors with its own controllerName"},
		"Forge":   {reason: "It changes none of others", users: both, deed: patchStatus(status(ancestor(theirs, "B"), ancestor(ours, "A"))), refuse: "only ancestors with its own controllerName"},
		"Invent":  {reason: "It adds none of others", users: both, deed: patchStatus(status(ancestor(theirs, "A"), ancestor(ours, "A"), ancestor("other.example.com/x", "A"))), refuse: "only ancestors with its own controllerName"},
		"Similar": {reason: "A controller with a similar name is another one", users: both, deed: patchStatus(status(ancestor(theirs, "A"), ancestor(ours+"s.example.com/x", "A"))), refuse: "only ancestors with its own controllerName"},
		"Spec":    {reason: "It does not change the policy", users: both, deed: patch(`{"spec":{"validation":{"hostname":"evil.example.com"}}}`), refuse: "writes only what has the label"},
		"Others":  {reason: "The policy applies only to extensions", users: []string{""}, deed: patchStatus(status(ancestor(theirs, "B")))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, u := range tc.users {
				err := tc.deed(t.Context(), r.as(u), p)
				if tc.refuse != "" && (!kerrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.refuse)) || tc.refuse == "" && err != nil {
					t.Errorf("%s: %s: got %v", tc.reason, u, err)
				}
			}
		})
	}
	// A write of the status changes nothing else.
	sly := p.DeepCopyObject().(client.Object)
	if err := r.as(extension).Status().Patch(t.Context(), sly, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}},"spec":{"validation":{"hostname":"evil.example.com"}}}`))); err != nil {
		t.Fatal(err)
	}
	if err := r.admin.Get(t.Context(), client.ObjectKeyFromObject(p), sly); err != nil {
		t.Fatal(err)
	}
	policy, ok := sly.(*unstructured.Unstructured)
	if !ok {
		t.Fatalf("want an Unstructured, got %T", sly)
	}
	if host, _, _ := unstructured.NestedString(policy.Object, "spec", "validation", "hostname"); host != "web.example.com" || len(sly.GetLabels()) > 0 {
		t.Errorf("a write of the status changed the policy: %v", policy.Object)
	}
}

// TestTenantRoles checks that tenants with the project's roles may write each user kind, and no
// object that is composed of these.
func TestTenantRoles(t *testing.T) {
	r := newRealm(t)
	for _, user := range []string{editor, builtin} {
		for _, o := range r.in(tenant, users) {
			if err := create(t.Context(), r.as(user), o); err != nil {
				t.Errorf("%s: create a %s: %v", user, o.GetObjectKind().GroupVersionKind().Kind, err)
			}
		}
	}
	crds := &apiextensionsv1.CustomResourceDefinitionList{}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	if err := r.admin.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	j, err := yaml.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(j, crds); err != nil {
		t.Fatal(err)
	}
	writable := map[string]bool{}
	for _, o := range r.in(tenant, users) {
		writable[o.GetObjectKind().GroupVersionKind().Kind] = true
	}
	for _, crd := range crds.Items {
		if !strings.HasSuffix(crd.Spec.Group, "gateway.tailscale.com") {
			continue
		}
		user := writable[crd.Spec.Names.Kind] && crd.Spec.Group == "gateway.tailscale.com"
		for _, resource := range []string{crd.Spec.Names.Plural, crd.Spec.Names.Plural + "/status", crd.Spec.Names.Plural + "/write"} {
			for _, verb := range []string{"create", "update", "patch", "delete"} {
				for _, subject := range []string{editor, builtin} {
					want := user && !strings.Contains(resource, "/")
					if got := r.may(subject, tenant, crd.Spec.Group, resource, verb); got != want {
						t.Errorf("%s may %s %s.%s: want %t, got %t", subject, verb, resource, crd.Spec.Group, want, got)
					}
				}
			}
		}
	}
}
