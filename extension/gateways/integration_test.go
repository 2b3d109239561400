// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package gateways

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// waitLimit is longer than any wait of a test that goes well.
const waitLimit = time.Minute

// A world is an API server, a Controller that watches it, and who plays Envoy Gateway.
type world struct {
	*Controller

	kube client.Client
}

// newWorld with the CRDs of Gateway API and of ours, and the namespaces shop and team.
func newWorld(t *testing.T) *world {
	t.Helper()
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		t.Fatal(err)
	}
	crds := filepath.Join(strings.TrimSpace(string(module)), "config", "crd", "standard")
	server, err := apiserver.Start(t.Context(), apiserver.Options{CRDs: []string{crds}, Composites: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	s, err := index.Scheme()
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
	informers, err := index.NewCache(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{kube: kube, Controller: NewController(informers, kube, Options{
		Version:   "v1",
		Permitted: func(r index.RouteKey, b index.BackendRef) bool { return r.Namespace == b.Namespace },
		Hooks:     func(string) *tailnetv1alpha1.ReportedHooks { return nil },
	})}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 3)
	go func() { ended <- informers.Start(ctx) }()
	go func() { ended <- w.Watch(ctx) }()
	go func() {
		w.Write(ctx)
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
	return w
}

// create objects, and give them the status that their manifests have.
func (w *world) create(t *testing.T, of ...client.Object) {
	t.Helper()
	for _, o := range of {
		o.SetUID("")
		want, ok := o.DeepCopyObject().(client.Object)
		if !ok {
			t.Fatalf("%T is no object", o)
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

// until a check is content.
func (w *world) until(t *testing.T, check func(ctx context.Context) error) {
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

// report of the TailscaleGateway.
func (w *world) report(ctx context.Context) (*tailnetv1alpha1.GatewayReport, error) {
	r := &tailnetv1alpha1.GatewayReport{}
	return r, w.kube.Get(ctx, types.NamespacedName{Namespace: "shop", Name: names.GatewayReport("web")}, r)
}

// reports waits until the report tells of as many routes.
func (w *world) reports(t *testing.T, n int) *tailnetv1alpha1.GatewayReport {
	t.Helper()
	var out *tailnetv1alpha1.GatewayReport
	w.until(t, func(ctx context.Context) error {
		r, err := w.report(ctx)
		if err == nil && len(r.Spec.Routes) != n {
			err = errors.Errorf("the report tells of %d routes, not of %d", len(r.Spec.Routes), n)
		}
		out = r
		return err
	})
	return out
}

func TestReport(t *testing.T) {
	w := newWorld(t)
	shared := objects(t, tailscaleGateway)[0]
	w.create(t, objects(t, gateway, listenerSet)...)
	w.create(t, objects(t, routeTo("HTTPRoute", "shop", "app", "{name: web, sectionName: http}", "True", "rules: [{backendRefs: [{name: app, port: 80}]}]"))...)
	w.create(t, shared)
	r := w.reports(t, 1)
	want := []tailnetv1alpha1.ReportedRoute{{Kind: "HTTPRoute", Namespace: "shop", Name: "app", Ports: []int32{80}, Backends: []tailnetv1alpha1.ReportedBackend{{Namespace: "shop", Name: "app", Port: 80}}}}
	if diff := cmp.Diff(want, r.Spec.Routes); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if o := r.OwnerReferences; len(o) != 1 || o[0].UID != shared.GetUID() {
		t.Errorf("owners %v, want the TailscaleGateway", o)
	}

	// A route of a ListenerSet, then one that is not accepted, and fifty at once.
	w.create(t, objects(t, routeTo("HTTPRoute", "team", "late", "{kind: ListenerSet, name: extra}", "True", ""))...)
	w.reports(t, 2)
	before := w.reports(t, 2).Generation
	of := objects(t, routeTo("HTTPRoute", "shop", "refused", "{name: web}", "False", ""))
	for i := range 50 {
		of = append(of, objects(t, routeTo("HTTPRoute", "shop", fmt.Sprint("app", i), "{name: web}", "True", ""))...)
	}
	start := time.Now()
	w.create(t, of...)
	took := time.Since(start)
	after := w.reports(t, 52).Generation
	if most := int64(took/debounce) + 2; after-before > most {
		t.Errorf("fifty routes within %s made %d reports, want at most %d", took, after-before, most)
	}

	// At rest nothing is written, though something is looked at: another Gateway's.
	w.create(t, objects(t, routeTo("HTTPRoute", "shop", "elsewhere", "{name: other}", "True", ""))...)
	app := &gwapiv1.HTTPRoute{}
	if err := w.kube.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "app"}, app); err != nil {
		t.Fatal(err)
	}
	app.Status.Parents[0].Conditions[0].LastTransitionTime = metav1.Now()
	if err := w.kube.Status().Update(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	// It is seen that it was looked at when a report that was taken away is back, and
	// nothing but that.
	gone := w.reports(t, 52)
	if err := w.kube.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	w.until(t, func(ctx context.Context) error {
		r, err := w.report(ctx)
		if err == nil && r.UID == gone.UID {
			err = errors.New("the report has not been written again")
		}
		return err
	})
	if r := w.reports(t, 52); r.Generation != 1 {
		t.Errorf("the report was written %d times, want once", r.Generation)
	}

	// Without tailnets there is nothing to tell.
	o := &gatewayv1alpha1.TailscaleGateway{}
	if err := w.kube.Get(t.Context(), client.ObjectKeyFromObject(shared), o); err != nil {
		t.Fatal(err)
	}
	o.Spec.Tailnets = nil
	if err := w.kube.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	w.until(t, func(ctx context.Context) error {
		_, err := w.report(ctx)
		if kerrors.IsNotFound(err) {
			return nil
		}
		return errors.Errorf("there is a report still: %v", err)
	})
}
