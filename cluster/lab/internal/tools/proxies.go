// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tools

import "strings"

// proxyVersions are the versions of tailscaled with which tests run proxies, in addition to the
// default version. The first and the last one are the oldest and the newest of tailscaled.Tested;
// nightly runs use all.
var proxyVersions = []string{"v1.86.2", "v1.90.9", "v1.92.5", "v1.94.2", "v1.96.5", "v1.98.10", "v1.100.0", newestProxy}

// newestProxy needs a separate toolchain. Its programs are only for tests: they lack Tailscale SSH
// and have another version of gVisor than upstream's image, because module proxies may lack the
// versions that upstream's build uses. They also lack a line that only Windows needs and that does
// not compile with this version of gVisor.
const newestProxy = "v1.104.5"

// Proxies returns the programs of Tailscale's container image in each version, oldest first. Each
// tool has the outputs that ProxyPrograms names.
func Proxies() []Tool {
	out := make([]Tool, len(proxyVersions))
	for i, v := range proxyVersions {
		name := "tailscale-" + minor(v)
		daemon, boot := ProxyPrograms(v)
		out[i] = Tool{
			Name: name, Folder: "../proxies/" + name, Version: v, Module: "tailscale.com", Optional: true,
			Tags:    "ts_include_cli,ts_kube,ts_package_container",
			LDFlags: "-X tailscale.com/version.longStamp=" + v[1:] + " -X tailscale.com/version.shortStamp=" + v[1:],
			Outputs: []Output{
				{Name: daemon, Package: "tailscale.com/cmd/tailscaled"},
				{Name: boot, Package: "tailscale.com/cmd/containerboot"},
			},
		}
		if v == newestProxy {
			out[i].Toolchain = "go1.27.4"
			out[i].Tags += ",ts_omit_ssh"
			out[i].Removed = map[string]string{"wgengine/netstack/netstack.go": "opts.ClockResolution"}
		}
	}
	return out
}

// ProxyPrograms returns the names of tailscaled and containerboot of a version of Proxies.
func ProxyPrograms(version string) (tailscaled, containerboot string) {
	return "tailscaled-" + minor(version), "containerboot-" + minor(version)
}

// minor returns the minor version of a version, such as 1.96 for v1.96.5.
func minor(version string) string {
	return strings.Join(strings.SplitN(version[1:], ".", 3)[:2], ".")
}
