// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package services

import (
	"fmt"

	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/routes"
	"github.com/tailscale-gateway/tailscale-gateway/internal/quota"
)

// fullServices returns why a service is omitted.
func fullServices() string {
	return fmt.Sprintf("A TailscaleGateway has no more than %d services, of which those of one namespace get three quarters; split its routes over several Gateways", maxServices)
}

// limitServices omits the services that exceed the maximum. Existing ones stay.
func limitServices(f Facts, services []*Service) {
	var wanted []*Service
	for _, v := range services {
		if v.omitted == "" && (v.mistake == "" || v.Observed != nil) {
			wanted = append(wanted, v)
			v.full = true
		}
	}
	requests := routes.ServiceRequests(f.Report)
	admitted, _ := quota.Admit(maxServices, wanted, func(v *Service) quota.Request {
		request := requests[v.Target]
		if v.Observed != nil {
			request.Allocated = 1
		}
		return request
	})
	for _, v := range admitted {
		v.full = false
	}
	for _, v := range wanted {
		if v.full {
			v.omitted = fullServices()
		}
	}
}
