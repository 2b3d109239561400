// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/namesake"
)

// requireNamesake is the Service of the object's name. It hardly changes once it is there.
func requireNamesake(owner compose.Owner) compose.Requirement {
	return compose.Requirement{Key: "service", APIVersion: "v1", Kind: "Service", Namespace: owner.Namespace, Name: owner.Name}
}

// fill in what the spec leaves to the Service of the object's name. It returns false while
// Crossplane has not looked for it.
func (s *service) fill(r *compose.Run) (bool, error) {
	if s.xr.Spec.EndpointTemplate != nil && len(s.xr.Spec.Selector.MatchLabels)+len(s.xr.Spec.Selector.MatchExpressions) == 0 {
		// There is no selector: the schema asks for a label otherwise.
		s.xr.Spec.Selector.MatchLabels = map[string]string{meta.LabelServices: s.owner.Name}
	}
	of := namesake.Service{Namespace: s.owner.Namespace, Name: s.owner.Name}
	if namesake.Answers(s.xr.Spec) {
		need := requireNamesake(s.owner)
		r.Require(need)
		found, looked, err := compose.Required[corev1.Service](r, need)
		if err != nil || !looked {
			return false, err
		}
		for _, f := range found {
			of.Exists = true
			for _, p := range f.Spec.Ports {
				if p.Protocol == "" || p.Protocol == corev1.ProtocolTCP {
					of.Ports = append(of.Ports, p.Port)
				}
			}
		}
	}
	spec, problem := namesake.Fill(s.xr.Spec, of)
	switch {
	case problem == nil:
		s.xr.Spec = spec
	case problem.Missing:
		s.unfilled = &specError{reason: meta.ReasonServiceNotFound, message: problem.Message}
	default:
		s.unfilled = &specError{reason: meta.ReasonInvalidBackends, message: problem.Message}
	}
	return true, nil
}
