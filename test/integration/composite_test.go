// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	xpcontroller "github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/composite"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
)

// TestCompositeNotReconciled checks that an object gets an event that Crossplane, which does not run
// here, has not reconciled, with the provider's permissions. It has a separate manager: its events
// are not lost among those of the other cases.
func TestCompositeNotReconciled(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	mgr, err := ctrl.NewManager(shared.provider, ctrl.Options{
		Scheme:  shared.kube.Scheme(),
		Metrics: metricsserver.Options{BindAddress: "0"},
		// The provider of the other cases has controllers of the same names.
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	e.must(err)
	o := setup.Options{
		Options: xpcontroller.Options{Logger: logging.NewNopLogger(), MaxConcurrentReconciles: 1, GlobalRateLimiter: ratelimiter.NewGlobal(10)},
		Clock:   clocktesting.NewFakePassiveClock(time.Now().Add(time.Hour)),
	}
	for _, k := range composite.Kinds() {
		e.must(composite.Setup(t.Context(), mgr, o, k))
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("cannot run the manager: %v", err)
		}
	})

	p := &metav1.PartialObjectMetadata{}
	e.apply(`
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: ignored, namespace: ` + e.namespace + `}
spec: {selector: {matchLabels: {app: proxies}}}
`)
	p.SetGroupVersionKind(gatewayv1alpha1.SchemeGroupVersion.WithKind(gatewayv1alpha1.TailscaleServicesKind))
	e.must(shared.kube.Get(t.Context(), client.ObjectKey{Namespace: e.namespace, Name: "ignored"}, p))
	e.eventually("an event about the object", func() error {
		l := &corev1.EventList{}
		if err := shared.kube.List(t.Context(), l, client.InNamespace(e.namespace)); err != nil {
			return err
		}
		for _, v := range l.Items {
			if v.Reason == "NotReconciledByCrossplane" && v.Type == corev1.EventTypeWarning && v.InvolvedObject.UID == p.GetUID() {
				return nil
			}
		}
		return errors.Errorf("there are %d other events", len(l.Items))
	})
}
