// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// A Change of an object.
type Change struct {
	// Object in its new state. It must not be changed afterwards, because the Store holds
	// parts of it. Kind, namespace and name are enough for a deleted object.
	Object client.Object

	// Deleted reports that the object was deleted.
	Deleted bool

	// read is what Read found. Nil if Read was not called.
	read *reading
}

// A reading is what parsing a changed object gives.
type reading struct {
	// route is set if the object is a route, and policy if it is a TailscaleRoutePolicy that exists.
	route  *parse.RouteObject
	policy *ir.RoutePolicy
}

// An input is a change of an object that is put into sections.
type input struct {
	Change
	reading

	name types.NamespacedName
}

// newInput returns the input of a change that was read.
func newInput(c Change) *input {
	return &input{Change: c, reading: *c.read, name: types.NamespacedName{Namespace: c.Object.GetNamespace(), Name: c.Object.GetName()}}
}
