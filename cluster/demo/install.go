// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
)

const quickstart = "quickstart"

type options struct {
	Version string `default:"v0.1.0-dev" help:"Version to build and install."`
	Flavour string `default:"namespaced" enum:"namespaced,claims"             help:"Install the kinds as composites in a namespace (namespaced), or as claims (claims). A running lab keeps its configuration."`
}

type demo struct {
	version string
	flavour string
	lab     *lab
}

func newDemo(o options) *demo {
	return &demo{version: o.Version, flavour: o.Flavour}
}

func (d *demo) installSteps() []step {
	return []step{
		{name: "bring up the lab: a cluster and a tailnet", action: d.labUp},
		{name: "build our packages", action: d.build},
		{name: "push them to the lab's registry", action: d.push},
		{name: "install Crossplane", action: d.crossplane},
		{name: "install Tailscale Gateway", action: d.tailscaleGateway},
	}
}

func (d *demo) labUp(ctx context.Context, _ *progress) error {
	if err := goRun(ctx, ".", "./cluster/lab", "up", "--install"); err != nil {
		return err
	}
	l, err := findLab(ctx)
	d.lab = l
	return err
}

func (d *demo) build(ctx context.Context, _ *progress) error {
	return runBuilder(ctx, "build", "--out="+d.built(), "--version="+d.version)
}

func (d *demo) push(ctx context.Context, _ *progress) error {
	return runBuilder(ctx, "push", "--from="+d.built(), "--version="+d.version, d.lab.registry+"/tailscale-gateway")
}

// built is the folder of built packages: no file of the demo stays in the tree.
func (d *demo) built() string { return filepath.Join(d.lab.cache, "xpkg") }

// crossplane installs Crossplane as the README does.
func (d *demo) crossplane(ctx context.Context, p *progress) error {
	return d.readmeCommands(ctx, p, "helm upgrade --install crossplane ",
		"crossplane --repo https://charts.crossplane.io/stable", d.lab.crossplaneChart+" --set=metrics.enabled=true")
}

// tailscaleGateway installs our chart and waits as the README does. For claims, Crossplane's command
// line installs the packages, which is the second way of the README.
func (d *demo) tailscaleGateway(ctx context.Context, p *progress) error {
	if err := d.checkFlavour(ctx); err != nil {
		return err
	}
	byCrossplane := d.flavour == products.FlavourClaims
	// The packages have their public names, so the lab tests the objects that users install.
	if err := d.readmeCommands(ctx, p, "helm upgrade --install tailscale-gateway ",
		"oci://"+products.Charts+"/"+charts.Install+" --version 0.1.0",
		fmt.Sprintf("package/charts/%s --set=registry=%s/tailscale-gateway,packages.version=%s,packages.enabled=%t", charts.Install, d.lab.clusterRegistry, d.version, !byCrossplane)); err != nil {
		return err
	}
	configuration := products.Configuration
	if byCrossplane {
		configuration = products.ConfigurationClaims
		if err := d.packages(ctx); err != nil {
			return err
		}
	}
	if err := d.readmeCommands(ctx, p, "kubectl wait configuration", products.Object(products.Configuration), products.Object(configuration)); err != nil {
		return err
	}
	if err := d.readmeCommands(ctx, p, "kubectl wait xrd"); err != nil {
		return err
	}
	missing, err := d.missingKinds(ctx)
	if err != nil {
		return err
	}
	if missing != "" {
		return errors.Errorf("the README's commands do not wait long enough: %s", missing)
	}
	// The README's commands do not wait for an upgrade, for the provider's and the function's pods, and
	// for the RBAC manager, which aggregates roles a moment later.
	if err := p.until(ctx, 5*time.Minute, d.unhealthyPackages); err != nil {
		return err
	}
	return p.until(ctx, time.Minute, func(ctx context.Context) (string, error) {
		return "", d.lab.check(ctx, "--envoy-gateway=skip")
	})
}

// packages installs or updates the packages by Crossplane's command line.
func (d *demo) packages(ctx context.Context) error {
	for _, pkg := range products.Packages(d.flavour) {
		ref, kind, object := products.Image(pkg.Name, d.version), string(pkg.Kind), products.Object(pkg.Name)
		current, err := d.lab.kubectl(ctx, nil, "get", kind+".pkg.crossplane.io", object, "--ignore-not-found", "-o=jsonpath={.spec.package}")
		if err != nil {
			return err
		}
		switch {
		case current == ref:
		case current != "":
			if _, err := d.lab.crossplane(ctx, "xpkg", "update", kind, ref, object); err != nil {
				return err
			}
		case pkg.Kind == products.KindConfiguration:
			// The others come as its dependencies.
			if _, err := d.lab.crossplane(ctx, "xpkg", "install", kind, ref); err != nil {
				return err
			}
		}
	}
	return nil
}

// missingKinds says which kinds cannot be written yet: Crossplane establishes them a
// moment after their configuration is healthy.
func (d *demo) missingKinds(ctx context.Context) (string, error) {
	var missing []string
	for _, kind := range []string{tailnets, endpoints, services, proxyGroups, tsGateways} {
		o, err := d.lab.get(ctx, "customresourcedefinition", kind, "")
		if err != nil {
			return "", err
		}
		if o == nil || o.condition("Established").Status != "True" {
			missing = append(missing, kind+" are not established yet")
		}
	}
	return strings.Join(missing, "; "), nil
}

// checkFlavour fails when the lab has the other configuration: both would claim the
// same kinds, and neither would let go.
func (d *demo) checkFlavour(ctx context.Context) error {
	for _, pkg := range products.All() {
		if pkg.Kind != products.KindConfiguration || pkg.Flavour == d.flavour {
			continue
		}
		o, err := d.lab.get(ctx, "configuration.pkg.crossplane.io", products.Object(pkg.Name), "")
		if err != nil {
			return err
		}
		if o != nil {
			return errors.Errorf("the lab was brought up with --flavour=%s: take it down first, or use that", pkg.Flavour)
		}
	}
	return nil
}

// unhealthyPackages says which packages are not yet installed and healthy at the
// wanted version.
func (d *demo) unhealthyPackages(ctx context.Context) (string, error) {
	var missing []string
	for _, pkg := range products.Packages(d.flavour) {
		o, err := d.lab.get(ctx, string(pkg.Kind)+".pkg.crossplane.io", products.Object(pkg.Name), "")
		if err != nil {
			return "", err
		}
		switch {
		case o == nil:
			missing = append(missing, pkg.Name+" is not there yet")
		case !strings.HasSuffix(o.Spec.Package, ":"+d.version):
			missing = append(missing, fmt.Sprintf("%s is %s", pkg.Name, o.Spec.Package))
		case o.Status.CurrentIdentifier != o.Spec.Package:
			missing = append(missing, pkg.Name+" is being unpacked")
		default:
			for _, t := range []string{"Installed", "Healthy"} {
				if c := o.condition(t); c.Status != "True" {
					missing = append(missing, fmt.Sprintf("%s is not %s %s", pkg.Name, t, c.Message))
					break
				}
			}
		}
	}
	return strings.Join(missing, "; "), nil
}

// An object is what the demo reads of any object.
type object struct {
	Spec struct {
		Package string `json:"package"`
	} `json:"spec"`
	Status struct {
		CurrentIdentifier string      `json:"currentIdentifier"`
		Conditions        []condition `json:"conditions"`
		Addresses         []struct {
			Value string `json:"value"`
		} `json:"addresses"`
		VIPServiceStatus struct {
			DNSName   string   `json:"dnsName"`
			Addresses []string `json:"addresses"`
		} `json:"vipServiceStatus"`
	} `json:"status"`
}

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func (o *object) condition(t string) condition {
	for _, c := range o.Status.Conditions {
		if c.Type == t {
			return c
		}
	}
	return condition{Type: t, Status: "Unknown"}
}

// get returns an object, or nil when there is none of that name or kind yet.
func (l *lab) get(ctx context.Context, kind, name, namespace string) (*object, error) {
	args := []string{"get", kind, name, "--ignore-not-found", "-o=json"}
	if namespace != "" {
		args = append(args, "--namespace="+namespace)
	}
	out, err := l.kubectl(ctx, nil, args...)
	if err != nil || strings.TrimSpace(out) == "" {
		return nil, err
	}
	o := &object{}
	return o, errors.Wrapf(json.Unmarshal([]byte(out), o), "cannot parse %s %q", kind, name)
}
