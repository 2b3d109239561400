// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	apiextv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/causes"
	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
	"github.com/tailscale-gateway/tailscale-gateway/package/configuration"
	claims "github.com/tailscale-gateway/tailscale-gateway/package/configuration-claims"
)

// alone reports whether the provider works without our composite kinds: nobody installed the other packages.
func alone(f Facts) bool {
	_, ok := f.Packages.Value[products.Provider]
	return ok && len(f.Packages.Value) == 1
}

// composed reports whether the installation has, or should have, our composite kinds.
func composed(f Facts, _ Options) bool { return !alone(f) }

func installed(f Facts, o Options) result {
	switch {
	case f.Packages.Unknown != "":
		return unknown("which packages are installed", f.Packages.Unknown)
	case len(f.Packages.Value) == 0:
		return wrong("Tailscale Gateway is not installed: the cluster has no package of it", "", o.ours(f, charts.Install, ""))
	}
	return right(fmt.Sprintf("%d packages", len(f.Packages.Value)))
}

func provider(f Facts, o Options) result {
	if f.Packages.Unknown != "" {
		return unknown("whether the provider is healthy", f.Packages.Unknown)
	}
	return f.healthy(products.Provider, "It calls Tailscale's API and runs the proxies.", o)
}

func function(f Facts, o Options) result {
	switch {
	case f.Packages.Unknown != "":
		return unknown("whether the function is healthy", f.Packages.Unknown)
	case alone(f):
		return skip("our composite kinds (the provider is installed alone)")
	}
	return f.healthy(products.Function, "It composes what users write.", o)
}

func configurationPackage(f Facts, o Options) result {
	if f.Packages.Unknown != "" {
		return unknown("whether the configuration is healthy", f.Packages.Unknown)
	}
	_, other := f.Packages.Value[products.ConfigurationClaims]
	_, namespaced := f.Packages.Value[products.Configuration]
	if other && namespaced {
		return wrong("Both configurations are installed, of which a cluster can have one: "+products.Configuration+" and "+products.ConfigurationClaims,
			"Both define the same kinds.", "delete the one that your objects do not use")
	}
	if other {
		return f.healthy(products.ConfigurationClaims, "It defines the kinds that users write.", o)
	}
	return f.healthy(products.Configuration, "It defines the kinds that users write.", o)
}

// healthy checks that a package is there, installed and healthy. A package without requests for permissions has no field
// for them in its status, which is right.
func (f Facts) healthy(product, impact string, o Options) result {
	p, ok := f.Packages.Value[product]
	if !ok {
		return wrong("The package "+product+" is not installed", impact, o.ours(f, charts.Install, ""))
	}
	name := fmt.Sprintf("%s %s (%s)", strings.ToUpper(p.Kind[:1])+p.Kind[1:], p.Name, p.Image)
	for _, c := range []causes.Condition{p.Installed, p.Healthy} {
		if c.Status == "True" {
			continue
		}
		revisions := fmt.Sprintf("describe %srevisions.pkg.crossplane.io --selector=pkg.crossplane.io/package=%s", p.Kind, Quote(p.Name))
		if p.Kind != string(products.KindConfiguration) {
			revisions += fmt.Sprintf("; %s --namespace=%s --selector=pkg.crossplane.io/%s=%s --tail=20", o.kubectl("logs"), Quote(o.CrossplaneNamespace), p.Kind, Quote(p.Name))
		}
		return wrong(fmt.Sprintf("%s is not %s: %s", name, c.Type, said(c)), impact, o.kubectl(revisions))
	}
	return right(strings.TrimSpace(product + " " + tag(p.Image)))
}

// said returns the message of a condition, or else its reason.
func said(c causes.Condition) string {
	switch {
	case c.Message != "":
		return c.Message
	case c.Reason != "":
		return c.Reason
	}
	return "the condition is not set yet"
}

// A flavour is what a configuration defines.
type flavour struct {
	// definitions by name, which are true if the kind has claims.
	definitions  map[string]bool
	compositions []string
	// kinds are GROUP/RESOURCE of all that the API server must serve.
	kinds []string
}

// flavourOf returns what the installed configuration defines.
func flavourOf(f Facts) (flavour, error) {
	files, err := configuration.Files()
	if _, ok := f.Packages.Value[products.ConfigurationClaims]; ok {
		files, err = claims.Files()
	}
	if err != nil {
		return flavour{}, err
	}
	out := flavour{definitions: map[string]bool{}}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		switch path.Dir(file) {
		case "xrds":
			d := &apiextv1.CompositeResourceDefinition{}
			if err := yaml.Unmarshal(files[file], d); err != nil {
				return flavour{}, errors.Wrapf(err, "cannot parse %s", file)
			}
			out.definitions[d.GetName()] = d.OffersClaim()
			out.kinds = append(out.kinds, d.Spec.Group+"/"+d.Spec.Names.Plural)
			if d.OffersClaim() {
				out.kinds = append(out.kinds, d.Spec.Group+"/"+d.Spec.ClaimNames.Plural)
			}
		case "compositions":
			c := &apiextv1.Composition{}
			if err := yaml.Unmarshal(files[file], c); err != nil {
				return flavour{}, errors.Wrapf(err, "cannot parse %s", file)
			}
			out.compositions = append(out.compositions, c.GetName())
		}
	}
	activated, err := activatedKinds(files["activationpolicy.yaml"])
	out.kinds = append(out.kinds, activated...)
	return out, err
}

// providerKinds returns kinds of the provider that need no activation.
func providerKinds() []string {
	return []string{v1alpha1.Group + "/clusterproviderconfigs", v1alpha1.Group + "/providerconfigs"}
}

// activatedKinds returns the managed kinds that a configuration activates.
func activatedKinds(policy []byte) ([]string, error) {
	p := struct {
		Spec struct {
			Activate []string `json:"activate"`
		} `json:"spec"`
	}{}
	if err := yaml.Unmarshal(policy, &p); err != nil {
		return nil, errors.Wrap(err, "cannot parse the activation policy")
	}
	out := providerKinds()
	for _, name := range p.Spec.Activate {
		plural, group, _ := strings.Cut(name, ".")
		out = append(out, group+"/"+plural)
	}
	return out, nil
}

func broken(err error) result { return unknown("what the installation should have", err.Error()) }

func definitions(f Facts, o Options) result {
	if f.Packages.Unknown != "" || f.Definitions.Unknown != "" {
		return unknown("whether the composite kinds are established", f.Packages.Unknown+f.Definitions.Unknown)
	}
	want, err := flavourOf(f)
	if err != nil {
		return broken(err)
	}
	var missing, pending []string
	message := ""
	for _, name := range slices.Sorted(maps.Keys(want.definitions)) {
		d, ok := f.Definitions.Value[name]
		if !ok {
			missing = append(missing, name)
			continue
		}
		required := []causes.Condition{d.Established}
		if want.definitions[name] {
			required = append(required, d.Offered)
		}
		for _, c := range required {
			if c.Status != "True" {
				pending = append(pending, name)
				message = fmt.Sprintf("%s: %s", c.Type, said(c))
				break
			}
		}
	}
	const impact = "The API server refuses objects of the kinds until then."
	switch {
	case len(missing) > 0:
		return wrong("CompositeResourceDefinitions do not exist: "+listed(missing), impact, o.kubectl("describe configurationrevisions.pkg.crossplane.io"))
	case len(pending) > 0:
		return wrong(fmt.Sprintf("CompositeResourceDefinitions are not established: %s (%s)", listed(pending), message), impact, o.kubectl("describe xrd "+pending[0]))
	}
	return right(fmt.Sprintf("%d composite kinds", len(want.definitions)))
}

func compositions(f Facts, o Options) result {
	if f.Packages.Unknown != "" || f.Compositions.Unknown != "" {
		return unknown("whether the Compositions exist", f.Packages.Unknown+f.Compositions.Unknown)
	}
	want, err := flavourOf(f)
	if err != nil {
		return broken(err)
	}
	missing := slices.DeleteFunc(want.compositions, func(name string) bool { return f.Compositions.Value[name] })
	if len(missing) > 0 {
		return wrong("Compositions do not exist: "+listed(missing), "", o.kubectl("describe configurationrevisions.pkg.crossplane.io"))
	}
	return right("Compositions")
}

func kinds(f Facts, o Options) result {
	if f.Packages.Unknown != "" || f.Served.Unknown != "" {
		return unknown("whether the API server knows our kinds", f.Packages.Unknown+f.Served.Unknown)
	}
	want := providerKinds()
	if !alone(f) {
		v, err := flavourOf(f)
		if err != nil {
			return broken(err)
		}
		want = v.kinds
	}
	var missing []string
	for _, k := range want {
		if !f.Served.Value[k] {
			group, plural, _ := strings.Cut(k, "/")
			missing = append(missing, plural+"."+group)
		}
	}
	if len(missing) > 0 {
		return wrong("The API server does not know kinds: "+listed(missing), "The configuration activates the kinds of the provider.",
			o.kubectl("get managedresourcedefinitions.apiextensions.crossplane.io,managedresourceactivationpolicies.apiextensions.crossplane.io"))
	}
	return right("kinds")
}
