// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/package/function/input"
)

// inputs of this function, in pipelines that are not our own.
var inputs = compose.NewInputSchema(input.TailscaleServices) //nolint:gochecknoglobals // A constant.

// checkInput for what the API server checks of a TailscaleServices, and the schema
// of an input cannot say.
func (s *service) checkInput() error {
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
