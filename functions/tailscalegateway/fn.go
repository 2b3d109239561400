// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package tailscalegateway composes TailscaleGateways. It finds the Service that Envoy Gateway
// made in front of a Gateway, and the listeners that the Service serves. For each tailnet it
// composes TailscaleEndpoints, and TailscaleServices for what the tailnet is to reach; their own
// functions compose the rest. The extension reports which routes there are.
package tailscalegateway

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwapiv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/refgrant"
)

// Labels of the Services that Envoy Gateway makes, wherever it runs its proxies
// (envoyproxy/gateway v1.9 internal/gatewayapi/translator.go and
// internal/infrastructure/kubernetes/proxy/resource.go). One Service that several
// Gateways of a class share has the class alone.
const (
	labelManagedBy        = "app.kubernetes.io/managed-by"
	labelGatewayNamespace = "gateway.envoyproxy.io/owning-gateway-namespace"
	labelGatewayName      = "gateway.envoyproxy.io/owning-gateway-name"
	labelGatewayClass     = "gateway.envoyproxy.io/owning-gatewayclass"

	managedBy = "envoy-gateway"
)

// Function composes TailscaleGateways.
type Function struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	log logging.Logger

	// extensionImage is that of extensions which say none.
	extensionImage string

	// envoyGateway are the namespaces in which Envoy Gateway runs.
	envoyGateway []string
}

// New returns a function that takes a Gateway's Service from these namespaces, or from the
// Gateway's own. Extensions that name no image have extensionImage.
func New(log logging.Logger, envoyGatewayNamespaces []string, extensionImage string) *Function {
	return &Function{log: log, extensionImage: extensionImage, envoyGateway: envoyGatewayNamespaces}
}

// RunFunction composes one TailscaleGateway.
func (f *Function) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	log := f.log.WithValues("tag", req.GetMeta().GetTag())
	r := compose.NewRun(req)
	if err := f.run(r); err != nil {
		log.Info("Cannot compose TailscaleGateway", "error", err)
		return r.Fatal(err, meta.TypeGatewayValid), nil
	}
	log.Debug("Composed TailscaleGateway")
	return r.Response(), nil
}

// requireGateway is the Gateway itself. Its status changes with each route that
// comes or goes, and each change runs this function and counts against the
// composite in Crossplane's circuit breaker. What comes out depends on its addresses
// alone, which seldom change, so a run writes nothing, and one that the breaker drops misses nothing but
// a change of the Gateway's listeners, which the next run makes good.
func requireGateway(ref gatewayv1alpha1.GatewayRef) compose.Requirement {
	return compose.Requirement{
		Key:        "gateway",
		APIVersion: gwapiv1.GroupVersion.String(),
		Kind:       ref.Kind,
		Namespace:  ref.Namespace,
		Name:       ref.Name,
	}
}

// requireServices are those of one Gateway, in any namespace: those in others than the
// Gateway's and Envoy Gateway's are told of.
func requireServices(ref gatewayv1alpha1.GatewayRef) compose.Requirement {
	return compose.Requirement{
		Key:        "services",
		APIVersion: corev1.SchemeGroupVersion.String(),
		Kind:       "Service",
		Labels:     map[string]string{labelManagedBy: managedBy, labelGatewayNamespace: ref.Namespace, labelGatewayName: ref.Name},
	}
}

// requireMerged are those that all Gateways of a class share.
func requireMerged(class gwapiv1.ObjectName) compose.Requirement {
	return compose.Requirement{
		Key:        "merged-services",
		APIVersion: corev1.SchemeGroupVersion.String(),
		Kind:       "Service",
		Labels:     map[string]string{labelManagedBy: managedBy, labelGatewayClass: string(class)},
	}
}

// requireGrants are the ReferenceGrants of the Gateway's namespace.
func requireGrants(ref gatewayv1alpha1.GatewayRef) compose.Requirement {
	return compose.Requirement{
		Key:        "grants",
		APIVersion: gwapiv1beta1.GroupVersion.String(),
		Kind:       "ReferenceGrant",
		Namespace:  ref.Namespace,
	}
}

func (f *Function) run(r *compose.Run) error {
	xr := &gatewayv1alpha1.TailscaleGateway{}
	if err := r.Object(inputs, xr); err != nil {
		return err
	}
	owner := compose.OwnerOf(xr)
	if owner.Namespace == "" {
		return errors.New("cannot find a Gateway for an object without a namespace")
	}
	ref := reference(xr.Spec.GatewayRef, owner.Namespace)
	g, resolved, err := find(r, ref, owner.Namespace, f.envoyGateway)
	if err != nil {
		return err
	}
	s, err := newShare(r, owner, xr, g, f.extensionImage)
	if err != nil {
		return err
	}
	s.envoyGateway = f.envoyGateway
	waiting, err := s.read(r)
	if err != nil {
		return err
	}
	if !resolved {
		waiting = "Waiting for Crossplane to read the Gateway and its Service"
	}
	if waiting != "" {
		r.SetWaiting(waiting, s.conditionTypes()...)
		r.NotReady()
		return r.CarryOver()
	}
	if err := s.plan(r); err != nil {
		return err
	}
	s.setConditions(r)
	if s.problem() {
		r.NotReady()
	}
	if err := r.Status(s.status()); err != nil {
		return err
	}
	if err := s.desireProxies(r); err != nil {
		return err
	}
	if err := s.desireServices(r); err != nil {
		return err
	}
	if err := s.desireResolvers(r); err != nil {
		return err
	}
	return s.desireExtension(r)
}

// reference with its defaults. A schema cannot give the namespace.
func reference(ref gatewayv1alpha1.GatewayRef, namespace string) gatewayv1alpha1.GatewayRef {
	ref.Kind = cmp.Or(ref.Kind, "Gateway")
	ref.Namespace = cmp.Or(ref.Namespace, namespace)
	return ref
}

// permitted reports whether TailscaleGateways of a namespace may share what a reference
// leads to, and whether Crossplane has looked for what says so. Those of the same namespace
// always may.
func permitted(r *compose.Run, ref gatewayv1alpha1.GatewayRef, namespace string) (permitted, looked bool, err error) {
	if ref.Namespace == namespace {
		return true, true, nil
	}
	need := requireGrants(ref)
	r.Require(need)
	found, looked, err := compose.Required[gwapiv1beta1.ReferenceGrant](r, need)
	if err != nil || !looked {
		return false, false, err
	}
	grants := refgrant.Grants{}
	for i := range found {
		grants[types.NamespacedName{Namespace: found[i].GetNamespace(), Name: found[i].GetName()}] = &found[i].Spec
	}
	return grants.PermitGateway(namespace, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}), true, nil
}

// find what a reference leads to, for a TailscaleGateway of a namespace. It returns false
// while Crossplane has not looked for all of it.
func find(r *compose.Run, ref gatewayv1alpha1.GatewayRef, namespace string, namespaces []string) (*gateway, bool, error) {
	permitted, granted, err := permitted(r, ref, namespace)
	if err != nil {
		return nil, false, err
	}
	needGateway, needServices := requireGateway(ref), requireServices(ref)
	r.Require(needGateway)
	r.Require(needServices)
	gateways, looked, err := compose.Required[gwapiv1.Gateway](r, needGateway)
	if err != nil || !looked {
		return nil, false, err
	}
	own, looked, err := compose.Required[corev1.Service](r, needServices)
	if err != nil || !looked || !granted {
		return nil, false, err
	}
	if !permitted {
		return &gateway{ref: ref, envoyGateway: namespaces, ungranted: namespace}, true, nil
	}
	if len(gateways) == 0 {
		return newGateway(ref, nil, nil, nil, namespaces), true, nil
	}
	needMerged := requireMerged(gateways[0].Spec.GatewayClassName)
	r.Require(needMerged)
	merged, looked, err := compose.Required[corev1.Service](r, needMerged)
	if err != nil || !looked {
		return nil, false, err
	}
	return newGateway(ref, &gateways[0], own, merged, namespaces), true, nil
}
