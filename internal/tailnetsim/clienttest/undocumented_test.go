// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clienttest

// undocumentedRoutes of the simulator.
var undocumentedRoutes = []undocumented{
	{
		op: "* /tailnet/{tailnet}/vip-services", parts: []string{"path"},
		source: "ServicesResource in services.go of the official Go client",
	},
	{
		op: "* /tailnet/{tailnet}/vip-services/{service}", parts: []string{"path"},
		source: "ServicesResource in services.go of the official Go client",
	},
	{
		op: "* /organizations/{organization}/tailnets", parts: []string{"path"},
		source: "TailnetsResource in tailnet.go of the official Go client",
	},
	{
		op: "DELETE /tailnet/{tailnet}", parts: []string{"path"},
		source: "TailnetsResource in tailnet.go of the official Go client",
	},
	{
		op: "* /tailnet/{tailnet}/dns/*", parts: []string{"scope dns"},
		source: "https://tailscale.com/kb/1623/trust-credentials, the list of scopes",
	},
}

// undocumentedContents of the client's requests and of the simulator's replies.
var undocumentedContents = []undocumented{
	{
		op: "GET /tailnet/{tailnet}/devices", parts: []string{"query isEphemeral", "query os", "query tags"},
		source: "the document's parameter <field>=<value>, which stands for all fields",
	},
	{
		op: "GET /tailnet/{tailnet}/devices", parts: []string{"reply $.devices[].clientConnectivity.derp string"},
		source: "ClientConnectivity in devices.go of the official Go client",
	},
	{
		op: "GET /device/{deviceId}", parts: []string{"reply $.clientConnectivity.derp string"},
		source: "ClientConnectivity in devices.go of the official Go client",
	},
	{
		op: "GET /tailnet/{tailnet}/services", parts: []string{"reply $.vipServices[].annotations object", "reply $.vipServices[].displayName string"},
		source: "Service in services.go of the official Go client",
	},
	{
		op: "GET /tailnet/{tailnet}/services/{serviceName}", parts: []string{"reply $.annotations object", "reply $.displayName string"},
		source: "Service in services.go of the official Go client",
	},
	{
		op:     "PUT /tailnet/{tailnet}/services/{serviceName}",
		parts:  []string{"body $.annotations object", "body $.displayName string", "reply $.annotations object", "reply $.displayName string"},
		source: "Service in services.go of the official Go client",
	},
	{
		op: "GET /tailnet/{tailnet}/webhooks", parts: []string{"reply $.webhooks null"},
		source: "abn/ansible-tailscale-admin, tests/unit/plugins/modules/test_tailscale_webhook.py: measured without webhooks",
	},
	{
		op: "* /tailnet/{tailnet}/settings", parts: []string{"body $.routeSelection string", "reply $.routeSelection string"},
		source: "TailnetSettings in tailnet_settings.go of the official Go client v2.12.0; the document at hand is older",
	},
	{
		op: "PATCH /tailnet/{tailnet}/settings", parts: []string{"body $.aclsExternalLink null"},
		source: "UpdateTailnetSettingsRequest in tailnet_settings.go of the official Go client, which lacks omitempty there",
	},
	{
		op: "POST /tailnet/{tailnet}/acl/validate", parts: []string{"body $ object"},
		source: "the document's prose: the body may be a policy file, which its schema has as a string",
	},
	{
		op: "PUT /tailnet/{tailnet}/keys/{keyId}", parts: []string{"body $.customClaimRules null", "body $.tags null"},
		source: "SetFederatedIdentityRequest and SetOAuthClientRequest in keys.go of the official Go client, which lack omitempty",
	},
	{
		op: "* /tailnet/{tailnet}/keys/{keyId}", parts: []string{"reply $.customClaimRules null"},
		source: "none: the simulator answers null for a federated identity without rules, which the client takes for none",
	},
	{
		op: "GET /tailnet/{tailnet}/logging/{logType}/stream", parts: []string{"reply $.gcsScopes null"},
		source: "none: the simulator answers null for a stream to another place, which the client takes for none",
	},
}
