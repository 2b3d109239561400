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
		at("GET", tailnetPath+"/devices", "devices:core", (*call).listDevices),
		at("GET", devicePath, "devices:core", (*call).getDevice),
		at("DELETE", devicePath, "devices:core", (*call).deleteDevice),
		at("POST", devicePath+"/authorized", "devices:core", (*call).authorizeDevice),
		at("POST", devicePath+"/expire", "devices:core", (*call).expireDevice),
		at("POST", devicePath+"/name", "devices:core", (*call).nameDevice),
		at("POST", devicePath+"/tags", "devices:core", (*call).tagDevice),
		at("POST", devicePath+"/key", "devices:core", (*call).setDeviceKey),
		at("POST", devicePath+"/ip", "devices:core", (*call).setDeviceIP),
		at("GET", devicePath+"/routes", "devices:routes", (*call).getRoutes),
		at("POST", devicePath+"/routes", "devices:routes", (*call).setRoutes),
		// Reading attributes works on every plan.
		at("GET", devicePath+"/attributes", "devices:posture_attributes", (*call).getAttributes),
		at("POST", devicePath+"/attributes/{key}", "devices:posture_attributes", (*call).setAttribute).of(PostureAttributes),
		at("DELETE", devicePath+"/attributes/{key}", "devices:posture_attributes", (*call).deleteAttribute).of(PostureAttributes),
		at("PATCH", tailnetPath+"/device-attributes", "devices:posture_attributes", (*call).patchAttributes).of(PostureAttributes),
	}
}

// serviceRoutes adds the routes of services. Those about hosts need the scopes services and
// devices:core, even to read (OpenAPI: listServiceHosts, getServiceDeviceApproval).
func serviceRoutes() []route {
	rs := []route{
		at("GET", tailnetPath+"/services/{service}/devices", "services", (*call).listHosts).with("devices:core").writing(),
		at("GET", approvalPath, "services", (*call).getApproval).with("devices:core").writing(),
		at("POST", approvalPath, "services", (*call).setApproval).with("devices:core"),
	}
	// The Go clients say vip-services, the OpenAPI document says services.
	for _, p := range []string{tailnetPath + "/vip-services", tailnetPath + "/services"} {
		rs = append(rs,
			at("GET", p, "services", (*call).listServices),
			at("GET", p+"/{service}", "services", (*call).getService),
			at("PUT", p+"/{service}", "services", (*call).putService),
			at("DELETE", p+"/{service}", "services", (*call).deleteService),
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
		at("GET", tailnetPath+"/acl", "policy_file", (*call).getPolicy),
		at("POST", tailnetPath+"/acl", "policy_file", (*call).setPolicy),
		at("POST", tailnetPath+"/acl/validate", "policy_file:read", (*call).validatePolicy),
		at("POST", tailnetPath+"/acl/preview", "policy_file:read", (*call).previewPolicy),
	}
	for i := range rs {
		rs[i] = rs[i].with("devices:posture_attributes:read", "devices:core:read")
	}
	return rs
}

func dnsRoutes() []route {
	const dns = tailnetPath + "/dns"
	return []route{
		at("GET", dns+"/nameservers", "dns", (*call).getNameservers),
		at("POST", dns+"/nameservers", "dns", (*call).setNameservers),
		at("GET", dns+"/preferences", "dns", (*call).getPreferences),
		at("POST", dns+"/preferences", "dns", (*call).setPreferences),
		at("GET", dns+"/searchpaths", "dns", (*call).getSearchPaths),
		at("POST", dns+"/searchpaths", "dns", (*call).setSearchPaths),
		at("GET", dns+"/split-dns", "dns", (*call).getSplitDNS),
		at("PUT", dns+"/split-dns", "dns", (*call).setSplitDNS),
		at("PATCH", dns+"/split-dns", "dns", (*call).patchSplitDNS),
		at("GET", dns+"/configuration", "dns", (*call).getDNSConfiguration),
		at("POST", dns+"/configuration", "dns", (*call).setDNSConfiguration),
	}
}

func loggingRoutes() []route {
	return []route{
		at("GET", tailnetPath+"/logging/configuration", "logs:configuration:read", (*call).listAuditLog),
		at("GET", tailnetPath+"/logging/network", "logs:network", (*call).listFlowLogs).of(NetworkFlowLogs),
		at("GET", logstreamPath, "log_streaming", (*call).getLogstream).of(LogStreaming),
		at("PUT", logstreamPath, "log_streaming", (*call).setLogstream).of(LogStreaming),
		at("DELETE", logstreamPath, "log_streaming", (*call).deleteLogstream).of(LogStreaming),
		at("GET", logstreamPath+"/status", "log_streaming", (*call).getLogstreamStatus).of(LogStreaming),
		at("POST", externalID, "log_streaming", (*call).createExternalID).of(LogStreaming),
		at("POST", externalID+"/{id}/validate-aws-trust-policy", "log_streaming", (*call).validateTrustPolicy).of(LogStreaming),
	}
}

func otherRoutes() []route {
	return []route{
		// The type of a key determines the required scope.
		at("GET", tailnetPath+"/keys", "", (*call).listAnyKeys),
		at("POST", tailnetPath+"/keys", "", (*call).createAnyKey),
		at("GET", tailnetPath+"/keys/{key}", "", (*call).getAnyKey),
		at("PUT", tailnetPath+"/keys/{key}", "", (*call).setTrust),
		at("DELETE", tailnetPath+"/keys/{key}", "", (*call).deleteAnyKey),
		// Settings are authorised one by one.
		at("GET", tailnetPath+"/settings", "", (*call).getSettings),
		at("PATCH", tailnetPath+"/settings", "", (*call).patchSettings),
		at("GET", tailnetPath+"/contacts", "account_settings", (*call).getContacts),
		at("PATCH", tailnetPath+"/contacts/{type}", "account_settings", (*call).patchContact),
		at("GET", apiRoot+"/organizations/{organization}/tailnets", "tailnets", (*call).listTailnets),
		at("POST", apiRoot+"/organizations/{organization}/tailnets", "tailnets", (*call).createTailnet),
		at("DELETE", tailnetPath, "all", (*call).deleteTailnet),
		at("GET", tailnetPath+"/users", "users", (*call).listUsers),
		at("GET", apiRoot+"/users/{user}", "users", (*call).getUser),
		at("GET", tailnetPath+"/webhooks", "webhooks", (*call).listWebhooks),
		at("POST", tailnetPath+"/webhooks", "webhooks", (*call).createWebhook),
		at("GET", webhookPath, "webhooks", (*call).getWebhook),
		at("PATCH", webhookPath, "webhooks", (*call).patchWebhook),
		at("DELETE", webhookPath, "webhooks", (*call).deleteWebhook),
		at("POST", webhookPath+"/rotate", "webhooks", (*call).rotateWebhook),
		at("POST", webhookPath+"/test", "webhooks", (*call).testWebhook),
		at("GET", tailnetPath+"/posture/integrations", "feature_settings", (*call).listPostures).of(PostureIntegrations),
		at("POST", tailnetPath+"/posture/integrations", "feature_settings", (*call).createPosture).of(PostureIntegrations),
		at("GET", posturePath, "feature_settings", (*call).getPosture).of(PostureIntegrations),
		at("PATCH", posturePath, "feature_settings", (*call).patchPosture).of(PostureIntegrations),
		at("DELETE", posturePath, "feature_settings", (*call).deletePosture).of(PostureIntegrations),
	}
}
