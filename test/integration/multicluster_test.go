// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	kmeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	xpcontroller "github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/multicluster"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/permits"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
	plan "github.com/tailscale-gateway/tailscale-gateway/internal/multicluster"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// TestMulticluster exports a Service, and imports one that another cluster exports, in a manager that has
// the permissions of an administrator. The test writes the record of the other cluster.
func TestMulticluster(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.runMulticluster()
	e.apply(fmt.Sprintf(`
apiVersion: tailnet.gateway.tailscale.com/v1alpha1
kind: ClusterProviderConfig
metadata: {name: %[1]s}
spec:
  apiURL: %[2]s
  clusterID: %[3]s
  clusterSet: prod
  credentials: {oauthSecretRef: {name: %[4]s, namespace: %[1]s}}
  allowedNamespaces: {from: List, names: [%[1]s]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: %[1]s}
spec: {ports: [{name: http, port: 80, appProtocol: http}, {name: dns, port: 53, protocol: UDP}]}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: web, namespace: %[1]s}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: absent, namespace: %[1]s}
`, e.namespace, e.sim.URL, e.clusterID, credentialsSecret))
	e.eventually("the ServiceExport is valid and waits for its record", e.exportHas("web", mcsv1beta1.ServiceExportConditionValid, "Valid", mcsv1beta1.ServiceExportConditionReady, "Pending"))
	e.eventually("that of no Service is not", e.exportHas("absent", mcsv1beta1.ServiceExportConditionValid, "NoService"))
	e.eventually("a TailscaleServices publishes it", func() error {
		s := &unstructured.Unstructured{}
		s.SetGroupVersionKind(gatewayv1alpha1.SchemeGroupVersion.WithKind(gatewayv1alpha1.TailscaleServicesKind))
		if err := shared.kube.Get(e.Context(), types.NamespacedName{Namespace: e.namespace, Name: "clusterset-web"}, s); err != nil {
			return err
		}
		name, _, _ := unstructured.NestedString(s.Object, "spec", "vipService", "name")
		if want := plan.ServiceName("prod", e.namespace, "web"); name != want {
			return errors.Errorf("the name is %q, want %q", name, want)
		}
		return nil
	})
	e.eventually("a ServiceImport exists", func() error {
		i := &mcsv1beta1.ServiceImport{}
		if err := e.get("web", i); err != nil {
			return err
		}
		if len(i.Spec.Ports) != 2 || i.Spec.Type != mcsv1beta1.ClusterSetIP {
			return errors.Errorf("the ServiceImport has %+v", i.Spec)
		}
		return nil
	})
	// A Service that only claims to lead to the imported one gives it no address, and causes no writes.
	e.apply(fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: claims, namespace: %s, labels: {multicluster.kubernetes.io/service-name: web}}
spec: {ports: [{name: http, port: 80}]}
`, e.namespace))
	e.eventually("the ServiceExport of the Service that comes last is valid", func() error {
		if err := shared.kube.Get(e.Context(), types.NamespacedName{Namespace: e.namespace, Name: "absent"}, &corev1.Service{}); kerrors.IsNotFound(err) {
			e.apply(fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: absent, namespace: %s}
spec: {ports: [{port: 80}]}
`, e.namespace))
		}
		return e.exportHas("absent", mcsv1beta1.ServiceExportConditionValid, "Valid")()
	})
	i := &mcsv1beta1.ServiceImport{}
	e.must(e.get("web", i))
	if len(i.Spec.IPs) > 0 {
		e.Errorf("the ServiceImport has the addresses %v of a Service that only claims to lead there", i.Spec.IPs)
	}
	e.must(shared.kube.Delete(e.Context(), &mcsv1beta1.ServiceExport{ObjectMeta: e.named("web")}))
	e.eventually("the ServiceImport is gone", func() error {
		if err := e.get("web", &mcsv1beta1.ServiceImport{}); !kerrors.IsNotFound(err) {
			return errors.Errorf("the ServiceImport exists: %v", err)
		}
		return nil
	})
}

// runMulticluster runs the controller in a separate manager until the test ends.
func (e *env) runMulticluster() {
	e.Helper()
	mgr, err := ctrl.NewManager(shared.config, ctrl.Options{
		Scheme:     shared.kube.Scheme(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	e.must(err)
	e.must(multicluster.Setup(mgr, setup.Options{
		Options:      xpcontroller.Options{Logger: logging.NewNopLogger(), MaxConcurrentReconciles: 1, GlobalRateLimiter: ratelimiter.NewGlobal(10)},
		Namespace:    e.namespace,
		Pool:         tailscale.NewPool(tailscale.Options{Rate: 1000, Burst: 1000, ListMaxAge: listMaxAge, Metrics: tailscale.NewMetrics()}),
		Permits:      permits.New(shared.kube, e.namespace),
		AllowedHosts: tailscale.Hosts{"127.0.0.1:*"},
	}))
	ctx, cancel := context.WithCancel(e.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	e.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			e.Errorf("cannot run the manager: %v", err)
		}
	})
}

// named returns the metadata of an object of the case.
func (e *env) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: e.namespace, Name: name}
}

// get reads an object of the case.
func (e *env) get(name string, o client.Object) error {
	return shared.kube.Get(e.Context(), types.NamespacedName{Namespace: e.namespace, Name: name}, o)
}

// exportHas returns a check that a ServiceExport has conditions with reasons: a type, its reason, and so on.
func (e *env) exportHas(name string, want ...any) func() error {
	return func() error {
		x := &mcsv1beta1.ServiceExport{}
		if err := e.get(name, x); err != nil {
			return err
		}
		for i := 0; i < len(want); i += 2 {
			if c := kmeta.FindStatusCondition(x.Status.Conditions, fmt.Sprint(want[i])); c == nil || c.Reason != want[i+1] {
				return errors.Errorf("the condition %s is %+v", want[i], c)
			}
		}
		return nil
	}
}
