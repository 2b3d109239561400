// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/check"
	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
)

// minHelm is the first version with --reset-then-reuse-values, which keeps the values of a release and adds the
// new defaults of a chart (helm/helm#9653).
const minHelm = "3.14.0"

func helm(f Facts) Step {
	const install = "install Helm: https://helm.sh/docs/intro/install/"
	s := Step{Name: "helm", State: OK, Summary: "Helm " + f.Helm.Value}
	if f.Helm.Unknown != "" {
		s.State, s.Summary, s.Next = Blocked, "Helm cannot be used: "+f.Helm.Unknown, install
		return s
	}
	v, err := version.ParseGeneric(f.Helm.Value)
	if err == nil && v.LessThan(version.MustParseGeneric(minHelm)) {
		s.State, s.Summary, s.Next = Blocked, fmt.Sprintf("Helm is %s, which is older than %s", f.Helm.Value, minHelm), install
	}
	return s
}

// Cluster returns the arguments by which Helm connects to the caller's cluster.
func (o Options) Cluster() []string {
	var out []string
	for _, f := range []struct{ name, value string }{
		{"--kubeconfig", o.Check.Kubeconfig}, {"--kube-context", o.Check.Context}, {"--kube-as-user", o.As},
	} {
		if f.value != "" {
			out = append(out, f.name+"="+f.value)
		}
	}
	for _, g := range o.AsGroup {
		out = append(out, "--kube-as-group="+g)
	}
	return out
}

// printed returns a command of Helm for a shell.
func (o Options) printed(args []string) string {
	words := []string{"helm"}
	for _, a := range args {
		words = append(words, check.Quote(a))
	}
	return strings.Join(words, " ")
}

func (o Options) crossplane() []string {
	return append(o.Cluster(), "upgrade", "--install", "crossplane", "crossplane", "--repo=https://charts.crossplane.io/stable",
		"--version=^"+check.MinCrossplane, "--namespace="+o.Check.CrossplaneNamespace, "--create-namespace", "--wait")
}

// Source returns the chart, and its version as arguments of Helm.
func (o Options) Source() []string {
	own := strings.TrimPrefix(o.Check.Version, "v")
	switch {
	case o.Chart != "" && o.Version != "":
		return []string{o.Chart, "--version=" + o.Version}
	case strings.HasPrefix(o.Chart, "oci://"):
		return []string{o.Chart, "--version=" + own}
	case o.Chart != "":
		return []string{o.Chart}
	case o.Version != "":
		own = o.Version
	case strings.HasSuffix(own, "-dev"):
		return []string{charts.Folder + "/" + charts.Install}
	}
	return []string{"oci://" + products.Charts + "/" + charts.Install, "--version=" + own}
}

// upgrade returns the arguments that install or upgrade the release. A release keeps its values.
func (o Options) upgrade(f Facts) []string {
	out := append(o.Cluster(), "upgrade", "--install", o.Release)
	out = append(out, o.Source()...)
	out = append(out, "--namespace="+o.Namespace)
	if f.Release.Value != nil {
		out = append(out, "--reset-then-reuse-values")
	}
	for _, v := range o.Values {
		out = append(out, "--values="+v)
	}
	for _, v := range o.values() {
		out = append(out, "--set="+v)
	}
	for _, v := range o.Set {
		out = append(out, "--set="+v)
	}
	return out
}

// values returns the values that the flags of the command stand for.
func (o Options) values() []string {
	var out []string
	if o.Check.CrossplaneNamespace != "crossplane-system" {
		out = append(out, "crossplane.namespace="+o.Check.CrossplaneNamespace)
	}
	if o.Tailnet == "" {
		return out
	}
	out = append(out, "tailnet.name="+o.Tailnet)
	if o.Secret != "" {
		out = append(out, "tailnet.oauthSecretName="+o.Secret)
	}
	if len(o.Tags) > 0 {
		out = append(out, "tailnet.spec.tags={"+strings.Join(o.Tags, ",")+"}")
	}
	return out
}

// has reports whether a release has what the flags stand for.
func (r *Release) has(o Options) bool {
	return len(o.Values) == 0 && len(o.Set) == 0 &&
		(o.Tailnet == "" || o.Tailnet == r.Tailnet && (o.Secret == "" || o.Secret == r.Secret) && (len(o.Tags) == 0 || slices.Equal(o.Tags, r.Tags)))
}

// Statuses of releases.
const (
	statusDeployed = "deployed"
	statusPending  = "pending-"
)

func release(f Facts, o Options) Step {
	s := Step{Name: StepRelease, State: Action, Helm: o.upgrade(f)}
	s.Command = o.printed(s.Helm)
	r := f.Release.Value
	name := o.Namespace + "/" + o.Release
	block := func(summary, next string) Step {
		return Step{Name: StepRelease, State: Blocked, Summary: summary, Next: next}
	}
	switch {
	case f.Helm.Unknown != "":
		return Step{Name: StepRelease, State: Unknown, Summary: "release " + name + ": Helm cannot be used"}
	case f.Release.Unknown != "":
		return block("whether the release "+name+" exists: "+f.Release.Unknown, "use a kubeconfig that may read Secrets of namespace "+o.Namespace)
	case f.ChartVersion.Unknown != "":
		return block("the chart cannot be read: "+f.ChartVersion.Unknown, "name another one by --chart and --chart-version, or log in to its registry: helm registry login")
	case r == nil && len(f.Cluster.Packages.Value) > 0:
		return block(fmt.Sprintf("Tailscale Gateway is installed, but not by the release %s", name), elsewhere(f, o))
	case r == nil:
		s.Summary = fmt.Sprintf("install Tailscale Gateway %s as release %s", f.ChartVersion.Value, name)
		return s
	case strings.HasPrefix(r.Status, statusPending):
		return block(fmt.Sprintf("the release %s is %s: another command of Helm runs, or one was interrupted", name, r.Status),
			o.printed(append(o.Cluster(), "rollback", o.Release, "--namespace="+o.Namespace))+" if none runs, or uninstall if it was the first one; then run this again")
	case older(f.ChartVersion.Value, r.Version) && !o.Downgrade:
		return block(fmt.Sprintf("the release %s has version %s, and %s is older", name, r.Version, f.ChartVersion.Value),
			"name the version by --chart-version, use the plugin of the release's version, or add --allow-downgrade")
	case r.Status == statusDeployed && r.Version == f.ChartVersion.Value && r.has(o):
		return Step{Name: StepRelease, State: OK, Summary: fmt.Sprintf("release %s has version %s", name, r.Version)}
	case r.Version == f.ChartVersion.Value:
		s.Summary = fmt.Sprintf("apply the chart %s to release %s, which keeps its other values", r.Version, name)
	default:
		s.Summary = fmt.Sprintf("change release %s from version %s to %s; it keeps its values", name, r.Version, f.ChartVersion.Value)
	}
	return s
}

// elsewhere says how to go on with an installation that has another name, or none of Helm.
func elsewhere(f Facts, o Options) string {
	if r, ok := f.Cluster.Releases[charts.Install]; ok && r.Name != "" {
		return fmt.Sprintf("name its release: --release=%s --namespace=%s", check.Quote(r.Name), check.Quote(r.Namespace))
	}
	return "without Helm, continue in the way in which it was installed; " + o.Check.Kubectl() + " get configurations,providers,functions.pkg.crossplane.io shows it"
}

// older reports whether a version is older than another. A version that cannot be read is not.
func older(v, other string) bool {
	a, err := version.ParseSemantic(v)
	if err != nil {
		return false
	}
	b, err := version.ParseSemantic(other)
	return err == nil && a.LessThan(b)
}
