// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// OfType returns a predicate that passes Secrets with the label of one of the types. Secrets have
// no generation, so every change passes.
func OfType(types ...string) predicate.Predicate {
	wanted := func(o client.Object) bool {
		for _, t := range types {
			if o.GetLabels()[meta.LabelSecretType] == t {
				return true
			}
		}
		return false
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return wanted(e.Object) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return wanted(e.Object) },
		GenericFunc: func(e event.GenericEvent) bool { return wanted(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			// A resync changes nothing.
			return e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() && (wanted(e.ObjectNew) || wanted(e.ObjectOld))
		},
	}
}
