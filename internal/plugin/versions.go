// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"text/tabwriter"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/check"
	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/internal/text"
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
)

type versionCmd struct {
	CrossplaneNamespace   string `default:"crossplane-system" help:"Namespace of Crossplane and the provider." group:"Names"`
	CrossplaneAccount     string `default:"crossplane" help:"Service account that Crossplane runs as." group:"Names"`
	EnvoyGatewayNamespace string `default:"envoy-gateway-system" help:"Namespace of Envoy Gateway." group:"Names"`
	ExtensionNamespace    string `default:"envoy-gateway-system" help:"Namespace of the extension." group:"Names"`

	Client bool   `help:"Print the version of the plugin alone, without asking the cluster."`
	Output string `short:"o" default:"table" enum:"table,json,yaml" help:"Format: table, json or yaml." placeholder:"FORMAT"`
}

const exampleVersion = "kubectl tailscale-gateway version"

// Help returns the long help.
func (*versionCmd) Help() string {
	return `The command prints the versions of all components: those of the project, and those that it runs on. Components that are not installed have no line, and those that you may not read are unknown.

Example:

    ` + exampleVersion + `

Exit codes: 0, or 2 if the command failed.`
}

// A componentVersion is the version of a component. Its fields are stable.
type componentVersion struct {
	Component string `json:"component"`
	Version   string `json:"version"`

	// Image is the whole reference, if the component has one.
	Image string `json:"image,omitempty"`

	// Unknown says why the version is not known.
	Unknown string `json:"unknown,omitempty"`
}

// A versionList is what the command version prints.
type versionList struct {
	Versions []componentVersion `json:"versions"`
}

// Run prints the versions.
func (c *versionCmd) Run(s *session) error {
	l := versionList{Versions: []componentVersion{{Component: "plugin", Version: version.Version}}}
	if !c.Client {
		kube, err := s.kube()
		if err != nil {
			return err
		}
		server, err := s.server()
		if err != nil {
			return err
		}
		r := &reader{ctx: s.ctx, kube: kube, server: server, options: check.Options{
			CrossplaneNamespace: c.CrossplaneNamespace, CrossplaneAccount: c.CrossplaneAccount,
			EnvoyGatewayNamespace: c.EnvoyGatewayNamespace, ExtensionNamespace: c.ExtensionNamespace,
		}}
		more, err := r.versions()
		if err != nil {
			return err
		}
		l.Versions = append(l.Versions, more...)
	}
	if c.Output != "table" {
		return encode(s.out, c.Output, l)
	}
	t := tabwriter.NewWriter(s.out, 0, 0, 3, ' ', 0)
	for _, v := range l.Versions {
		shown := v.Version
		if v.Unknown != "" {
			shown = "unknown: " + v.Unknown
		}
		// Tenants choose images of proxies, of which the name is in the component.
		fmt.Fprintln(t, Quoted(text.Cut(v.Component, maxText))+"\t"+Quoted(text.Cut(shown, maxText))+"\t"+Quoted(text.Cut(v.Image, maxText)))
	}
	return errors.Wrap(t.Flush(), "cannot print")
}

// versions returns the versions of all components of the cluster.
func (r *reader) versions() ([]componentVersion, error) {
	kubernetes := ask(r, r.version)
	if r.failure != nil {
		return nil, r.failure
	}
	out := []componentVersion{{Component: "kubernetes", Version: kubernetes.Value, Unknown: kubernetes.Unknown}}
	out = append(out, r.crossplaneVersions()...)
	packages := ask(r, r.packages)
	if packages.Unknown != "" {
		out = append(out, componentVersion{Component: "packages", Unknown: packages.Unknown})
	}
	for _, p := range products.All() {
		if found, ok := packages.Value[p.Name]; ok {
			out = append(out, componentVersion{Component: p.Name, Version: tagOf(found.Image), Image: found.Image})
		}
	}
	for _, d := range []struct{ component, namespace, name, chart string }{
		{"extension", r.options.ExtensionNamespace, charts.Extension, charts.Extension},
		{check.EnvoyGatewayDeployment, r.options.EnvoyGatewayNamespace, check.EnvoyGatewayDeployment, check.EnvoyGatewayChart},
	} {
		found := r.deployment(d.namespace, d.name, d.chart)
		switch {
		case found.Unknown != "":
			out = append(out, componentVersion{Component: d.component, Unknown: found.Unknown})
		case found.Value != nil:
			out = append(out, componentVersion{Component: d.component, Version: check.Version(found.Value), Image: imageOf(found.Value)})
		}
	}
	crds := ask(r, r.crds)
	if crds.Unknown != "" {
		out = append(out, componentVersion{Component: "gateway-api", Unknown: crds.Unknown})
	} else if bundle := crds.Value["gateways."+routeKind.Group].Bundle; bundle != "" {
		out = append(out, componentVersion{Component: "gateway-api", Version: bundle})
	}
	out = append(out, r.proxyVersions()...)
	return out, r.failure
}

func (r *reader) crossplaneVersions() []componentVersion {
	found := ask(r, func() ([]appsv1.Deployment, error) {
		l := &appsv1.DeploymentList{}
		err := r.kube.List(r.ctx, l, client.InNamespace(r.options.CrossplaneNamespace))
		return l.Items, err
	})
	if found.Unknown != "" {
		return []componentVersion{{Component: "crossplane", Unknown: found.Unknown}}
	}
	for n := range found.Value {
		if d := &found.Value[n]; d.Spec.Template.Spec.ServiceAccountName == r.options.CrossplaneAccount {
			return []componentVersion{{Component: "crossplane", Version: check.Version(d), Image: imageOf(d)}}
		}
	}
	return nil
}

// proxyVersions returns the images that proxies run, each once.
func (r *reader) proxyVersions() []componentVersion {
	found := ask(r, func() ([]string, error) {
		images := map[string]bool{}
		err := pageOf(r.ctx, r.kube, func() *appsv1.StatefulSetList { return &appsv1.StatefulSetList{} }, func(l *appsv1.StatefulSetList) {
			for n := range l.Items {
				pod := l.Items[n].Spec.Template.Spec
				for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
					images[c.Image] = true
				}
			}
		}, client.HasLabels{meta.LabelEndpoints})
		return sortedKeys(images), err
	})
	if found.Unknown != "" {
		return []componentVersion{{Component: "proxies", Unknown: found.Unknown}}
	}
	var out []componentVersion
	for _, image := range found.Value {
		out = append(out, componentVersion{Component: "proxies: " + check.Product(image), Version: tagOf(image), Image: image})
	}
	return out
}

func imageOf(d *appsv1.Deployment) string {
	if c := d.Spec.Template.Spec.Containers; len(c) > 0 {
		return c[0].Image
	}
	return ""
}

// tagOf returns the tag of an image, or else its digest.
func tagOf(image string) string {
	name, digest, _ := strings.Cut(path.Base(image), "@")
	if _, tag, ok := strings.Cut(name, ":"); ok {
		return tag
	}
	return digest
}
