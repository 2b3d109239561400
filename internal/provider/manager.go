// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/customresourcesgate"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/firsttailnet"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/secrets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// Settings of the lease, equal to those of Crossplane's binaries.
const (
	leaderElectionID = "provider-tailscale.gateway.tailscale.com"
	leaseDuration    = time.Minute
	renewDeadline    = 50 * time.Second
)

func newManager(o Options) (ctrl.Manager, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, mcsv1beta1.Install, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			return nil, errors.Wrap(err, "cannot build scheme")
		}
	}
	cfg := o.RESTConfig
	if cfg == nil {
		var err error
		if cfg, err = ctrl.GetConfig(); err != nil {
			return nil, errors.Wrap(err, "cannot get the API server's address")
		}
	}
	co, err := cacheOptions(o)
	if err != nil {
		return nil, err
	}
	lease, renew := leaseDuration, renewDeadline
	mgr, err := ctrl.NewManager(ratelimiter.LimitRESTConfig(cfg, o.MaxReconcileRate), ctrl.Options{
		Scheme: s,
		Cache:  co,
		// Secrets are read from the API server: a stale key or node ID would be used.
		NewClient: func(c *rest.Config, o client.Options) (client.Client, error) {
			kube, err := client.New(c, o)
			if err != nil {
				return nil, err
			}
			return kinds.CleanStatuses(kube), nil
		},
		Client:                        client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		Metrics:                       metricsserver.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress:        o.HealthAddress,
		PprofBindAddress:              o.ProfileAddress,
		LeaderElection:                o.LeaderElection,
		LeaderElectionID:              leaderElectionID,
		LeaseDuration:                 &lease,
		RenewDeadline:                 &renew,
		LeaderElectionReleaseOnCancel: true,
	})
	return mgr, errors.Wrap(err, "cannot make controller manager")
}

// stripNode keeps of a node what static endpoints need. A list of images is most of a node.
func stripNode(o any) (any, error) {
	n, ok := o.(*corev1.Node)
	if !ok {
		return o, nil
	}
	n.ManagedFields, n.Annotations, n.Spec = nil, nil, corev1.NodeSpec{}
	n.Status = corev1.NodeStatus{Addresses: n.Status.Addresses, Conditions: n.Status.Conditions}
	return n, nil
}

// maxOwners is the maximum number of owners that are kept. Objects of the provider have one.
const maxOwners = 4

// stripMetadata keeps of an object what event handlers read. Their number and size are limited for
// each object, because a tenant may write a megabyte of any metadata.
func stripMetadata(o any) (any, error) {
	m, ok := o.(*metav1.PartialObjectMetadata)
	if !ok {
		return o, nil
	}
	m.ManagedFields, m.Annotations = nil, nil
	maps.DeleteFunc(m.Labels, func(k, _ string) bool {
		return k != meta.LabelSecretType && k != meta.LabelMachine && k != meta.LabelExtension
	})
	m.Finalizers = slices.DeleteFunc(m.Finalizers, func(f string) bool { return f != secrets.FinalizerState && f != clients.Finalizer })
	// Objects have at most one controller.
	controller := metav1.GetControllerOf(m)
	m.OwnerReferences = slices.DeleteFunc(m.OwnerReferences, func(r metav1.OwnerReference) bool { return ptr.Deref(r.Controller, false) })
	m.OwnerReferences = slices.Clone(m.OwnerReferences[:min(len(m.OwnerReferences), maxOwners)])
	if controller != nil {
		m.OwnerReferences = append(m.OwnerReferences, *controller)
	}
	return m, nil
}

func cacheOptions(o Options) (cache.Options, error) {
	// The cache holds only Secrets of the provider, never all of a cluster, and only their metadata:
	// anyone may label Secrets, of any size.
	owned, err := labels.NewRequirement(meta.LabelSecretType, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, errors.Wrap(err, "cannot build label selector")
	}
	// The cache holds only StatefulSets of the provider.
	pods, err := labels.NewRequirement(meta.LabelMachineSet, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, errors.Wrap(err, "cannot build label selector")
	}
	// The cache holds only ServiceAccounts of dedicated extensions.
	extensions, err := labels.NewRequirement(meta.LabelExtension, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, errors.Wrap(err, "cannot build label selector")
	}
	co := cache.Options{
		SyncPeriod: &o.Sync,
		// No controller reads managed fields, which are half of an object.
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}:                            {Label: labels.NewSelector().Add(*owned), Transform: stripMetadata},
			&appsv1.StatefulSet{}:                       {Label: labels.NewSelector().Add(*pods)},
			&policyv1.PodDisruptionBudget{}:             {Label: labels.NewSelector().Add(*pods)},
			&corev1.Service{}:                           {Label: labels.NewSelector().Add(*pods)},
			&corev1.ServiceAccount{}:                    {Label: labels.NewSelector().Add(*extensions), Transform: stripMetadata},
			&corev1.ConfigMap{}:                         firsttailnet.Cached(o.Namespace),
			&corev1.Node{}:                              {Transform: stripNode},
			&apiextensionsv1.CustomResourceDefinition{}: {Transform: customresourcesgate.TransformStripCRDSchema},
		},
	}
	co.DefaultNamespaces = setup.CachedNamespaces(o.WatchNamespaces)
	return co, nil
}
