// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command installcheck says what a cluster lacks to run Tailscale Gateway:
// Crossplane and its permissions, and on request what routes need. It only reads.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/alecthomas/kong"
	authv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/package/kustomization"
)

type cli struct {
	Kubeconfig     string `env:"KUBECONFIG"           help:"Kubeconfig of the cluster to check. Default: that of kubectl." type:"path"`
	Namespace      string `default:"crossplane-system" help:"Namespace of Crossplane."`
	ServiceAccount string `default:"crossplane"        help:"Service account that Crossplane runs as."`
	Provider       string `default:"${provider}" help:"Service account that the provider runs as."`

	Admission bool `default:"true" help:"Check the admission policies that protect internal kinds. Disable it if the chart tailscale-gateway is installed with admission.enabled=false on purpose." negatable:""`

	EnvoyGateway          bool   `help:"Also check the requirements of routes: Envoy Gateway and the extension."`
	EnvoyGatewayNamespace string `default:"envoy-gateway-system" help:"Namespace of Envoy Gateway."`
	ExtensionNamespace    string `default:"envoy-gateway-system" help:"Namespace of the extension."`
}

// Roles of the manifest whose permissions are checked.
const (
	roleCrossplane = "tailscale-gateway:aggregate-to-crossplane"
	roleProvider   = "tailscale-gateway:provider"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	c := &cli{}
	k := kong.Parse(c,
		kong.Name("installcheck"),
		kong.Vars{"provider": products.Provider},
		kong.Description("Check that a cluster has what Tailscale Gateway needs, and name each thing that is missing with its fix. Exits with 1 when something is missing."))
	k.FatalIfErrorf(c.run(ctx, os.Stdout))
}

func (c *cli) run(ctx context.Context, out io.Writer) error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return errors.Wrap(err, "cannot load kubeconfig")
	}
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return errors.Wrap(err, "cannot make client")
	}
	r := &report{out: out}
	if err := check(ctx, kube, c.Namespace, c.ServiceAccount, c.Provider, r); err != nil {
		return err
	}
	if err := checkCache(ctx, kube, c.Namespace, c.ServiceAccount, r); err != nil {
		return err
	}
	if c.Admission {
		if err := checkAdmission(ctx, kube, kustomization.PolicyInternalKinds, r); err != nil {
			return err
		}
	}
	if c.Admission && c.EnvoyGateway {
		for _, name := range []string{kustomization.PolicyExtensionRoutes, kustomization.PolicyExtensionStatus} {
			if err := checkAdmission(ctx, kube, name, r); err != nil {
				return err
			}
		}
	}
	if c.EnvoyGateway {
		if err := checkRoutes(ctx, kube, c.EnvoyGatewayNamespace, c.ExtensionNamespace, r); err != nil {
			return err
		}
	}
	return r.result()
}

// A report prints a line for each thing that is checked.
type report struct {
	out     io.Writer
	missing int
}

// add adds an object, with instructions for a missing one.
func (r *report) add(ok bool, requirement, fix string) error {
	line := "ok       " + requirement
	if !ok {
		r.missing++
		line = "missing  " + requirement + "\n         " + fix
	}
	_, err := fmt.Fprintln(r.out, line)
	return errors.Wrap(err, "cannot print")
}

// result is an error when anything is missing.
func (r *report) result() error {
	if r.missing > 0 {
		return errors.Errorf("%d things are missing", r.missing)
	}
	return nil
}

// check checks the requirements of all components.
func check(ctx context.Context, kube kubernetes.Interface, namespace, account, provider string, r *report) error {
	sa, err := kube.CoreV1().ServiceAccounts(namespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + account})
	if err != nil {
		return errors.Wrapf(err, "cannot look up service account %s/%s", namespace, account)
	}
	if err := r.add(hasServiceAccount(sa, account), fmt.Sprintf("Crossplane's service account %s/%s", namespace, account), "Install Crossplane v2.4 or newer by its chart, or name its namespace by --namespace."); err != nil {
		return err
	}

	for _, subject := range []struct{ name, account, role string }{
		{name: "Crossplane", account: account, role: roleCrossplane},
		{name: "The provider", account: provider, role: roleProvider},
	} {
		wanted, err := permissions(subject.role)
		if err != nil {
			return err
		}
		if err := checkPermissions(ctx, kube, namespace, subject.account, subject.name, wanted, "Install or upgrade the chart tailscale-gateway, or apply package/kustomization.", r); err != nil {
			return err
		}
	}
	return nil
}

// checkPermissions checks the permissions of a service account.
func checkPermissions(ctx context.Context, kube kubernetes.Interface, namespace, account, name string, wanted []authv1.ResourceAttributes, fix string, r *report) error {
	for _, p := range wanted {
		allowed, err := may(ctx, kube, namespace, account, p)
		if err != nil {
			return err
		}
		if err := r.add(allowed, fmt.Sprintf("%s may %s %s", name, p.Verb, resource(p)), fix); err != nil {
			return err
		}
	}
	return nil
}

func may(ctx context.Context, kube kubernetes.Interface, namespace, account string, p authv1.ResourceAttributes) (bool, error) {
	r, err := kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authv1.SubjectAccessReview{Spec: authv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:" + namespace + ":" + account,
		// A real request carries these groups too, and a binding may name one.
		Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
		ResourceAttributes: &p,
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, errors.Wrapf(err, "cannot ask whether %s may %s %s", account, p.Verb, resource(p))
	}
	return r.Status.Allowed, nil
}

func hasServiceAccount(l *corev1.ServiceAccountList, name string) bool {
	for _, sa := range l.Items {
		if sa.GetName() == name {
			return true
		}
	}
	return false
}

// resource as kubectl names it.
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

// single permissions of rules, in their order.
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
