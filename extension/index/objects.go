// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// objects are all known objects, reduced to the parts that sections need. Each section
// declares the objects that it owns. Sections may read those of others.
type objects struct {
	routeObjects
	failoverObjects
	policyObjects
	secretObjects
	configMapObjects
	targetObjects
	settingsObjects
	gatewayObjects
	identityObjects
	certificateObjects
	bootstrapObjects
	grantObjects

	// serves reports whether a Gateway is served.
	serves func(gateway types.NamespacedName) bool
}

func newObjects() *objects {
	return &objects{
		routeObjects:       newRouteObjects(),
		failoverObjects:    newFailoverObjects(),
		policyObjects:      newPolicyObjects(),
		secretObjects:      newSecretObjects(),
		configMapObjects:   newConfigMapObjects(),
		targetObjects:      newTargetObjects(),
		settingsObjects:    newSettingsObjects(),
		gatewayObjects:     newGatewayObjects(),
		identityObjects:    newIdentityObjects(),
		certificateObjects: newCertificateObjects(),
		bootstrapObjects:   newBootstrapObjects(),
		grantObjects:       newGrantObjects(),
		serves:             everyGateway,
	}
}

func everyGateway(types.NamespacedName) bool { return true }

// put stores an object under its name, or removes a deleted object.
func put[K comparable, T any](m map[K]T, n K, v T, deleted bool) {
	if deleted {
		delete(m, n)
		return
	}
	m[n] = v
}

// A group holds objects by a name that several of them share.
type group[T any] map[types.NamespacedName]map[types.NamespacedName]T

func (g group[T]) set(shared, name types.NamespacedName, v T) {
	if g[shared] == nil {
		g[shared] = map[types.NamespacedName]T{}
	}
	g[shared][name] = v
}

func (g group[T]) unset(shared, name types.NamespacedName) {
	delete(g[shared], name)
	if len(g[shared]) == 0 {
		delete(g, shared)
	}
}

// sorted returns the objects that share a name, sorted by their unique names.
func (g group[T]) sorted(shared types.NamespacedName) []T {
	members := g[shared]
	out := make([]T, 0, len(members))
	for _, n := range slices.SortedFunc(maps.Keys(members), ir.CompareNames) {
		out = append(out, members[n])
	}
	return out
}
