// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package policies

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/extension/watch"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// waitLimit is longer than any wait of a passing test.
const waitLimit = time.Minute

// TestTLSWriterOfAPIServer checks with a real API server that the ancestor of a policy is written, comes
// back after Envoy Gateway's update of the whole status, and is removed when the policy is applied.
func TestTLSWriterOfAPIServer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	crds, err := apiserver.GatewayAPICRDs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	server, err := apiserver.Start(ctx, apiserver.Options{CRDs: []string{filepath.Join(crds, "gateway.networking.k8s.io_backendtlspolicies.yaml")}})
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
	informers, err := watch.NewCache(server.Config, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &gwapiv1.BackendTLSPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: gwapiv1.BackendTLSPolicySpec{
			TargetRefs: []gwapiv1.LocalPolicyTargetReferenceWithSectionName{{LocalPolicyTargetReference: gwapiv1.LocalPolicyTargetReference{
				Group: gatewayv1alpha1.Group, Kind: gatewayv1alpha1.TailscaleServicesKind, Name: "web",
			}}},
			Validation: gwapiv1.BackendTLSPolicyValidation{Hostname: "web.example.com", CACertificateRefs: []gwapiv1.LocalObjectReference{{Kind: "Secret", Name: "ca"}}},
		},
	}
	if err := kube.Create(ctx, p); err != nil {
		t.Fatal(err)
	}
	store := index.NewStore()
	route := &gwapiv1.HTTPRoute{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web"},
		Spec: gwapiv1.HTTPRouteSpec{
			CommonRouteSpec: gwapiv1.CommonRouteSpec{ParentRefs: []gwapiv1.ParentReference{{Name: "gw"}}},
			Rules: []gwapiv1.HTTPRouteRule{{BackendRefs: []gwapiv1.HTTPBackendRef{{BackendRef: gwapiv1.BackendRef{BackendObjectReference: gwapiv1.BackendObjectReference{
				Group: ptr.To(gwapiv1.Group(gatewayv1alpha1.Group)), Kind: ptr.To(gwapiv1.Kind(gatewayv1alpha1.TailscaleServicesKind)), Name: "web", Port: ptr.To(gwapiv1.PortNumber(80)),
			}}}}}},
		},
	}
	for _, o := range []client.Object{route, p} {
		if err := store.Apply(index.Change{Object: o.DeepCopyObject().(client.Object)}); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 2)
	go func() { ended <- informers.Start(ctx) }()
	go func() {
		NewTLSWriter(store, informers, kube, Options{Log: logging.NewNopLogger()}).Run(ctx)
		ended <- nil
	}()
	t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	waitFor := func(reason string, want ...gwapiv1.GatewayController) {
		t.Helper()
		var got []gwapiv1.GatewayController
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, waitLimit, true, func(ctx context.Context) (bool, error) {
			if err := kube.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
				return false, err
			}
			got = nil
			for _, a := range p.Status.Ancestors {
				got = append(got, a.ControllerName)
			}
			return slices.Equal(got, want), nil
		})
		if err != nil {
			t.Fatalf("%s: %v\ncontrollers: -want, +got:\n%s", reason, err, cmp.Diff(want, got))
		}
	}
	waitFor("The ancestor is written.", ControllerName)
	c := p.Status.Ancestors[0].Conditions
	if len(c) != 2 || c[0].Reason != string(gwapiv1.BackendTLSPolicyReasonNoValidCACertificate) || c[1].Reason != string(gwapiv1.BackendTLSPolicyReasonInvalidKind) {
		t.Errorf("conditions: got %v", c)
	}

	for range 2 {
		// As Mutator in Envoy Gateway's internal/provider/kubernetes/status.go.
		p.Status = gwapiv1.PolicyStatus{Ancestors: []gwapiv1.PolicyAncestorStatus{ancestorBy(envoyGateway, "gw")}}
		if err := kube.Status().Update(ctx, p); err != nil {
			t.Fatal(err)
		}
		waitFor("The ancestor comes back.", envoyGateway, ControllerName)
	}

	p.Spec.Validation.CACertificateRefs, p.Spec.Validation.WellKnownCACertificates = nil, ptr.To(gwapiv1.WellKnownCACertificatesSystem)
	if err := kube.Update(ctx, p); err != nil {
		t.Fatal(err)
	}
	if err := store.Apply(index.Change{Object: p.DeepCopy()}); err != nil {
		t.Fatal(err)
	}
	waitFor("The ancestor is removed.", envoyGateway)
}
