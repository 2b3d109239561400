// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"regexp"
	"strings"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
)

// plain matches words that a shell takes as they are.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+$`)

// Quote returns a word for a shell.
func Quote(s string) string {
	if plain.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func flags(name, value string) string {
	if value == "" {
		return ""
	}
	return " " + name + "=" + Quote(value)
}

// Kubectl returns the start of a kubectl command for the caller's cluster.
func (o Options) Kubectl() string {
	return "kubectl" + flags("--kubeconfig", o.Kubeconfig) + flags("--context", o.Context)
}

// kubectl returns a kubectl command for the caller's cluster.
func (o Options) kubectl(words string) string { return o.Kubectl() + " " + words }

// helm returns a command that installs or upgrades a release in the caller's cluster. It keeps all values that
// the release has.
func (o Options) helm(r Release, chart, extra string) string {
	out := "helm" + flags("--kubeconfig", o.Kubeconfig) + flags("--kube-context", o.Context) +
		" upgrade --install " + Quote(r.Name) + " " + chart + " --namespace=" + Quote(r.Namespace) + " --reset-then-reuse-values"
	if extra != "" {
		out += " " + extra
	}
	return out
}

// ours returns the command that installs or upgrades a chart of the project.
func (o Options) ours(f Facts, name, extra string) string {
	r, ok := f.Releases[name]
	if !ok {
		r = Release{Name: name, Namespace: o.CrossplaneNamespace}
		if name == charts.Extension {
			r.Namespace = o.ExtensionNamespace
		}
	}
	// The extension may be a part of the other release.
	if install, ok := f.Releases[charts.Install]; ok && name == charts.Extension && r == install {
		name, extra = charts.Install, strings.TrimSpace("--set="+charts.Extension+".enabled=true "+extra)
	}
	version := r.Version
	if version == "" {
		version = strings.TrimPrefix(o.Version, "v")
	}
	if strings.HasSuffix(version, "-dev") {
		return o.helm(r, charts.Folder+"/"+name, extra)
	}
	return o.helm(r, "oci://"+products.Charts+"/"+name+" --version="+Quote(version), extra)
}

// EnvoyGatewayChart is the name of Envoy Gateway's chart.
const EnvoyGatewayChart = "gateway-helm"

// envoyGatewaySource is where the chart is, and envoyGatewayVersion the version that tests run with.
const (
	envoyGatewaySource  = "oci://docker.io/envoyproxy/gateway-helm"
	envoyGatewayVersion = "v1.9.1"
)

// envoyGateway returns the command that installs or upgrades Envoy Gateway with our values.
func (o Options) envoyGateway(f Facts) string {
	r, ok := f.Releases[EnvoyGatewayChart]
	if !ok {
		r = Release{Name: "eg", Namespace: o.EnvoyGatewayNamespace}
	}
	version := r.Version
	if version == "" {
		version = envoyGatewayVersion
	}
	file := products.Source + "/releases/download/" + o.Version + "/envoy-gateway-values.yaml"
	if strings.HasSuffix(o.Version, "-dev") {
		file = "package/envoy-gateway/values.yaml"
	}
	return o.helm(r, envoyGatewaySource+" --version="+Quote(version), "--values="+file)
}
