//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

const (
	// tenant is the namespace of a tenant, and other that of another.
	tenant = "tenant"
	other  = "other"

	// extensionNamespace is the namespace of the installed extension.
	extensionNamespace = "envoy-gateway-system"

	// patience is how long roles and policies may take to have an effect.
	patience = time.Minute
)

// Users of the cluster.
const (
	// hostile has Crossplane's crossplane-edit in the tenant's namespace.
	hostile = "hostile"
	// editor has the project's role for tenants there, builtin Kubernetes' edit.
	editor  = "editor"
	builtin = "builtin"

	crossplane    = "system:serviceaccount:" + apiserver.CrossplaneNamespace + ":" + apiserver.AccountCrossplane
	provider      = "system:serviceaccount:" + apiserver.CrossplaneNamespace + ":" + apiserver.AccountProvider
	extension     = "system:serviceaccount:" + extensionNamespace + ":" + charts.Extension
	ownExtension  = "system:serviceaccount:" + tenant + ":front"
	agent         = "system:serviceaccount:" + tenant + ":web-ingress"
	otherAgent    = "system:serviceaccount:" + tenant + ":api-ingress"
	collector     = "system:serviceaccount:kube-system:generic-garbage-collector"
	namespaceCtrl = "system:serviceaccount:kube-system:namespace-controller"
)

// internal are the kinds that only the project's components write.
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
spec: {targetRef: {kind: TailscaleServices, name: web}}
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

// A realm is a cluster with all components of the project, and a tenant in it.
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
	crds, err := apiserver.GatewayAPICRDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := apiserver.Start(t.Context(), apiserver.Options{
		Composites:  true,
		Controllers: []string{apiserver.ClusterRoleAggregation},
		CRDs: []string{
			filepath.Join(root, charts.ExtensionCRDs),
			filepath.Join(crds, "gateway.networking.k8s.io_httproutes.yaml"),
			filepath.Join(crds, "gateway.networking.k8s.io_grpcroutes.yaml"),
			filepath.Join(crds, "gateway.networking.k8s.io_backendtlspolicies.yaml"),
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
	installed, err := apiserver.Installed()
	if err != nil {
		t.Fatal(err)
	}
	r.create(installed...)
	r.install()
	for _, n := range []string{tenant, other} {
		r.create(r.in(n, internal)...)
	}
	// Each aggregated role has the rules of the last role of the project.
	for _, a := range []struct{ user, resource, verb string }{{hostile, "machinesets", "create"}, {crossplane, "machinesets/write", "create"}, {builtin, "tailscaleservices", "create"}} {
		r.eventually(a.user+" has the role", func() error {
			group := v1alpha1.Group
			if a.resource == "tailscaleservices" {
				group = "gateway.tailscale.com"
			}
			if !r.may(a.user, tenant, group, a.resource, a.verb) {
				return errors.New("the role is incomplete")
			}
			return nil
		})
	}
	// A policy has an effect a moment after its creation.
	r.eventually("policies count", func() error {
		set := r.in(tenant, internal)[0]
		set.SetName("probe")
		if err := r.as(hostile).Create(r.Context(), set, client.DryRunAll); !kerrors.IsForbidden(err) {
			return errors.Errorf("a tenant may create a MachineSet: %v", err)
		}
		if err := r.as(extension).Create(r.Context(), r.route("HTTPRoute", "probe", nil), client.DryRunAll); !kerrors.IsForbidden(err) {
			return errors.Errorf("the extension may create any route: %v", err)
		}
		return nil
	})
	return r
}

// install creates the extension's roles, those of proxies, and the bindings of tenants.
func (r *realm) install() {
	r.Helper()
	var rules []rbacv1.PolicyRule
	for _, file := range [][]byte{charts.ExtensionRules, charts.Placeholders, charts.Failover, charts.Gateways, charts.Discoveries, charts.Bootstrap} {
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
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: charts.Extension}, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: charts.Extension},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: charts.Extension},
			Subjects:   []rbacv1.Subject{subject(extension)},
		})
	for user, role := range map[string]string{hostile: "crossplane-edit", editor: "tailscale-gateway:edit", builtin: "edit", ownExtension: "tailscale-gateway:gateway-extension"} {
		r.create(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: strings.ReplaceAll(user, ":", "-")},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{subject(user)},
		})
	}
	// The role of another set's agent permits writes of the same Machine.
	for _, name := range []string{"web-ingress", "api-ingress"} {
		o := proxy.Options{
			Name: name, Namespace: tenant, Machines: []string{"web-ingress-0"},
			Pods: v1alpha1.MachineSetPods{Direction: v1alpha1.DirectionIngress, Endpoints: "web"},
		}
		r.create(proxy.Role(o), proxy.RoleBinding(o))
	}
}

// as returns a client of a user, by default of an administrator.
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

// in returns the objects of a manifest, in a namespace.
func (r *realm) in(namespace, manifest string) []client.Object {
	r.Helper()
	out := r.objects([]byte(manifest))
	for _, o := range out {
		o.SetNamespace(namespace)
	}
	return out
}

// route returns a route with labels, in the tenant's namespace.
func (r *realm) route(kind, name string, labels map[string]string) client.Object {
	r.Helper()
	o := r.in(tenant, "{apiVersion: gateway.networking.k8s.io/v1, kind: "+kind+", metadata: {name: "+name+"}, spec: {}}")[0]
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

func (r *realm) eventually(description string, ok func() error) {
	r.Helper()
	var last error
	err := wait.PollUntilContextTimeout(r.Context(), 100*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		last = ok()
		return last == nil, nil
	})
	if err != nil {
		r.Fatalf("timed out waiting: %s: %v", description, last)
	}
}

// A deed is a dry-run write.
type deed func(ctx context.Context, c client.Client, o client.Object) error

func create(ctx context.Context, c client.Client, o client.Object) error {
	o = o.DeepCopyObject().(client.Object)
	o.SetName(o.GetName() + "-more")
	return c.Create(ctx, o, client.DryRunAll)
}

func remove(ctx context.Context, c client.Client, o client.Object) error {
	return c.Delete(ctx, o.DeepCopyObject().(client.Object), client.DryRunAll)
}

// patch returns a deed with a merge patch.
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

// deeds returns the writes of an object.
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

// hasStatus reports whether the policy guards the status of an internal kind.
func hasStatus(o client.Object) bool {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	return kind == v1alpha1.MachineSetKind || kind == v1alpha1.MachineKind
}
