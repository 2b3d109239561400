// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
)

// A Registration is a Kind without its type parameter, as the provider registers it.
type Registration interface {
	// Needs returns the kinds that must be installed before the controller starts.
	Needs() []schema.GroupVersionKind

	// User returns the kind's description for the controllers of provider configs.
	User() User

	// Setup adds the controller of the kind to a manager.
	Setup(mgr ctrl.Manager, o setup.Options) error
}

// A User is a kind whose objects refer to provider configs.
type User struct {
	GroupVersionKind schema.GroupVersionKind

	// Object is an empty object of the kind.
	Object client.Object

	// List returns an empty list of the kind.
	List func() resource.ManagedList

	// CleansUp reports whether an object that is being deleted may need its credentials to remove
	// objects from the tailnet.
	CleansUp bool
}

// Needs returns the kind, the kinds that it requires, and the kinds of provider configs.
func (k Kind[T]) Needs() []schema.GroupVersionKind {
	return append(append([]schema.GroupVersionKind{k.GroupVersionKind}, k.Requires...),
		v1alpha1.ClusterProviderConfigGroupVersionKind,
		v1alpha1.ProviderConfigGroupVersionKind,
		v1alpha1.ProviderConfigUsageGroupVersionKind)
}

// User returns the kind's description for the controllers of provider configs.
func (k Kind[T]) User() User {
	return User{GroupVersionKind: k.GroupVersionKind, Object: k.Object, List: k.List, CleansUp: !k.LeavesNothing}
}
