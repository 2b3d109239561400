// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package products lists the packages and images of the project. Builds, the demo, the
// plugin, tests and default images take names from here; a test checks that manifests,
// Compositions, examples and docs name no other products.
package products

import "strings"

// Owner is the organization at GitHub that owns the repository and publishes the products. Go code
// takes names with it from here. Other files and import paths repeat it: to rename it, change it here,
// replace it in the names that TestOwner then lists, and run make generate and make chart-goldens.
const Owner = "tailscale-gateway"

// Names with the owner.
const (
	// Module is the path of the Go module.
	Module = "github.com/" + Owner + "/tailscale-gateway"

	// Source is the URL of the repository.
	Source = "https://" + Module

	// Raw is the URL below which the files of the repository are, by their version and path.
	Raw = "https://raw.githubusercontent.com/" + Owner + "/tailscale-gateway"

	// Site is the URL below which the sites of all versions of the documentation are.
	Site = "https://" + Owner + ".github.io/tailscale-gateway"

	// Organization is the registry path of all products.
	Organization = "ghcr.io/" + Owner
)

// Charts is the registry path of the Helm charts.
const Charts = Organization + "/charts"

// Names of products: the last part of their repositories.
const (
	Agent               = "agent"
	Extension           = "extension"
	Provider            = "provider-tailscale"
	Function            = "function-tailscale"
	Configuration       = "configuration-tailscale-gateway"
	ConfigurationClaims = "configuration-tailscale-gateway-claims"
)

// A Kind is the kind of a product for Crossplane: a kind of package, or a plain image.
type Kind string

// Kinds of products.
const (
	KindImage         Kind = "image"
	KindProvider      Kind = "provider"
	KindFunction      Kind = "function"
	KindConfiguration Kind = "configuration"
)

// A Product is one package or image.
type Product struct {
	Name string
	Kind Kind

	// Main is the Go package of the runtime binary, or empty if the product has none.
	Main string

	// Tags are the build tags of the binary.
	Tags []string

	// Package is the folder of the package's YAML, or empty for a plain image.
	Package string

	// Flavour is the flavour of the cluster's kinds that a configuration defines, or empty.
	Flavour string
}

// Flavours of configurations.
const (
	FlavourNamespaced = "namespaced"
	FlavourClaims     = "claims"
)

// All returns all products. A package comes after its dependencies.
func All() []Product {
	return []Product{
		// Each proxy pod has an agent, so it has no more than it needs: no methods of managed resources,
		// which need controller-runtime, and, like others, no pages with traces of gRPC or events of
		// tailscaled's packages. These need html/template, which finds methods by name, so that the linker
		// keeps all.
		{Name: Agent, Kind: KindImage, Main: "./cmd/agent", Tags: []string{"agent", "grpcnotrace", "ts_omit_debugeventbus"}},
		{Name: Extension, Kind: KindImage, Main: "./extension", Tags: []string{"grpcnotrace"}},
		{Name: Provider, Kind: KindProvider, Main: "./cmd/provider", Package: "package/provider"},
		{Name: Function, Kind: KindFunction, Main: "./cmd/function", Tags: []string{"grpcnotrace"}, Package: "package/function"},
		{Name: Configuration, Kind: KindConfiguration, Package: "package/configuration", Flavour: FlavourNamespaced},
		{Name: ConfigurationClaims, Kind: KindConfiguration, Package: "package/configuration-claims", Flavour: FlavourClaims},
	}
}

// Packages returns the packages that an install of a flavour includes, in the order of an
// update: a package comes after its dependencies.
func Packages(flavour string) []Product {
	var out []Product
	for _, p := range All() {
		if p.Package != "" && (p.Flavour == "" || p.Flavour == flavour) {
			out = append(out, p)
		}
	}
	return out
}

// Tailscale is the image of tailscaled in proxies that set no image. It must contain containerboot.
const Tailscale = "docker.io/tailscale/tailscale:v1.102.5"

// Image returns the repository of a product with a tag.
func Image(name, tag string) string { return Organization + "/" + name + ":" + tag }

// Digests are the digests of images by which a release names them, as NAME=sha256:... separated by
// commas. The linker sets them for packages of a release: its images are built before. Other builds
// name images by tag.
var Digests string

// Belonging returns the image of a product that belongs to this build, in a registry: by digest if it
// is one of Digests, and otherwise by the tag of the version.
func Belonging(registry, name, version string) string {
	for entry := range strings.SplitSeq(Digests, ",") {
		if digest, ok := strings.CutPrefix(entry, name+"="); ok {
			return registry + "/" + name + "@" + digest
		}
	}
	return registry + "/" + name + ":" + version
}

// Object returns the name that Crossplane gives to a package installed from its repository: the
// path with dashes.
func Object(name string) string { return Owner + "-" + name }
