// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"
)

// MinCrossplane is the oldest version of Crossplane that works.
const MinCrossplane = "2.4"

// The oldest versions that work: docs/compatibility.md has the reasons.
const (
	minKubernetes   = "1.33"
	minEnvoyGateway = "1.9"
)

// older reports whether a version is older than another. A version that cannot be read is not.
func older(v, minimum string) bool {
	parsed, err := version.ParseGeneric(v)
	return err == nil && parsed.LessThan(version.MustParseGeneric(minimum))
}

func kubernetes(f Facts, _ Options) result {
	v := f.Kubernetes
	switch {
	case v.Unknown != "":
		return unknown("the version of Kubernetes", v.Unknown)
	case older(v.Value, minKubernetes):
		return wrong(fmt.Sprintf("Kubernetes is %s, which is older than %s", v.Value, minKubernetes),
			"Agents of proxies are native sidecars, which older versions do not have.", "upgrade the cluster")
	}
	return right("Kubernetes " + v.Value)
}

// crossplanes returns the Deployments of Crossplane's service account.
func crossplanes(f Facts, o Options) []*appsv1.Deployment {
	var out []*appsv1.Deployment
	for n := range f.Deployments.Value {
		if d := &f.Deployments.Value[n]; d.Spec.Template.Spec.ServiceAccountName == o.CrossplaneAccount {
			out = append(out, d)
		}
	}
	return out
}

// HasCrossplane reports whether Crossplane is installed, in any version.
func HasCrossplane(f Facts, o Options) bool { return len(crossplanes(f, o)) > 0 }

func crossplane(f Facts, o Options) result {
	if f.Deployments.Unknown != "" {
		return unknown("whether Crossplane runs", f.Deployments.Unknown)
	}
	const chart = "crossplane --repo=https://charts.crossplane.io/stable"
	release := Release{Name: "crossplane", Namespace: o.CrossplaneNamespace}
	found := crossplanes(f, o)
	if len(found) == 0 {
		return wrong(fmt.Sprintf("Crossplane is not installed: namespace %s has no Deployment of the service account %s", o.CrossplaneNamespace, o.CrossplaneAccount),
			"It runs the packages of Tailscale Gateway. If it is in another namespace, name that by --crossplane-namespace.",
			o.helm(release, chart, "--create-namespace --wait"))
	}
	d := found[0]
	if name := d.GetAnnotations()[AnnotationRelease]; len(validation.IsDNS1123Subdomain(name)) == 0 {
		release.Name = name
	}
	name := d.GetNamespace() + "/" + d.GetName()
	v := Version(d)
	switch {
	case older(v, MinCrossplane):
		return wrong(fmt.Sprintf("Crossplane is %s, which is older than %s: Deployment %s", v, MinCrossplane, name),
			"Our functions rely on watches of required resources, which older versions do not have.", o.helm(release, chart, "--wait"))
	case !available(d):
		return wrong(fmt.Sprintf("Crossplane is not ready: Deployment %s has %d of %d pods", name, d.Status.AvailableReplicas, desired(d)), "", o.describePods(d))
	}
	return right(strings.TrimSpace("Crossplane " + v))
}

const (
	// AnnotationRelease has the name of the Helm release of an object.
	AnnotationRelease = "meta.helm.sh/release-name"

	// LabelVersion has the version of what an object belongs to.
	LabelVersion = "app.kubernetes.io/version"
)

// Version returns the version of a Deployment, by the label of its chart or by the tag of its image. It is empty if
// neither has one.
func Version(d *appsv1.Deployment) string {
	if v := d.GetLabels()[LabelVersion]; v != "" {
		return v
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		image, _, _ := strings.Cut(c.Image, "@")
		if n := strings.LastIndex(image, ":"); n > strings.LastIndex(image, "/") {
			return image[n+1:]
		}
	}
	return ""
}

func desired(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

// available reports whether all pods of a Deployment are those of its spec, and available.
func available(d *appsv1.Deployment) bool {
	n := desired(d)
	return d.Status.ObservedGeneration >= d.GetGeneration() && d.Status.UpdatedReplicas >= n && d.Status.AvailableReplicas >= n
}

// flagNamespaced makes Crossplane watch only the composites of the namespace in which it runs. It
// never composes those of other namespaces, and reports no error (crossplane/crossplane#7353,
// cmd/crossplane/core/core.go of Crossplane 2.4).
const flagNamespaced = "--watch-cache-namespaced"

// cache checks that Crossplane watches all namespaces.
func cache(f Facts, o Options) result {
	if f.Deployments.Unknown != "" {
		return unknown("whether Crossplane watches all namespaces", f.Deployments.Unknown)
	}
	for _, d := range crossplanes(f, o) {
		if namespaced(d) {
			return wrong(fmt.Sprintf("Deployment %s/%s has the flag %s", d.GetNamespace(), d.GetName(), flagNamespaced),
				"Crossplane never composes objects of other namespaces with it, and shows no error.", "remove the flag from args of Crossplane's chart")
		}
	}
	return right("Crossplane watches all namespaces")
}

// namespaced reports whether a container of the Deployment has the flag.
func namespaced(d *appsv1.Deployment) bool {
	for _, c := range d.Spec.Template.Spec.Containers {
		if slices.ContainsFunc(slices.Concat(c.Command, c.Args), func(a string) bool {
			name, value, ok := strings.Cut(a, "=")
			return name == flagNamespaced && (!ok || value != "false")
		}) {
			return true
		}
	}
	return false
}
