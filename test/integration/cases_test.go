// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

// kindCases returns the cases of all kinds, one in each line.
func kindCases() []anyCase {
	return []anyCase{
		authKeyCase().erase(),
		contactsCase().erase(),
		deviceCase().erase(),
		discoveryCase().erase(),
		dnsCase().erase(),
		federatedIdentityCase().erase(),
		logstreamConfigurationCase().erase(),
		machineCase().erase(),
		oauthClientCase().erase(),
		policyFragmentCase().erase(),
		postureIntegrationCase().erase(),
		splitDNSCase().erase(),
		tailnetCase().erase(),
		vipServiceCase().erase(),
		webhookCase().erase(),
	}
}
