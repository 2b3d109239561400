// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/package/function/input"
)

// inputs of this function, in pipelines that are not our own.
var inputs = compose.NewInputSchema(input.TailscaleServices) //nolint:gochecknoglobals // A constant.

// reserved names of Tailscale Services, which the API server refuses.
var reserved = []string{"svc:localhost", "svc:wpad", "svc:autoconfig", "svc:isatap", "svc:teredo", "svc:autorouter"} //nolint:gochecknoglobals // A constant list.

// checkInput for what the API server checks of a TailscaleServices, and the schema
// of an input cannot say.
func (s *service) checkInput() error {
	if !s.publishes() {
		return errors.New("cannot do without a Tailscale Service: routes name no step of a pipeline; remove spec.vipService.enabled of the input, or compose a TailscaleServices")
	}
	if slices.Contains(reserved, s.serviceName()) {
		return errors.Errorf("cannot name the Tailscale Service %q: resolvers or clients give the name a meaning of their own; set spec.vipService.name in the input", s.serviceName())
	}
	if s.xr.Spec.VIPService.Name == "" && len(validation.IsDNS1123Label(s.owner.Name)) > 0 {
		return errors.Errorf("cannot name the Tailscale Service %q: set spec.vipService.name in the input", s.serviceName())
	}
	if s.vip == nil {
		return nil
	}
	if old := string(s.vip.Spec.ForProvider.Name); old != s.serviceName() {
		return errors.Errorf("cannot rename the Tailscale Service %s to %s: spec.vipService.name of the input is immutable; give the step another name", old, s.serviceName())
	}
	return nil
}
