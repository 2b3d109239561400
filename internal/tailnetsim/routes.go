// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

// A route is one method of the API. The scope is that of the OpenAPI document; a GET is also
// allowed with scope:read. Without a scope, the handler decides.
type route struct {
	method, path, scope string
	serve               func(*call)
	// extraScopes are further scopes that the call needs. Each is satisfied by the scope
	// that includes it: devices:core satisfies devices:core:read.
	extraScopes []string
	// full is whether a GET needs the scope itself, not its :read part.
	full bool
	// feature of the plan that the call needs, if any.
	feature Feature
}

// with returns the route with further scopes.
func (rt route) with(scopes ...string) route {
	rt.extraScopes = scopes
	return rt
}

// of returns the route as a part of a feature.
func (rt route) of(f Feature) route {
	rt.feature = f
	return rt
}

// writing returns the route as one that needs its whole scope.
func (rt route) writing() route {
	rt.full = true
	return rt
}

func at(method, path, scope string, serve func(*call)) route {
	return route{method: method, path: path, scope: scope, serve: serve}
}

const (
	apiRoot       = "/api/v2"
	tailnetPath   = apiRoot + "/tailnet/{tailnet}"
	devicePath    = apiRoot + "/device/{device}"
	webhookPath   = apiRoot + "/webhooks/{webhook}"
	posturePath   = apiRoot + "/posture/integrations/{integration}"
	approvalPath  = tailnetPath + "/services/{service}/device/{device}/approved"
	logstreamPath = tailnetPath + "/logging/{type}/stream"
	externalID    = tailnetPath + "/aws-external-id"
)

func routes() []route {
	rs := deviceRoutes()
	rs = append(rs, serviceRoutes()...)
	rs = append(rs, policyRoutes()...)
	rs = append(rs, dnsRoutes()...)
	rs = append(rs, loggingRoutes()...)
	return append(rs, otherRoutes()...)
}

func deviceRoutes() []route {
	return []route{
		at("GET", tailnetPath+"/devices", "devices:core", listDevices),
		at("GET", devicePath, "devices:core", getDevice),
		at("DELETE", devicePath, "devices:core", deleteDevice),
		at("POST", devicePath+"/authorized", "devices:core", authorizeDevice),
		at("POST", devicePath+"/expire", "devices:core", expireDevice),
		at("POST", devicePath+"/name", "devices:core", nameDevice),
		at("POST", devicePath+"/tags", "devices:core", tagDevice),
		at("POST", devicePath+"/key", "devices:core", setDeviceKey),
		at("POST", devicePath+"/ip", "devices:core", setDeviceIP),
		at("GET", devicePath+"/routes", "devices:routes", getRoutes),
		at("POST", devicePath+"/routes", "devices:routes", setRoutes),
		// Reading attributes works on every plan.
		at("GET", devicePath+"/attributes", "devices:posture_attributes", getAttributes),
		at("POST", devicePath+"/attributes/{key}", "devices:posture_attributes", setAttribute).of(PostureAttributes),
		at("DELETE", devicePath+"/attributes/{key}", "devices:posture_attributes", deleteAttribute).of(PostureAttributes),
		at("PATCH", tailnetPath+"/device-attributes", "devices:posture_attributes", patchAttributes).of(PostureAttributes),
	}
}

// serviceRoutes adds the routes of services. Those about hosts need the scopes services and
// devices:core, even to read (OpenAPI: listServiceHosts, getServiceDeviceApproval).
func serviceRoutes() []route {
	rs := []route{
		at("GET", tailnetPath+"/services/{service}/devices", "services", listHosts).with("devices:core").writing(),
		at("GET", approvalPath, "services", getApproval).with("devices:core").writing(),
		at("POST", approvalPath, "services", setApproval).with("devices:core"),
	}
	// The Go clients say vip-services, the OpenAPI document says services.
	for _, p := range []string{tailnetPath + "/vip-services", tailnetPath + "/services"} {
		rs = append(rs,
			at("GET", p, "services", listServices),
			at("GET", p+"/{service}", "services", getService),
			at("PUT", p+"/{service}", "services", putService),
			at("DELETE", p+"/{service}", "services", deleteService),
		)
	}
	return rs
}

// policyRoutes adds the routes of the policy file. They need scopes to read devices in addition
// to policy_file, because a policy may reference attributes of devices
// (abn/ansible-tailscale-admin, docs/troubleshooting.md, "403: the credential is valid and not
// authorised").
func policyRoutes() []route {
	rs := []route{
		at("GET", tailnetPath+"/acl", "policy_file", getPolicy),
		at("POST", tailnetPath+"/acl", "policy_file", setPolicy),
		at("POST", tailnetPath+"/acl/validate", "policy_file:read", validatePolicy),
		at("POST", tailnetPath+"/acl/preview", "policy_file:read", previewPolicy),
	}
	for i := range rs {
		rs[i] = rs[i].with("devices:posture_attributes:read", "devices:core:read")
	}
	return rs
}

func dnsRoutes() []route {
	const dns = tailnetPath + "/dns"
	return []route{
		at("GET", dns+"/nameservers", "dns", getNameservers),
		at("POST", dns+"/nameservers", "dns", setNameservers),
		at("GET", dns+"/preferences", "dns", getPreferences),
		at("POST", dns+"/preferences", "dns", setPreferences),
		at("GET", dns+"/searchpaths", "dns", getSearchPaths),
		at("POST", dns+"/searchpaths", "dns", setSearchPaths),
		at("GET", dns+"/split-dns", "dns", getSplitDNS),
		at("PUT", dns+"/split-dns", "dns", setSplitDNS),
		at("PATCH", dns+"/split-dns", "dns", patchSplitDNS),
		at("GET", dns+"/configuration", "dns", getDNSConfiguration),
		at("POST", dns+"/configuration", "dns", setDNSConfiguration),
	}
}

func loggingRoutes() []route {
	return []route{
		at("GET", tailnetPath+"/logging/configuration", "logs:configuration:read", listAuditLog),
		at("GET", tailnetPath+"/logging/network", "logs:network", listFlowLogs).of(NetworkFlowLogs),
		at("GET", logstreamPath, "log_streaming", getLogstream).of(LogStreaming),
		at("PUT", logstreamPath, "log_streaming", setLogstream).of(LogStreaming),
		at("DELETE", logstreamPath, "log_streaming", deleteLogstream).of(LogStreaming),
		at("GET", logstreamPath+"/status", "log_streaming", getLogstreamStatus).of(LogStreaming),
		at("POST", externalID, "log_streaming", createExternalID).of(LogStreaming),
		at("POST", externalID+"/{id}/validate-aws-trust-policy", "log_streaming", validateTrustPolicy).of(LogStreaming),
	}
}

func otherRoutes() []route {
	return []route{
		// The type of a key determines the required scope.
		at("GET", tailnetPath+"/keys", "", listAnyKeys),
		at("POST", tailnetPath+"/keys", "", createAnyKey),
		at("GET", tailnetPath+"/keys/{key}", "", getAnyKey),
		at("PUT", tailnetPath+"/keys/{key}", "", setTrust),
		at("DELETE", tailnetPath+"/keys/{key}", "", deleteAnyKey),
		// Settings are authorised one by one.
		at("GET", tailnetPath+"/settings", "", getSettings),
		at("PATCH", tailnetPath+"/settings", "", patchSettings),
		at("GET", tailnetPath+"/contacts", "account_settings", getContacts),
		at("PATCH", tailnetPath+"/contacts/{type}", "account_settings", patchContact),
		at("GET", apiRoot+"/organizations/{organization}/tailnets", "tailnets", listTailnets),
		at("POST", apiRoot+"/organizations/{organization}/tailnets", "tailnets", createTailnet),
		at("DELETE", tailnetPath, "all", deleteTailnet),
		at("GET", tailnetPath+"/users", "users", listUsers),
		at("GET", apiRoot+"/users/{user}", "users", getUser),
		at("GET", tailnetPath+"/webhooks", "webhooks", listWebhooks),
		at("POST", tailnetPath+"/webhooks", "webhooks", createWebhook),
		at("GET", webhookPath, "webhooks", getWebhook),
		at("PATCH", webhookPath, "webhooks", patchWebhook),
		at("DELETE", webhookPath, "webhooks", deleteWebhook),
		at("POST", webhookPath+"/rotate", "webhooks", rotateWebhook),
		at("POST", webhookPath+"/test", "webhooks", testWebhook),
		at("GET", tailnetPath+"/posture/integrations", "feature_settings", listPostures).of(PostureIntegrations),
		at("POST", tailnetPath+"/posture/integrations", "feature_settings", createPosture).of(PostureIntegrations),
		at("GET", posturePath, "feature_settings", getPosture).of(PostureIntegrations),
		at("PATCH", posturePath, "feature_settings", patchPosture).of(PostureIntegrations),
		at("DELETE", posturePath, "feature_settings", deletePosture).of(PostureIntegrations),
	}
}
