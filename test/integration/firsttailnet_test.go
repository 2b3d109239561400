// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	xpcontroller "github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/firsttailnet"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// TestFirstTailnet checks that the provider, with the permissions of the chart, creates the
// TailscaleTailnet of the chart's values once. The managers are separate and have the case's namespace:
// they stop and start, and their events are not lost among those of the other cases.
func TestFirstTailnet(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	first, second, third := e.namespace+"-first", e.namespace+"-second", e.namespace+"-third"
	stop, _ := e.runFirstTailnet()

	// Values that the API server refuses, and then valid ones.
	e.installTailnet(first, "tag=tag:k8s")
	e.eventually("an event about the misspelt field", e.hasEvent("InvalidTailscaleTailnet", `unknown field "spec.tag"`))
	e.installTailnet(first, "tags={k8s}")
	e.eventually("an event about the invalid tag", e.hasEvent("InvalidTailscaleTailnet", "spec.tags[0]"))
	e.installTailnet(first, "tags={tag:k8s}")
	e.eventually("the record of the first name", e.hasRecord(first))
	e.must(e.hasTags(first, "tag:k8s"))

	// Later values have no effect on it, and none on one of another name that exists.
	e.must(shared.kube.Patch(t.Context(), tailscaleTailnet(first), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"tags":["tag:edited"]}}`))))
	e.installTailnet(first, "tags={tag:k8s,tag:other}")
	e.apply(`{apiVersion: gateway.tailscale.com/v1alpha1, kind: TailscaleTailnet, metadata: {name: ` + second + `}, spec: {apiKeySecret: {name: key, namespace: shop}, tags: ["tag:mine"]}}`)
	e.installTailnet(second, "tags={tag:k8s}")
	e.eventually("the record of a name that existed", e.hasRecord(second))
	e.must(e.hasTags(first, "tag:edited"))
	e.must(e.hasTags(second, "tag:mine"))

	// A deleted one does not come back, neither after a restart nor when the values change.
	e.must(shared.kube.Delete(t.Context(), tailscaleTailnet(second)))
	stop()
	stop, reads := e.runFirstTailnet()
	defer func() { stop() }()
	// One read begins after the previous reconcile has ended.
	e.eventually("a reconcile after the restart", func() error { return atLeast(1, reads.Load()) })
	base := reads.Load()
	e.installTailnet(second, "tags={tag:other}")
	e.eventually("a reconcile of the changed values", func() error { return atLeast(base+1, reads.Load()) })
	e.installTailnet(second, "tags={tag:another}")
	e.eventually("another reconcile", func() error { return atLeast(base+2, reads.Load()) })
	if err := e.hasTags(second); !kerrors.IsNotFound(err) {
		t.Errorf("the deleted TailscaleTailnet came back: %v", err)
	}
	e.installTailnet(third, "tags={tag:k8s}")
	e.eventually("the record of another name", e.hasRecord(third))
	e.must(e.hasTags(third, "tag:k8s"))
}

// runFirstTailnet runs the controller in a separate manager. It returns a function that stops it, and how
// often it has read the request.
func (e *env) runFirstTailnet() (func(), *atomic.Int64) {
	e.Helper()
	reads := &atomic.Int64{}
	cfg := rest.CopyConfig(shared.provider)
	cfg.Wrap(func(transport http.RoundTripper) http.RoundTripper {
		return requestReads{RoundTripper: transport, path: "/api/v1/namespaces/" + e.namespace + "/configmaps/" + meta.FirstTailnetConfigMap, count: reads}
	})
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:  shared.kube.Scheme(),
		Cache:   cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: firsttailnet.Cached(e.namespace)}},
		Metrics: metricsserver.Options{BindAddress: "0"},
		// The provider of the other cases has a controller of the same name.
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	e.must(err)
	e.must(firsttailnet.Setup(mgr, setup.Options{
		Options:   xpcontroller.Options{Logger: logging.NewNopLogger(), MaxConcurrentReconciles: 1, GlobalRateLimiter: ratelimiter.NewGlobal(10)},
		Namespace: e.namespace,
	}))
	ctx, cancel := context.WithCancel(e.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			e.Errorf("cannot run the manager: %v", err)
		}
	}, reads
}

// requestReads counts the reads of an object.
type requestReads struct {
	http.RoundTripper
	path  string
	count *atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (r requestReads) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet && req.URL.Path == r.path {
		r.count.Add(1)
	}
	return r.RoundTripper.RoundTrip(req)
}

// installTailnet applies what the chart renders for a TailscaleTailnet, as Helm does.
func (e *env) installTailnet(name, field string) {
	e.Helper()
	root, err := apiserver.Root()
	e.must(err)
	cmd := exec.CommandContext(e.Context(), os.Getenv("TEST_ASSET_HELM"), "template", charts.Install, filepath.Join(root, charts.Folder, charts.Install),
		"--namespace="+e.namespace, "--kube-version=1.35.4", "--show-only=templates/tailnet.yaml", "--set=crossplane.namespace="+apiserver.CrossplaneNamespace,
		"--set=tailnet.name="+name, "--set=tailnet.oauth.clientID=abc", "--set=tailnet.oauth.clientSecret=notasecret", "--set=tailnet.spec."+field)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+os.DevNull)
	stderr := &strings.Builder{}
	cmd.Stderr = stderr
	out, err := cmd.Output()
	e.must(errors.Wrap(err, stderr.String()))
	for _, o := range e.parse(string(out)) {
		if o.GetKind() == "ConfigMap" {
			o.SetNamespace(e.namespace)
		}
		e.must(shared.kube.Apply(e.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("helm")))
	}
	e.created = append(e.created, tailscaleTailnet(name))
}

func tailscaleTailnet(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gatewayv1alpha1.SchemeGroupVersion.WithKind(gatewayv1alpha1.TailscaleTailnetKind))
	o.SetName(name)
	return o
}

// hasTags returns an error unless a TailscaleTailnet exists and has the tags.
func (e *env) hasTags(name string, tags ...string) error {
	o := tailscaleTailnet(name)
	if err := shared.kube.Get(e.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		return err
	}
	got, _, err := unstructured.NestedStringSlice(o.Object, "spec", "tags")
	if err != nil {
		return err
	}
	if diff := cmp.Diff(tags, got); diff != "" {
		return errors.Errorf("TailscaleTailnet %s: -want tags, +got:\n%s", name, diff)
	}
	return nil
}

// hasRecord returns a function that returns an error unless the request has the record.
func (e *env) hasRecord(tailnet string) func() error {
	return func() error {
		c := &corev1.ConfigMap{}
		if err := shared.kube.Get(e.Context(), types.NamespacedName{Namespace: e.namespace, Name: meta.FirstTailnetConfigMap}, c); err != nil {
			return err
		}
		if got := c.Data[meta.FirstTailnetCreated]; got != tailnet {
			return errors.Errorf("want record %q, got %q", tailnet, got)
		}
		return nil
	}
}

// hasEvent returns a function that returns an error unless there is an event on the request.
func (e *env) hasEvent(reason, part string) func() error {
	return func() error {
		l := &corev1.EventList{}
		if err := shared.kube.List(e.Context(), l, client.InNamespace(e.namespace)); err != nil {
			return err
		}
		for _, v := range l.Items {
			if v.Reason == reason && v.InvolvedObject.Name == meta.FirstTailnetConfigMap && strings.Contains(v.Message, part) {
				return nil
			}
		}
		return errors.Errorf("there are %d other events", len(l.Items))
	}
}

// atLeast returns an error unless there are enough.
func atLeast(want, got int64) error {
	if got < want {
		return errors.Errorf("want %d, got %d", want, got)
	}
	return nil
}
