// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	packageLabel  = "pkg.crossplane.io/package"
	revisionLabel = "pkg.crossplane.io/revision"
)

// Pending returns what packages miss until all run a version and nothing of another one: packages,
// their revisions, and the pods with a label of revisions, each as a list of kubectl get -o json.
// The result is sorted.
func Pending(packages, revisions, pods []byte, version string) ([]string, error) {
	var out []string
	ps, err := items(packages)
	if err != nil {
		return nil, err
	}
	rs, err := items(revisions)
	if err != nil {
		return nil, err
	}
	running, err := items(pods)
	if err != nil {
		return nil, err
	}
	if len(ps) == 0 {
		return []string{"no package is installed"}, nil
	}
	active := map[string][]string{}
	for _, r := range rs {
		if state, _, _ := unstructured.NestedString(r.Object, "spec", "desiredState"); state != "Active" {
			continue
		}
		kind := strings.TrimSuffix(r.GetKind(), "Revision")
		p := kind + "/" + r.GetLabels()[packageLabel]
		active[p] = append(active[p], r.GetName())
		for t, c := range conditions(r) {
			if strings.HasSuffix(t, "Healthy") && !strings.HasPrefix(c, "True/") {
				out = append(out, fmt.Sprintf("%s: %s is %s", key(r), t, c))
			}
		}
		if kind != "Configuration" && !slices.ContainsFunc(running, func(pod unstructured.Unstructured) bool { return pod.GetLabels()[revisionLabel] == r.GetName() }) {
			out = append(out, key(r)+" has no pod")
		}
	}
	for _, p := range ps {
		image, _, _ := unstructured.NestedString(p.Object, "spec", "package")
		current, _, _ := unstructured.NestedString(p.Object, "status", "currentIdentifier")
		if !strings.HasSuffix(image, ":"+version) || current != image {
			out = append(out, fmt.Sprintf("%s: the package is %s, of which Crossplane has %s", key(p), image, current))
		}
		for _, t := range []string{"Installed", "Healthy"} {
			if c := conditions(p)[t]; !strings.HasPrefix(c, "True/") {
				out = append(out, fmt.Sprintf("%s: %s is %q", key(p), t, c))
			}
		}
		if rs := active[p.GetKind()+"/"+p.GetName()]; len(rs) != 1 {
			out = append(out, fmt.Sprintf("%s: the active revisions are %v", key(p), rs))
		}
	}
	revisionsActive := slices.Concat(slices.Collect(maps.Values(active))...)
	for _, pod := range running {
		if r := pod.GetLabels()[revisionLabel]; !slices.Contains(revisionsActive, r) {
			out = append(out, fmt.Sprintf("%s runs revision %q, which is not active", key(pod), r))
		}
	}
	slices.Sort(out)
	return out, nil
}

// Outdated returns the pods that do not run this version of the project's images, or are not
// ready. Pods without our images are left out, and so are those that have ended. The result is
// sorted. images are the repositories' last parts.
func Outdated(pods []byte, version string, images ...string) ([]string, error) {
	ps, err := items(pods)
	if err != nil {
		return nil, err
	}
	var out []string
	ours := 0
	for _, p := range ps {
		used := imagesOf(p, images)
		phase, _, _ := unstructured.NestedString(p.Object, "status", "phase")
		if len(used) == 0 || phase == "Succeeded" {
			continue
		}
		ours++
		for _, i := range used {
			if !strings.HasSuffix(i, ":"+version) {
				out = append(out, key(p)+" runs "+i)
			}
		}
		if p.GetDeletionTimestamp() != nil {
			out = append(out, key(p)+" is stopping")
		}
		if c := conditions(p)["Ready"]; !strings.HasPrefix(c, "True/") {
			out = append(out, fmt.Sprintf("%s: Ready is %q", key(p), c))
		}
	}
	if ours == 0 {
		out = append(out, "no pod runs an image of ours")
	}
	slices.Sort(out)
	return out, nil
}

// imagesOf returns the images of a pod's containers whose repositories end in one of these names.
func imagesOf(p unstructured.Unstructured, names []string) []string {
	var out []string
	for _, field := range []string{"containers", "initContainers"} {
		list, _, _ := unstructured.NestedSlice(p.Object, "spec", field) // Absent is empty.
		for _, c := range list {
			m, ok := c.(map[string]any)
			if !ok {
				continue
			}
			image := fmt.Sprint(m["image"])
			repository, _, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
			if strings.Contains(image, "/tailscale-gateway/") && slices.Contains(names, repository) {
				out = append(out, image)
			}
		}
	}
	return out
}

func items(list []byte) ([]unstructured.Unstructured, error) {
	l := &unstructured.UnstructuredList{}
	if err := l.UnmarshalJSON(list); err != nil {
		return nil, errors.Wrap(err, "cannot decode list of objects")
	}
	return l.Items, nil
}
