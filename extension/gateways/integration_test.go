// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package gateways

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/extension/watch"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// waitLimit is longer than any wait of a test that succeeds.
const waitLimit = time.Minute

// An environment is an API server whose tests play the role of Envoy Gateway.
type environment struct {
	kube   client.Client
	config *rest.Config
}

// newEnvironment starts an API server with the CRDs of Gateway API and of this project, and the
// namespaces shop and team. Our kinds are namespaced composites, or claims.
func newEnvironment(t *testing.T, claims bool) *environment {
	t.Helper()
	crds, err := apiserver.GatewayAPICRDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server, err := apiserver.Start(t.Context(), apiserver.Options{CRDs: []string{crds}, Composites: !claims, Claims: claims})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	s, err := parse.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	kube, err := client.New(server.Config, client.Options{Scheme: s})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"shop", "team"} {
		if err := kube.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n}}); err != nil {
			t.Fatal(err)
		}
	}
	return &environment{kube: kube, config: server.Config}
}

// start runs a Controller that writes until the test ends.
func (w *environment) start(t *testing.T, o Options) {
	t.Helper()
	w.replica(t, o, true)
}

// replica runs a Controller until the test ends. Only one of them may write.
func (w *environment) replica(t *testing.T, o Options, writes bool) *Controller {
	t.Helper()
	o.Version = "v1"
	o.Permitted = func(r ir.RouteKey, b ir.BackendRef) bool { return r.Namespace == b.Namespace }
	if o.Hooks == nil {
		o.Hooks = func(string) *tailnetv1alpha1.ReportedHooks { return nil }
	}
	var namespaces []string
	if o.Gateway != nil {
		namespaces = append(namespaces, o.Gateway.Namespace)
	}
	informers, err := watch.NewCache(w.config, nil, namespaces...)
	if err != nil {
		t.Fatal(err)
	}
	c := NewController(informers, w.kube, o)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 3)
	go func() { ended <- informers.Start(ctx) }()
	go func() { ended <- c.Watch(ctx) }()
	go func() {
		if writes {
			c.Write(ctx)
		}
		ended <- nil
	}()
	t.Cleanup(func() {
		cancel()
		for range 3 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	return c
}

// create creates objects, and sets the status in their manifests.
func (w *environment) create(t *testing.T, objs ...client.Object) {
	t.Helper()
	for _, o := range objs {
		o.SetUID("")
		want, ok := o.DeepCopyObject().(client.Object)
		if !ok {
			t.Fatalf("%T is not an object", o)
		}
		if err := w.kube.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		want.SetResourceVersion(o.GetResourceVersion())
		want.SetUID(o.GetUID())
		if err := w.kube.Status().Update(t.Context(), want); err != nil {
			t.Fatal(err)
		}
	}
}

// waitFor waits until a check succeeds.
func (w *environment) waitFor(t *testing.T, check func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, waitLimit, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%v: %v", err, last)
	}
}

// report returns the report of the TailscaleGateway.
func (w *environment) report(ctx context.Context) (*tailnetv1alpha1.GatewayReport, error) {
	r := &tailnetv1alpha1.GatewayReport{}
	return r, w.kube.Get(ctx, types.NamespacedName{Namespace: "shop", Name: names.GatewayReport("web")}, r)
}

// waitForRoutes waits until the report has a number of routes.
func (w *environment) waitForRoutes(t *testing.T, n int) *tailnetv1alpha1.GatewayReport {
	t.Helper()
	var out *tailnetv1alpha1.GatewayReport
	w.waitFor(t, func(ctx context.Context) error {
		r, err := w.report(ctx)
		if err == nil && len(r.Spec.Routes) != n {
			err = errors.Errorf("the report has %d routes, want %d", len(r.Spec.Routes), n)
		}
		out = r
		return err
	})
	return out
}

func TestReport(t *testing.T) {
	w := newEnvironment(t, false)
	w.start(t, Options{})
	shared := objects(t, tailscaleGateway)[0]
	w.create(t, objects(t, gateway, listenerSet)...)
	w.create(t, objects(t, routeTo("HTTPRoute", "shop", "app", "{name: web, sectionName: http}", "True", "rules: [{backendRefs: [{name: app, port: 80}]}]"))...)
	w.create(t, shared)
	r := w.waitForRoutes(t, 1)
	want := []tailnetv1alpha1.ReportedRoute{{Kind: "HTTPRoute", Namespace: "shop", Name: "app", Ports: []int32{80}, Backends: []tailnetv1alpha1.ReportedBackend{{Namespace: "shop", Name: "app", Port: 80}}}}
	if diff := cmp.Diff(want, r.Spec.Routes, cmpopts.IgnoreFields(tailnetv1alpha1.ReportedRoute{}, "UID", "Created")); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if o := r.OwnerReferences; len(o) != 1 || o[0].UID != shared.GetUID() {
		t.Errorf("owners %v, want the TailscaleGateway", o)
	}

	// A route of a ListenerSet, then one that is not accepted, and fifty at once.
	w.create(t, objects(t, routeTo("HTTPRoute", "team", "late", "{kind: ListenerSet, name: extra}", "True", ""))...)
	w.waitForRoutes(t, 2)
	previous := w.waitForRoutes(t, 2).Generation
	objs := objects(t, routeTo("HTTPRoute", "shop", "refused", "{name: web}", "False", ""))
	for i := range 50 {
		objs = append(objs, objects(t, routeTo("HTTPRoute", "shop", fmt.Sprint("app", i), "{name: web}", "True", ""))...)
	}
	start := time.Now()
	w.create(t, objs...)
	current := w.waitForRoutes(t, 52).Generation
	// Watches deliver the last routes a while after their creation.
	took := time.Since(start)
	if most := int64(took/debounce) + 2; current-previous > most {
		t.Errorf("fifty routes within %s caused %d reports, want at most %d", took, current-previous, most)
	}

	// Events without relevant changes, and routes of another Gateway, cause no write.
	w.create(t, objects(t, routeTo("HTTPRoute", "shop", "elsewhere", "{name: other}", "True", ""))...)
	app := &gwapiv1.HTTPRoute{}
	if err := w.kube.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "app"}, app); err != nil {
		t.Fatal(err)
	}
	app.Status.Parents[0].Conditions[0].LastTransitionTime = metav1.Now()
	if err := w.kube.Status().Update(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	// The Controller has handled these events once it has restored a deleted report without any
	// further write.
	report := w.waitForRoutes(t, 52)
	if err := w.kube.Delete(t.Context(), report); err != nil {
		t.Fatal(err)
	}
	w.waitFor(t, func(ctx context.Context) error {
		r, err := w.report(ctx)
		if err == nil && r.UID == report.UID {
			err = errors.New("the report has not been written again")
		}
		return err
	})
	if r := w.waitForRoutes(t, 52); r.Generation != 1 {
		t.Errorf("the report was written %d times, want once", r.Generation)
	}

	// A TailscaleGateway without tailnets has no report.
	o := &gatewayv1alpha1.TailscaleGateway{}
	if err := w.kube.Get(t.Context(), client.ObjectKeyFromObject(shared), o); err != nil {
		t.Fatal(err)
	}
	o.Spec.Tailnets = nil
	if err := w.kube.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	w.waitFor(t, func(ctx context.Context) error {
		_, err := w.report(ctx)
		if kerrors.IsNotFound(err) {
			return nil
		}
		return errors.Errorf("the report still exists: %v", err)
	})
}

// waitForGenerated waits until the report has generated routes: HOST PREFIX STATE MESSAGE.
func (w *environment) waitForGenerated(t *testing.T, want ...string) {
	t.Helper()
	w.waitFor(t, func(ctx context.Context) error {
		r, err := w.report(ctx)
		if err != nil {
			return err
		}
		var got []string
		for _, g := range r.Spec.GeneratedRoutes {
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s%s %s %s", g.Hostname, g.PathPrefix, g.State, g.Message)))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return errors.Errorf("-want, +got:\n%s", diff)
		}
		return nil
	})
}

// routes returns the generated HTTPRoutes by host.
func (w *environment) routes(ctx context.Context, t *testing.T) map[string]*gwapiv1.HTTPRoute {
	t.Helper()
	l := &gwapiv1.HTTPRouteList{}
	if err := w.kube.List(ctx, l, client.HasLabels{meta.LabelGenerated}); err != nil {
		t.Fatal(err)
	}
	out := map[string]*gwapiv1.HTTPRoute{}
	for i := range l.Items {
		out[string(l.Items[i].Spec.Hostnames[0])] = &l.Items[i]
	}
	return out
}

// discover replaces the discovered endpoints of a tailnet's TailscaleEndpoints.
func (w *environment) discover(t *testing.T, tailnet, successful string, endpoints ...string) {
	t.Helper()
	want, ok := objects(t, found(tailnet, successful, endpoints...))[0].(*gatewayv1alpha1.TailscaleEndpoints)
	if !ok {
		t.Fatal("the manifest is no TailscaleEndpoints")
	}
	e := &gatewayv1alpha1.TailscaleEndpoints{}
	if err := w.kube.Get(t.Context(), client.ObjectKeyFromObject(want), e); err != nil {
		t.Fatal(err)
	}
	e.Status = want.Status
	if err := w.kube.Status().Update(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

// setStatus sets the Accepted condition of a route, as Envoy Gateway does.
func (w *environment) setStatus(t *testing.T, r *gwapiv1.HTTPRoute, status metav1.ConditionStatus, message string) {
	t.Helper()
	r.Status.Parents = []gwapiv1.RouteParentStatus{{
		ParentRef: r.Spec.ParentRefs[0], ControllerName: "gateway.envoyproxy.io/gatewayclass-controller",
		Conditions: []metav1.Condition{{Type: "Accepted", Status: status, Reason: "Because", Message: message, LastTransitionTime: metav1.Now()}},
	}}
	if err := w.kube.Status().Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

// TestGeneratedRoutes checks the life cycle of generated routes, in both configurations.
func TestGeneratedRoutes(t *testing.T) {
	for name, claims := range map[string]bool{"Composites": false, "Claims": true} {
		t.Run(name, func(t *testing.T) {
			w := newEnvironment(t, claims)
			w.start(t, Options{})
			generatesRoutes(t, w)
		})
	}
}

func generatesRoutes(t *testing.T, w *environment) {
	t.Helper()
	w.create(t, objects(t, gateway, found("prod", "True", "nas", "svc-db", "svc-app"), found("dev", "True", "nas"), publishes("prod", "app"))...)
	// A user's route has the name of a generated route.
	foreign := objects(t, strings.Replace(routeTo("HTTPRoute", "shop", names.Child("web", "dev", "egress", "svc-new"), "{name: other}", "True", ""), "prod", "dev", 1))
	w.create(t, foreign...)
	shared := objects(t, joins(discovers("prod", "HTTPS", defaultEgress), discovers("dev", "HTTP", defaultEgress), "{name: third, routeGeneration: {ingress: "+strings.Replace(defaultIngress, "HTTP}", "HTTPS}", 1)+"}}"))[0]
	w.create(t, shared)
	conflict := "nas.tailscale.local/tailscale/nas Conflict The device nas of tailnet prod has nas.tailscale.local/tailscale/nas already; no route is generated for the device nas of tailnet dev"
	w.waitForGenerated(t, conflict, "db.tailscale.local/tailscale/db Pending Waiting for Envoy Gateway", "nas.tailscale.local/tailscale/nas Pending Waiting for Envoy Gateway")

	// The objects are as planned: reconciling again changes nothing.
	existing := w.routes(t.Context(), t)
	policies := &gwapiv1.BackendTLSPolicyList{}
	if err := w.kube.List(t.Context(), policies, client.HasLabels{meta.LabelGenerated}); err != nil {
		t.Fatal(err)
	}
	if len(existing) != 2 || len(policies.Items) != 2 {
		t.Fatalf("%d routes and %d policies, want 2 and 2", len(existing), len(policies.Items))
	}
	if o := existing["db.tailscale.local"].OwnerReferences; len(o) != 1 || o[0].UID != shared.GetUID() {
		t.Errorf("owners %v, want the TailscaleGateway", o)
	}
	w.setStatus(t, existing["db.tailscale.local"], metav1.ConditionFalse, "Not allowed")
	w.setStatus(t, existing["nas.tailscale.local"], metav1.ConditionTrue, "")
	w.waitForGenerated(t, conflict, "db.tailscale.local/tailscale/db Refused Envoy Gateway: Not allowed", "nas.tailscale.local/tailscale/nas Accepted")
	for host, r := range w.routes(t.Context(), t) {
		if r.Generation != 1 {
			t.Errorf("the route of %s was written %d times, want once", host, r.Generation)
		}
	}

	// Changes of generated routes are undone, and deleted ones are created again.
	nas := w.routes(t.Context(), t)["nas.tailscale.local"]
	nas.Spec.Hostnames = []gwapiv1.Hostname{"changed.local"}
	if err := w.kube.Update(t.Context(), nas); err != nil {
		t.Fatal(err)
	}
	if err := w.kube.Delete(t.Context(), w.routes(t.Context(), t)["db.tailscale.local"]); err != nil {
		t.Fatal(err)
	}
	w.waitFor(t, func(ctx context.Context) error {
		routes := w.routes(ctx, t)
		if len(routes) != 2 || routes["nas.tailscale.local"] == nil || routes["db.tailscale.local"] == nil {
			return errors.Errorf("routes exist for %v", slices.Sorted(maps.Keys(routes)))
		}
		return nil
	})

	// A user's route takes the host and path, and endpoints of a tailnet disappear.
	w.create(t, objects(t,
		routeTo("HTTPRoute", "shop", "mine", "{name: web}", "True", "hostnames: [db.tailscale.local]\n  rules: [{backendRefs: [{name: db, port: 80}], matches: [{path: {type: PathPrefix, value: /tailscale/db}}]}]"),
	)...)
	w.discover(t, "prod", "True", "svc-db")
	w.discover(t, "dev", "True", "nas", "svc-new")
	w.waitForGenerated(t,
		"nas.tailscale.local/tailscale/nas Pending Waiting for Envoy Gateway",
		"new.tailscale.local/tailscale/new Conflict HTTPRoute "+client.ObjectKeyFromObject(foreign[0]).String()+" already exists and was not generated; delete or rename it",
		"db.tailscale.local/tailscale/db Conflict HTTPRoute shop/mine has db.tailscale.local/tailscale/db already; no route is generated for the service db of tailnet prod",
		"db.third.gateway.local/ Refused Gateway shop/web has no listener with protocol HTTPS for host db.third.gateway.local; add one, or change routeGeneration",
	)
	routes := w.routes(t.Context(), t)
	if len(routes) != 1 || routes["nas.tailscale.local"].Labels[meta.LabelGatewayTailnet] != "dev" {
		t.Errorf("routes exist for %v, want one of tailnet dev", slices.Sorted(maps.Keys(routes)))
	}

	// All objects are deleted with the TailscaleGateway, although no garbage collector runs here.
	if err := w.kube.Delete(t.Context(), shared); err != nil {
		t.Fatal(err)
	}
	w.waitFor(t, func(ctx context.Context) error {
		if n := len(w.routes(ctx, t)); n > 0 {
			return errors.Errorf("%d routes still exist", n)
		}
		if err := w.kube.List(ctx, policies, client.HasLabels{meta.LabelGenerated}); err != nil || len(policies.Items) > 0 {
			return errors.Errorf("%d policies still exist: %v", len(policies.Items), err)
		}
		if _, err := w.report(ctx); !kerrors.IsNotFound(err) {
			return errors.Errorf("the report still exists: %v", err)
		}
		return nil
	})
	if err := w.kube.Get(t.Context(), client.ObjectKeyFromObject(foreign[0]), &gwapiv1.HTTPRoute{}); err != nil {
		t.Errorf("the user's route: %v", err)
	}
}

// TestDedicated checks that the installed extension and a dedicated one each manage their own
// Gateways, and that the installed one reports which Gateways have a dedicated extension.
func TestDedicated(t *testing.T) {
	w := newEnvironment(t, false)
	notified := make(chan map[types.NamespacedName]bool, 10)
	w.start(t, Options{Dedicated: func(gateways map[types.NamespacedName]bool) { notified <- gateways }})
	w.create(t, objects(t, gateway, strings.Replace(tailscaleGateway, "  tailnets:", "  extensionServer: {replicas: 1}\n  tailnets:", 1))...)
	expectDedicated := func(want ...types.NamespacedName) {
		t.Helper()
		gateways := map[types.NamespacedName]bool{}
		for _, n := range want {
			gateways[n] = true
		}
		select {
		case got := <-notified:
			if diff := cmp.Diff(gateways, got); diff != "" {
				t.Errorf("Gateways with a dedicated extension: -want, +got:\n%s", diff)
			}
		case <-time.After(waitLimit):
			t.Fatalf("no notification of %v", want)
		}
	}
	web := types.NamespacedName{Namespace: "shop", Name: "web"}
	expectDedicated(web)

	// The second TailscaleGateway is reconciled later: once it has a report, the first one will
	// get none.
	w.create(t, objects(t, strings.Replace(tailscaleGateway, "metadata: {name: web}", "metadata: {name: plain}", 1))...)
	reportOf := func(ctx context.Context, name string) (*tailnetv1alpha1.GatewayReport, error) {
		r := &tailnetv1alpha1.GatewayReport{}
		return r, w.kube.Get(ctx, types.NamespacedName{Namespace: "shop", Name: names.GatewayReport(name)}, r)
	}
	reported := func(name string) *tailnetv1alpha1.GatewayReport {
		t.Helper()
		var out *tailnetv1alpha1.GatewayReport
		w.waitFor(t, func(ctx context.Context) error {
			r, err := reportOf(ctx, name)
			out = r
			return err
		})
		return out
	}
	plain := reported("plain")
	if _, err := reportOf(t.Context(), "web"); !kerrors.IsNotFound(err) {
		t.Errorf("the installed extension reports a Gateway with a dedicated extension: %v", err)
	}

	w.start(t, Options{Gateway: &web})
	reported("web")
	if current := reported("plain"); current.UID != plain.UID || current.Generation != plain.Generation {
		t.Error("the dedicated extension wrote the report of another Gateway")
	}

	// Without the dedicated extension the installed one manages the Gateway.
	o := &gatewayv1alpha1.TailscaleGateway{}
	if err := w.kube.Get(t.Context(), web, o); err != nil {
		t.Fatal(err)
	}
	o.Spec.ExtensionServer = nil
	if err := w.kube.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	expectDedicated()
}
