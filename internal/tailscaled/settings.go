// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaled

import "strings"

// A Setting is a field of tailscaled's files, or a variable of its container, that proxies set. Versions
// that do not know one ignore it and do not say so.
type Setting struct {
	// Name is the field with its package and type in tailscale.com, or the variable.
	Name string

	// Source is the file or the folder of tailscale.com that has it.
	Source string

	// MinVersion is the first version that knows the setting, by the tags of tailscale.com. Empty means that
	// the oldest tested version knows it.
	MinVersion string

	// Impact is what happens with an older version. Empty without MinVersion.
	Impact string
}

// Folders and files of tailscale.com.
const (
	sourceConfig  = "ipn/conf.go"
	sourceServe   = "ipn/serve.go"
	sourceIngress = "kube/ingressservices/ingressservices.go"
	sourceEgress  = "kube/egressservices/egressservices.go"
	sourceBoot    = "cmd/containerboot"
	sourceStack   = "wgengine/netstack"
	sourceACME    = "ipn/ipnlocal,feature/acme"
	sourceFilter  = "util/linuxfw,wgengine/router"
)

// proxyProtocol is the setting that has tailscaled send the addresses of clients.
const proxyProtocol = "ipn.TCPPortHandler.ProxyProtocol"

// Settings returns all settings of proxies. A test checks that there is no other one, and compares
// them with the sources of tailscale.com.
func Settings() []Setting {
	return []Setting{
		{Name: "ipn.ConfigVAlpha.Version", Source: sourceConfig},
		{Name: "ipn.ConfigVAlpha.Locked", Source: sourceConfig},
		{Name: "ipn.ConfigVAlpha.ServerURL", Source: sourceConfig},
		{Name: "ipn.ConfigVAlpha.AuthKey", Source: sourceConfig},
		{Name: "ipn.ConfigVAlpha.Hostname", Source: sourceConfig},
		{Name: "ipn.ConfigVAlpha.AcceptDNS", Source: sourceConfig},
		{Name: "ipn.ConfigVAlpha.AcceptRoutes", Source: sourceConfig},
		{Name: "ipn.ConfigVAlpha.AdvertiseServices", Source: sourceConfig},
		{Name: "ipn.ConfigVAlpha.StaticEndpoints", Source: sourceConfig},
		{Name: "ipn.ServeConfig.Services", Source: sourceServe},
		{Name: "ipn.ServiceConfig.TCP", Source: sourceServe},
		{Name: "ipn.ServiceConfig.Tun", Source: sourceServe},
		{Name: "ipn.TCPPortHandler.TCPForward", Source: sourceServe},
		{Name: "ipn.TCPPortHandler.TerminateTLS", Source: sourceServe},
		{
			Name: proxyProtocol, Source: sourceServe, MinVersion: "1.92.0",
			Impact: "backends do not get the addresses of clients",
		},
		{Name: "ingressservices.Config.IPv4Mapping", Source: sourceIngress},
		{Name: "ingressservices.Config.IPv6Mapping", Source: sourceIngress},
		{Name: "ingressservices.Mapping.TailscaleServiceIP", Source: sourceIngress},
		{Name: "ingressservices.Mapping.ClusterIP", Source: sourceIngress},
		{Name: "egressservices.Config.TailnetTarget", Source: sourceEgress},
		{Name: "egressservices.Config.Ports", Source: sourceEgress},
		{Name: "egressservices.TailnetTarget.IP", Source: sourceEgress},
		{Name: "egressservices.PortMap.Protocol", Source: sourceEgress},
		{Name: "egressservices.PortMap.MatchPort", Source: sourceEgress},
		{Name: "egressservices.PortMap.TargetPort", Source: sourceEgress},
		{Name: "POD_IP", Source: sourceBoot},
		{Name: "POD_IPS", Source: sourceBoot},
		{Name: "POD_UID", Source: sourceBoot},
		{Name: "PORT", Source: "cmd/tailscaled"},
		{
			Name: "TS_BOOT_TIMEOUT", Source: sourceBoot, MinVersion: "1.102.3",
			Impact: "containerboot exits when it has not logged in after 60 s, and kubelet starts it again, with growing pauses; the node keeps its identity",
		},
		{Name: "TS_DEBUG_ACME_DIRECTORY_URL", Source: sourceACME},
		{
			Name: "TS_DEBUG_ACME_FORCE_RENEWAL", Source: sourceACME, MinVersion: "1.92.5",
			Impact: "an order with another certificate authority than Let's Encrypt names the previous certificate, which it may refuse",
		},
		{Name: "TS_DEBUG_FIREWALL_MODE", Source: sourceFilter},
		{Name: "TS_EGRESS_PROXIES_CONFIG_PATH", Source: sourceBoot},
		{Name: "TS_ENABLE_HEALTH_CHECK", Source: sourceBoot},
		{Name: "TS_ENABLE_METRICS", Source: sourceBoot},
		{
			Name: "TS_EXPERIMENTAL_SERVICE_AUTO_ADVERTISEMENT", Source: sourceBoot, MinVersion: "1.96.0",
			Impact: "nothing: containerboot advertises no services by itself",
		},
		{Name: "TS_EXPERIMENTAL_VERSIONED_CONFIG_DIR", Source: sourceBoot},
		{Name: "TS_INGRESS_PROXIES_CONFIG_PATH", Source: sourceBoot},
		{Name: "TS_KUBE_SECRET", Source: sourceBoot},
		{Name: "TS_LOCAL_ADDR_PORT", Source: sourceBoot},
		{
			Name: "TS_NETSTACK_KEEPALIVE_IDLE", Source: sourceStack, MinVersion: "1.98.0",
			Impact: "tailscaled notices after more than two hours that a client has vanished",
		},
		{
			Name: "TS_NETSTACK_KEEPALIVE_INTERVAL", Source: sourceStack, MinVersion: "1.98.0",
			Impact: "the same",
		},
		{Name: "TS_SERVE_CONFIG", Source: sourceBoot},
		{Name: "TS_SOCKET", Source: sourceBoot},
		{Name: "TS_STATE_DIR", Source: sourceBoot},
		{Name: "TS_USERSPACE", Source: sourceBoot},
	}
}

// SettingsTable returns the settings that an older tested version ignores, as a table in Markdown.
func SettingsTable() string {
	b := &strings.Builder{}
	b.WriteString("| setting | since | with an older version |\n|---|---|---|\n")
	for _, s := range Settings() {
		if s.MinVersion != "" {
			b.WriteString("| `" + s.Name + "` | " + s.MinVersion + " | " + s.Impact + " |\n")
		}
	}
	return b.String()
}

// knows reports whether a version of tailscaled knows a setting. A version of another form counts as a
// current one.
func knows(version, setting string) bool {
	v, ok := release(version)
	if !ok {
		return true
	}
	for _, s := range Settings() {
		if minVersion, ok := release(s.MinVersion); ok && s.Name == setting {
			return !less(v, minVersion)
		}
	}
	return true
}
