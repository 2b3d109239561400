//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/charts"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/manifests"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

const (
	// tenant is the namespace of a tenant, and other that of another.
	tenant = "tenant"
	other  = "other"

	// extensionNamespace is where the installed extension runs.
	extensionNamespace = "envoy-gateway-system"

	// patience is how long roles and policies may take to count.
	patience = time.Minute
)

// Who asks.
const (
	// hostile has Crossplane's crossplane-edit in the tenant's namespace.
	hostile = "hostile"
	// editor has our role for tenants there, builtin Kubernetes' edit.
	editor  = "editor"
	builtin = "builtin"

	crossplane    = "system:serviceaccount:" + apiserver.CrossplaneNamespace + ":" + apiserver.AccountCrossplane
	provider      = "system:serviceaccount:" + apiserver.CrossplaneNamespace + ":" + apiserver.AccountProvider
	extension     = "system:serviceaccount:" + extensionNamespace + ":" + charts.Name
	ownExtension  = "system:serviceaccount:" + tenant + ":front"
	agent         = "system:serviceaccount:" + tenant + ":web-ingress"
	otherAgent    = "system:serviceaccount:" + tenant + ":api-ingress"
	collector     = "system:serviceaccount:kube-system:generic-garbage-collector"
	namespaceCtrl = "system:serviceaccount:kube-system:namespace-controller"
)

// internal are the kinds that our parts alone write.
const internal = `
apiVersion: tailnet.gateway.tailscale.com/v1alpha1
kind: MachineSet
metadata: {name: web-ingress}
spec: {providerConfigRef: {kind: ClusterProviderConfig, name: example}}
---
apiVersion: tailnet.gateway.tailscale.com/v1alpha1
kind: Machine
metadata: {name: web-ingress-0, labels: {gateway.tailscale.com/machine-set: web-ingress}}
spec: {providerConfigRef: {kind: ClusterProviderConfig, name: example}, forProvider: {hostname: web}}
---
apiVersion: tailnet.gateway.tailscale.com/v1alpha1
kind: ProxySet
metadata: {name: web}
spec: {endpoints: web, tailnet: example}
---
apiVersion: tailnet.gateway.tailscale.com/v1alpha1
kind: ServiceAttachment
metadata: {name: web}
spec:
  endpoints: web
  services: web
  direction: Ingress
  serviceName: svc:web
  ports: [{port: 80, protocol: TCP}]
  healthCheck: {interval: 5s, timeout: 1s, healthyThreshold: 1, unhealthyThreshold: 1}
---
apiVersion: tailnet.gateway.tailscale.com/v1alpha1
kind: GatewayReport
metadata: {name: front}
spec: {gateway: front, extension: {version: v0}}
---
apiVersion: tailnet.gateway.tailscale.com/v1alpha1
kind: HealthReport
metadata: {name: web}
spec: {for: {kind: TailscaleServices, name: web}}
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleRevision
metadata: {name: front}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: front}], revision: 0123456789abcdef}
`

// users are the kinds that tenants write.
const users = `
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: web}
spec:
  selector: {matchLabels: {tier: edge}}
  vipService: {ports: ["tcp:80"], tags: ["tag:web"]}
  backends: [{name: web, port: 80}]
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleEndpoints
metadata: {name: web}
spec: {tailnet: example}
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleProxyGroup
metadata: {name: web}
spec: {type: ingress, tailnets: [{name: example}]}
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleGateway
metadata: {name: front}
spec: {gatewayRef: {name: front}, tailnets: [{name: example}]}
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleRoutePolicy
metadata: {name: front}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: front}], rules: [{name: closed, actions: [{type: Deny}]}]}
`

// A realm is a cluster with all that we install, and a tenant in it.
type realm struct {
	*testing.T

	config     *rest.Config
	kubeconfig string
	admin      client.Client
	root       string
}

func newRealm(t *testing.T) *realm {
	t.Helper()
	root, err := apiserver.Root()
	if err != nil {
		t.Fatal(err)
	}
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		t.Fatal(err)
	}
	crds := filepath.Join(strings.TrimSpace(string(module)), "config", "crd", "standard")
	s, err := apiserver.Start(t.Context(), apiserver.Options{
		Composites:  true,
		Controllers: []string{apiserver.ClusterRoleAggregation},
		CRDs: []string{
			filepath.Join(root, "cluster", "charts", charts.Name, "crds"),
			filepath.Join(crds, "gateway.networking.k8s.io_httproutes.yaml"),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	kubeconfig, err := s.WriteKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	r := &realm{T: t, config: s.Config, kubeconfig: kubeconfig, root: root}
	r.admin = r.as("")
	for _, n := range []string{tenant, other, apiserver.CrossplaneNamespace, extensionNamespace} {
		r.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n}})
	}
	roles, err := apiserver.CrossplaneRoles(root)
	if err != nil {
		t.Fatal(err)
	}
	r.create(roles...)
	for _, m := range [][]byte{manifests.RBAC, manifests.Tenants, manifests.Admission, manifests.AdmissionExtension} {
		r.create(r.objects(m)...)
	}
	r.install()
	for _, n := range []string{tenant, other} {
		r.create(r.in(n, internal)...)
	}
	// Each role that aggregates has what the last of ours gives.
	for _, a := range []struct{ user, resource, verb string }{{hostile, "machinesets", "create"}, {crossplane, "machinesets/write", "create"}, {builtin, "tailscaleservices", "create"}} {
		r.eventually(a.user+" has its role", func() error {
			group := v1alpha1.Group
			if a.resource == "tailscaleservices" {
				group = "gateway.tailscale.com"
			}
			if !r.may(a.user, tenant, group, a.resource, a.verb) {
				return errors.New("it has not")
			}
			return nil
		})
	}
	// A policy counts a moment after it was made.
	r.eventually("policies count", func() error {
		set := r.in(tenant, internal)[0]
		set.SetName("probe")
		if err := r.as(hostile).Create(r.Context(), set, client.DryRunAll); !kerrors.IsForbidden(err) {
			return errors.Errorf("a tenant may make a MachineSet: %v", err)
		}
		if err := r.as(extension).Create(r.Context(), r.route("probe", nil), client.DryRunAll); !kerrors.IsForbidden(err) {
			return errors.Errorf("the extension may make any route: %v", err)
		}
		return nil
	})
	return r
}

// install the extension's roles, those of proxies, and what binds tenants.
func (r *realm) install() {
	r.Helper()
	var rules []rbacv1.PolicyRule
	for _, file := range [][]byte{charts.Extension, charts.Anchors, charts.Gateways, charts.Discoveries} {
		var more []rbacv1.PolicyRule
		if err := yaml.UnmarshalStrict(file, &more); err != nil {
			r.Fatal(err)
		}
		rules = append(rules, more...)
	}
	subject := func(user string) rbacv1.Subject {
		if name, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
			namespace, name, _ := strings.Cut(name, ":")
			return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
		}
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}
	}
	r.create(
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: charts.Name}, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: charts.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: charts.Name},
			Subjects:   []rbacv1.Subject{subject(extension)},
		})
	for user, role := range map[string]string{hostile: "crossplane-edit", editor: "tailscale-gateway:edit", builtin: "edit", ownExtension: "tailscale-gateway:gateway-extension"} {
		r.create(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: strings.ReplaceAll(user, ":", "-")},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{subject(user)},
		})
	}
	// Another set's agent may write the same Machine, as far as roles are asked.
	for _, name := range []string{"web-ingress", "api-ingress"} {
		o := proxy.Options{
			Name: name, Namespace: tenant, Machines: []string{"web-ingress-0"},
			Pods: v1alpha1.MachineSetPods{Direction: v1alpha1.DirectionIngress, Endpoints: "web"},
		}
		r.create(proxy.Role(o), proxy.RoleBinding(o))
	}
}

// as is a client of somebody; of an administrator by default.
func (r *realm) as(user string) client.Client {
	r.Helper()
	cfg := rest.CopyConfig(r.config)
	cfg.Impersonate.UserName = user
	c, err := client.New(cfg, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		r.Fatal(err)
	}
	return c
}

func (r *realm) create(objects ...client.Object) {
	r.Helper()
	for _, o := range objects {
		if err := r.admin.Create(r.Context(), o); err != nil {
			r.Fatalf("cannot create %T %s: %v", o, o.GetName(), err)
		}
	}
}

func (r *realm) objects(manifest []byte) []client.Object {
	r.Helper()
	out, err := apiserver.Objects(manifest)
	if err != nil {
		r.Fatal(err)
	}
	return out
}

// in a namespace.
func (r *realm) in(namespace, manifest string) []client.Object {
	r.Helper()
	out := r.objects([]byte(manifest))
	for _, o := range out {
		o.SetNamespace(namespace)
	}
	return out
}

// route with labels, in the tenant's namespace.
func (r *realm) route(name string, labels map[string]string) client.Object {
	r.Helper()
	o := r.in(tenant, "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: "+name+"}, spec: {}}")[0]
	o.SetLabels(labels)
	return o
}

func (r *realm) may(user, namespace, group, resource, verb string) bool {
	r.Helper()
	resource, sub, _ := strings.Cut(resource, "/")
	review := &authv1.SubjectAccessReview{Spec: authv1.SubjectAccessReviewSpec{
		User:               user,
		ResourceAttributes: &authv1.ResourceAttributes{Namespace: namespace, Group: group, Resource: resource, Subresource: sub, Verb: verb},
	}}
	if err := r.admin.Create(r.Context(), review); err != nil {
		r.Fatal(err)
	}
	return review.Status.Allowed
}

func (r *realm) eventually(what string, ok func() error) {
	r.Helper()
	var last error
	err := wait.PollUntilContextTimeout(r.Context(), 100*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		last = ok()
		return last == nil, nil
	})
	if err != nil {
		r.Fatalf("timed out waiting: %s: %v", what, last)
	}
}

// A deed is a write that somebody tries. It is never stored.
type deed func(ctx context.Context, c client.Client, o client.Object) error

func create(ctx context.Context, c client.Client, o client.Object) error {
	o = o.DeepCopyObject().(client.Object)
	o.SetName(o.GetName() + "-more")
	return c.Create(ctx, o, client.DryRunAll)
}

func remove(ctx context.Context, c client.Client, o client.Object) error {
	return c.Delete(ctx, o.DeepCopyObject().(client.Object), client.DryRunAll)
}

// patch by a merge.
func patch(merge string) deed {
	return func(ctx context.Context, c client.Client, o client.Object) error {
		return c.Patch(ctx, o.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(merge)), client.DryRunAll)
	}
}

func patchStatus(merge string) deed {
	return func(ctx context.Context, c client.Client, o client.Object) error {
		return c.Status().Patch(ctx, o.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(merge)), client.DryRunAll)
	}
}

// deeds of who wants to write an object.
func deeds() map[string]deed {
	return map[string]deed{
		"create":       create,
		"change":       patch(`{"spec":{"tailnet":"other"}}`),
		"annotate":     patch(`{"metadata":{"annotations":{"gateway.tailscale.com/node-id":"nVictim"}}}`),
		"label":        patch(`{"metadata":{"labels":{"gateway.tailscale.com/machine-set":"other"}}}`),
		"keep":         patch(`{"metadata":{"finalizers":["example.org/kept"]}}`),
		"delete":       remove,
		"write status": patchStatus(`{"status":{"atProvider":{"nodeID":"nVictim"}}}`),
	}
}

// hasStatus are the internal kinds whose status is a resource that the policy guards.
func hasStatus(o client.Object) bool {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	return kind == v1alpha1.MachineSetKind || kind == v1alpha1.MachineKind
}

// TestHostileTenant has a tenant who was given crossplane-edit try what it should not do.
func TestHostileTenant(t *testing.T) {
	r := newRealm(t)
	c := r.as(hostile)
	for _, o := range r.in(tenant, internal) {
		kind := o.GetObjectKind().GroupVersionKind().Kind
		for what, do := range deeds() {
			// A merge patch of a status that is none's own is one of the object.
			if what == "write status" && !hasStatus(o) {
				continue
			}
			err := do(t.Context(), c, o)
			// crossplane-edit leaves out what comes with the extension's chart.
			told := kind == "TailscaleRevision" || err != nil && strings.Contains(err.Error(), "are written by Tailscale Gateway itself; write a Tailscale")
			if !kerrors.IsForbidden(err) || !told {
				t.Errorf("%s a %s: want it refused with what to write instead, got %v", what, kind, err)
			}
		}
	}
	for what, o := range map[string]string{
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
			t.Errorf("%s: want it refused, got %v", what, err)
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

// TestWriters has those write the internal kinds who must.
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
			reason: "It composes them",
			user:   crossplane, kinds: []string{"MachineSet", "ProxySet", "ServiceAttachment"}, deeds: []deed{create, annotate, remove},
		},
		"CrossplaneMachine": {
			reason: "Machines are the provider's",
			user:   crossplane, kinds: []string{"Machine", "GatewayReport", "HealthReport"}, deeds: []deed{create, annotate, remove}, refuse: "are written by Tailscale Gateway itself",
		},
		"Provider": {
			reason: "It makes Machines",
			user:   provider, kinds: []string{"Machine"}, deeds: []deed{create, annotate, keep, remove, patchStatus(`{"status":{"atProvider":{"nodeID":"n"}}}`)},
		},
		"ProviderStatus": {
			reason: "It tells what became of a set",
			user:   provider, kinds: []string{"MachineSet"}, deeds: []deed{status},
		},
		"ProviderSets": {
			reason: "It makes none",
			user:   provider, kinds: []string{"MachineSet", "ProxySet", "ServiceAttachment"}, deeds: []deed{create}, refuse: "are written by Tailscale Gateway itself",
		},
		"Extension": {
			reason: "It reports, and has Envoy Gateway translate again",
			user:   extension, kinds: []string{"GatewayReport", "HealthReport", "TailscaleRevision"}, deeds: []deed{create, annotate, remove},
		},
		"OwnExtension": {
			reason: "So does one of a TailscaleGateway's own, but for health",
			user:   ownExtension, kinds: []string{"GatewayReport", "TailscaleRevision"}, deeds: []deed{create, annotate, remove},
		},
		"Agent": {
			reason: "It reports of its own Machine",
			user:   agent, kinds: []string{"Machine"}, deeds: []deed{report},
		},
		"AgentDevice": {
			reason: "Which device it is, the provider finds out",
			user:   agent, kinds: []string{"Machine"},
			deeds: []deed{
				patchStatus(`{"status":{"atProvider":{"nodeID":"nVictim"}}}`),
				patchStatus(`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Fine","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`),
			},
			refuse: "a proxy pod writes status.agent of its own Machine",
		},
		"OtherAgent": {
			reason: "Whatever its role says, a Machine is another's",
			user:   otherAgent, kinds: []string{"Machine"}, deeds: []deed{report}, refuse: "are written by Tailscale Gateway itself",
		},
		"GarbageCollector": {
			reason: "What belongs to an owner goes with it",
			user:   collector, kinds: []string{"MachineSet", "Machine", "ProxySet", "ServiceAttachment", "GatewayReport", "HealthReport", "TailscaleRevision"}, deeds: []deed{keep, remove},
		},
		"NamespaceController": {
			reason: "And all goes with its namespace",
			user:   namespaceCtrl, kinds: []string{"MachineSet", "Machine", "ProxySet", "ServiceAttachment", "GatewayReport", "HealthReport", "TailscaleRevision"}, deeds: []deed{remove},
		},
		"Administrator": {
			reason: "Who may do everything may do this",
			kinds:  []string{"MachineSet", "Machine", "ProxySet", "ServiceAttachment", "GatewayReport", "HealthReport", "TailscaleRevision"}, deeds: []deed{create, annotate, remove},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := r.as(tc.user)
			for _, kind := range tc.kinds {
				for i, do := range tc.deeds {
					err := do(t.Context(), c, byKind[kind])
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

// TestExtensionRoutes confines the extension to what carries its label.
func TestExtensionRoutes(t *testing.T) {
	r := newRealm(t)
	ours := map[string]string{"app.kubernetes.io/managed-by": "tailscale-gateway-extension"}
	mine, theirs := r.route("mine", ours), r.route("theirs", nil)
	r.create(mine.DeepCopyObject().(client.Object), theirs.DeepCopyObject().(client.Object))
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
		"Create":       {reason: "It makes its own", route: mine, deed: create},
		"Change":       {reason: "It changes its own", route: mine, deed: change},
		"Delete":       {reason: "It deletes its own", route: mine, deed: remove},
		"CreateBare":   {reason: "It makes no other", route: theirs, deed: create, refuse: true},
		"ChangeTheirs": {reason: "It changes nobody's", route: theirs, deed: change, refuse: true},
		"Take":         {reason: "Nor makes others' its own", route: theirs, deed: take, refuse: true},
		"Drop":         {reason: "Nor leaves its own to others", route: mine, deed: drop, refuse: true},
		"DeleteTheirs": {reason: "It deletes nobody's", route: theirs, deed: remove, refuse: true},
		"Others":       {reason: "The policy is about nobody else", users: []string{"", collector}, route: theirs, deed: change},
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

// TestTenantRoles has tenants with our roles write each user kind, and nothing that these
// become.
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
				for _, who := range []string{editor, builtin} {
					want := user && !strings.Contains(resource, "/")
					if got := r.may(who, tenant, crd.Spec.Group, resource, verb); got != want {
						t.Errorf("%s may %s %s.%s: want %t, got %t", who, verb, resource, crd.Spec.Group, want, got)
					}
				}
			}
		}
	}
}

// TestInstallcheck has a cluster with all that we install pass the check.
func TestInstallcheck(t *testing.T) {
	r := newRealm(t)
	r.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: apiserver.CrossplaneNamespace, Name: apiserver.AccountCrossplane}})
	check := func() string {
		cmd := exec.CommandContext(t.Context(), "go", "run", "./cluster/installcheck", "--kubeconfig="+r.kubeconfig)
		cmd.Dir = r.root
		out, err := cmd.CombinedOutput()
		if (err != nil) != strings.Contains(string(out), "missing  ") {
			t.Fatalf("installcheck: %v\n%s", err, out)
		}
		return string(out)
	}
	if out := check(); strings.Contains(out, "missing  ") || !strings.Contains(out, "ok       ValidatingAdmissionPolicy tailscale-gateway-internal-kinds") {
		t.Errorf("something is missing:\n%s", out)
	}
	if err := r.admin.Delete(t.Context(), r.objects(manifests.Admission)[1]); err != nil {
		t.Fatal(err)
	}
	if out := check(); !strings.Contains(out, "missing  ValidatingAdmissionPolicyBinding tailscale-gateway-internal-kinds") || !strings.Contains(out, "kubectl apply -f cluster/manifests/admission.yaml") {
		t.Errorf("want the binding to be missing:\n%s", out)
	}
}
