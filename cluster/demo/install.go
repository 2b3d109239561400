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
)

const (
	crossplaneNamespace = "crossplane-system"
	quickstart          = "quickstart"
)

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
		{name: "bring up the lab: a cluster and a tailnet", do: d.labUp},
		{name: "build our packages", do: d.build},
		{name: "push them to the lab's registry", do: d.push},
		{name: "install Crossplane by its chart", do: d.crossplane},
		{name: "apply permissions and runtime config", do: d.permissions},
		{name: "install our packages by crossplane xpkg install", do: d.install},
	}
}

func (d *demo) labUp(ctx context.Context, _ *progress) error {
	if err := goRun(ctx, "./cluster/lab", "up", "--install"); err != nil {
		return err
	}
	l, err := findLab(ctx)
	d.lab = l
	return err
}

func (d *demo) build(ctx context.Context, _ *progress) error {
	return xpkg(ctx, "build", "--out="+d.packages(), "--version="+d.version)
}

func (d *demo) push(ctx context.Context, _ *progress) error {
	return xpkg(ctx, "push", "--from="+d.packages(), "--version="+d.version, d.lab.registry+"/tailscale-gateway")
}

// packages is the folder of built packages: no file of the demo stays in the tree.
func (d *demo) packages() string { return filepath.Join(d.lab.cache, "xpkg") }

func (d *demo) crossplane(ctx context.Context, p *progress) error {
	p.waiting("Crossplane's pods")
	_, err := d.lab.helm(ctx, "upgrade", "--install", "crossplane", d.lab.crossplaneChart,
		"--namespace", crossplaneNamespace, "--create-namespace", "--set=metrics.enabled=true", "--wait", "--timeout=5m")
	return err
}

func (d *demo) permissions(ctx context.Context, p *progress) error {
	if _, err := d.lab.kubectl(ctx, nil, "apply", "--server-side", "-f", "cluster/manifests/rbac.yaml", "-f", "cluster/manifests/runtime.yaml",
		"-f", "cluster/manifests/networkpolicies.yaml", "-f", "cluster/manifests/tenants.yaml",
		"-f", "cluster/manifests/admission.yaml", "-f", "cluster/manifests/admission-extension.yaml"); err != nil {
		return err
	}
	if _, err := d.lab.kubectl(ctx, []byte(fmt.Sprintf(imageConfig, products.Organization, d.lab.clusterRegistry, d.lab.clusterRegistry)), "apply", "--server-side", "-f", "-"); err != nil {
		return err
	}
	// The RBAC manager aggregates the role a moment later.
	return p.until(ctx, time.Minute, func(ctx context.Context) (string, error) {
		_, err := output(ctx, nil, d.lab.env(), d.lab.installcheckBin)
		return "", err
	})
}

// imageConfig makes Crossplane take our packages from the lab's registry: what
// is tested is what is shipped, under its public name. Crossplane looks for a
// package's runtime config under the name that it was rewritten to, so the one of
// runtime.yaml is named again.
const imageConfig = `apiVersion: pkg.crossplane.io/v1beta1
kind: ImageConfig
metadata:
  name: tailscale-gateway-lab
spec:
  matchImages:
  - prefix: %s
  rewriteImage:
    prefix: %s/tailscale-gateway
---
apiVersion: pkg.crossplane.io/v1beta1
kind: ImageConfig
metadata:
  name: tailscale-gateway-lab-provider
spec:
  matchImages:
  - prefix: %s/tailscale-gateway/provider-tailscale
  runtime:
    configRef:
      name: tailscale-gateway-provider
`

func (d *demo) install(ctx context.Context, p *progress) error {
	if err := d.checkFlavour(ctx); err != nil {
		return err
	}
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
	if err := p.until(ctx, 5*time.Minute, d.unhealthyPackages); err != nil {
		return err
	}
	return p.until(ctx, time.Minute, d.missingKinds)
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
