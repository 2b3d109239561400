// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
	"github.com/tailscale-gateway/tailscale-gateway/package/kustomization"
)

// Roles of the chart whose permissions are checked.
const (
	roleCrossplane = "tailscale-gateway:aggregate-to-crossplane"
	roleProvider   = "tailscale-gateway:provider"
)

// Roles returns the names of the ClusterRoles that the chart always installs.
func Roles() []string {
	return []string{roleCrossplane, "tailscale-gateway:aggregate-scale-to-edit", roleProvider, "tailscale-gateway:gateway-extension"}
}

// Names of components with permissions.
const (
	nameCrossplane   = "Crossplane"
	nameProvider     = "The provider"
	nameEnvoyGateway = "Envoy Gateway"
	nameExtension    = "The extension"
)

// Required returns the permissions that service accounts should have.
func Required(o Options) ([]Rights, error) {
	out := []Rights{
		{Name: nameCrossplane, Namespace: o.CrossplaneNamespace, Account: o.CrossplaneAccount},
		{Name: nameProvider, Namespace: o.CrossplaneNamespace, Account: o.ProviderAccount},
	}
	for n, role := range []string{roleCrossplane, roleProvider} {
		required, err := permissions(role)
		if err != nil {
			return nil, err
		}
		out[n].Required = required
	}
	return out, nil
}

// RequiredByRoutes returns the permissions that routes to our kinds need.
func RequiredByRoutes(o Options) ([]Rights, error) {
	var out []Rights
	for _, r := range []struct {
		rules                    []byte
		name, namespace, account string
	}{
		{charts.EnvoyGateway, nameEnvoyGateway, o.EnvoyGatewayNamespace, EnvoyGatewayDeployment},
		{charts.ExtensionRules, nameExtension, o.ExtensionNamespace, charts.Extension},
	} {
		rules, err := parseRules(r.rules)
		if err != nil {
			return nil, err
		}
		out = append(out, Rights{Name: r.name, Namespace: r.namespace, Account: r.account, Required: single(rules)})
	}
	return out, nil
}

func parseRules(file []byte) ([]rbacv1.PolicyRule, error) {
	var out []rbacv1.PolicyRule
	return out, errors.Wrap(yaml.Unmarshal(file, &out), "cannot parse rules of the chart")
}

// permissions returns the single permissions of a ClusterRole of the chart, in its order.
func permissions(name string) ([]authv1.ResourceAttributes, error) {
	cr := &rbacv1.ClusterRole{}
	if err := kustomization.Get("ClusterRole", name, cr); err != nil {
		return nil, err
	}
	out := single(cr.Rules)
	if len(out) == 0 {
		return nil, errors.Errorf("ClusterRole %q grants nothing", name)
	}
	return out, nil
}

// named returns the objects of a rule. A rule without names means all objects.
func named(r rbacv1.PolicyRule) []string {
	if len(r.ResourceNames) == 0 {
		return []string{""}
	}
	return r.ResourceNames
}

// single returns the single permissions of rules, in their order.
func single(rules []rbacv1.PolicyRule) []authv1.ResourceAttributes {
	var out []authv1.ResourceAttributes
	for _, r := range rules {
		for _, g := range r.APIGroups {
			for _, res := range r.Resources {
				name, sub, _ := strings.Cut(res, "/")
				for _, v := range r.Verbs {
					for _, resourceName := range named(r) {
						out = append(out, authv1.ResourceAttributes{Group: g, Resource: name, Subresource: sub, Verb: v, Name: resourceName})
					}
				}
			}
		}
	}
	return out
}

// resource returns a resource as kubectl names it.
func resource(p authv1.ResourceAttributes) string {
	out := p.Resource
	if p.Group != "" {
		out += "." + p.Group
	}
	if p.Subresource != "" {
		out += "/" + p.Subresource
	}
	if p.Name != "" {
		out += " " + p.Name
	}
	return out
}

// lacking returns what a service account may not do, or why that is unknown.
func lacking(r Rights) (missing, unclear string) {
	if r.Unknown != "" {
		return "", fmt.Sprintf("whether %s has its permissions: %s", strings.Replace(r.Name, "The ", "the ", 1), r.Unknown)
	}
	if len(r.Missing) == 0 {
		return "", ""
	}
	var deeds []string
	for _, p := range r.Missing {
		deeds = append(deeds, p.Verb+" "+resource(p))
	}
	return fmt.Sprintf("%s (%s/%s) lacks %d of %d permissions: %s", r.Name, r.Namespace, r.Account, len(r.Missing), len(r.Required), listed(deeds)), ""
}

// permitted checks the permissions of components.
func permitted(f Facts, names []string, impact, fix string) result {
	out := result{}
	var missing []string
	for _, r := range f.Rights {
		if !slices.Contains(names, r.Name) {
			continue
		}
		m, u := lacking(r)
		if m != "" {
			missing = append(missing, m)
		}
		if u != "" {
			out.findings = append(out.findings, Finding{Status: Unknown, Summary: u})
		}
	}
	if len(missing) > 0 {
		out.findings = append(out.findings, Finding{Status: Wrong, Summary: strings.Join(missing, "; "), Impact: impact, Fix: fix})
	}
	return out
}

// chart checks that the chart is installed beside packages that came without it.
func chart(f Facts, o Options) result {
	if f.Roles.Unknown != "" {
		return unknown("whether the chart's roles exist", f.Roles.Unknown)
	}
	for _, p := range f.Policies {
		if p.Value.Policy != nil {
			return right("chart")
		}
	}
	if !o.Admission || slices.ContainsFunc(Roles(), func(name string) bool { return f.Roles.Value[name] }) || !known(f.Policies) {
		return right("chart")
	}
	return wrong("The chart "+charts.Install+" is not installed: neither its roles nor its admission policies exist",
		"Packages of Crossplane cannot contain these.", o.ours(f, charts.Install, "--set=packages.enabled=false"))
}

func known(policies map[string]Answer[Policy]) bool {
	for _, p := range policies {
		if p.Unknown != "" {
			return false
		}
	}
	return true
}

func roles(f Facts, o Options) result {
	const impact = "Crossplane composes, and the provider runs, only what these permit."
	fix := o.ours(f, charts.Install, "")
	if f.Roles.Unknown == "" {
		missing := slices.DeleteFunc(Roles(), func(name string) bool { return f.Roles.Value[name] })
		if len(missing) > 0 {
			return wrong("ClusterRoles do not exist: "+listed(missing), impact, fix)
		}
	}
	out := permitted(f, []string{nameCrossplane, nameProvider}, impact, fix)
	out.summary = "roles"
	return out
}

// admission checks that the policies of the chart exist, are equal to those of the chart, and are bound.
func admission(f Facts, o Options) result {
	names := []string{kustomization.PolicyInternalKinds}
	if routed(f, o) {
		names = append(names, kustomization.ExtensionPolicies...)
	}
	out := result{summary: "admission policies"}
	var faults []string
	for _, name := range names {
		p := f.Policies[name]
		if p.Unknown != "" {
			out.findings = append(out.findings, Finding{Status: Unknown, Summary: "whether ValidatingAdmissionPolicy " + name + " applies: " + p.Unknown})
			continue
		}
		fault, err := policyFault(name, p.Value)
		if err != nil {
			return broken(err)
		}
		if fault != "" {
			faults = append(faults, fault)
		}
	}
	if len(faults) > 0 {
		out.findings = append(out.findings, Finding{
			Status: Wrong, Summary: strings.Join(faults, "; "),
			Impact: "Without them, tenants with Crossplane's role crossplane-edit can act on other tenants' devices.",
			Fix:    o.ours(f, charts.Install, "--set=admission.enabled=true"),
		})
	}
	return out
}

// policyFault says what is wrong with a policy, or is empty.
func policyFault(name string, p Policy) (string, error) {
	want := &admissionv1.ValidatingAdmissionPolicy{}
	if err := kustomization.Get("ValidatingAdmissionPolicy", name, want); err != nil {
		return "", err
	}
	b := p.Binding
	switch {
	case p.Policy == nil:
		return fmt.Sprintf("ValidatingAdmissionPolicy %s does not exist", name), nil
	case !equality.Semantic.DeepEqual(content(p.Policy), content(want)):
		return fmt.Sprintf("ValidatingAdmissionPolicy %s is not that of this version", name), nil
	case b == nil:
		return fmt.Sprintf("ValidatingAdmissionPolicyBinding %s does not exist", name), nil
	case b.Spec.PolicyName != name || !slices.Contains(b.Spec.ValidationActions, admissionv1.Deny) || b.Spec.MatchResources != nil:
		return fmt.Sprintf("ValidatingAdmissionPolicyBinding %s does not deny everywhere", name), nil
	}
	return "", nil
}

// content returns the fields of a policy that the chart sets. The others have defaults of the API server.
func content(p *admissionv1.ValidatingAdmissionPolicy) any {
	var matched [][]string
	if m := p.Spec.MatchConstraints; m != nil {
		for _, r := range m.ResourceRules {
			matched = append(matched, r.APIGroups, r.Resources)
		}
	}
	return []any{matched, p.Spec.MatchConditions, p.Spec.Variables, p.Spec.Validations}
}
