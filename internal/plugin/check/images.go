// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
)

// An Image is what a container of a pod runs.
type Image struct {
	// Pod as NAMESPACE/NAME.
	Pod string

	// Reference is the image that the pod names.
	Reference string

	// Digest is that of the image that runs. It is empty if the container runtime does not say it.
	Digest string
}

// Product returns the last part of the repository of an image, which a mirror keeps.
func Product(image string) string {
	out, _, _ := strings.Cut(path.Base(image), "@")
	out, _, _ = strings.Cut(out, ":")
	return out
}

// tag returns the tag of an image, or nothing.
func tag(image string) string {
	last, _, _ := strings.Cut(path.Base(image), "@")
	_, out, _ := strings.Cut(last, ":")
	return out
}

// digest returns the digest of the image that a container runs: the one that the pod names, or the one that the
// container runtime reports.
func (i Image) digest() string {
	if _, d, ok := strings.Cut(i.Reference, "@"); ok {
		return d
	}
	return i.Digest
}

// ParseImages returns the images of a list, one in a line, such as images.txt of a release or the output of its
// mirror.sh, which has the copy as the last word. Lines without a digest, such as that of Tailscale's image, pin none.
func ParseImages(list string) ([]string, error) {
	out := []string{}
	pinned := false
	for line := range strings.Lines(list) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		image := words[len(words)-1]
		if _, err := name.ParseReference(image); err != nil || len(words) > 2 {
			return nil, errors.Errorf("line %q names no image", strings.TrimSpace(line))
		}
		pinned = pinned || strings.Contains(image, "@")
		out = append(out, image)
	}
	if !pinned {
		return nil, errors.New("the list has no image with a digest")
	}
	return out, nil
}

// images compares the images that run with those of a release, or the versions of our parts with each other.
func images(f Facts, o Options) result {
	if f.Listed == nil {
		return skew(f, o)
	}
	if f.Images.Unknown != "" && len(f.Images.Value) == 0 {
		return unknown("which images run", f.Images.Unknown)
	}
	want := map[string][]string{}
	for _, l := range f.Listed {
		if _, d, ok := strings.Cut(l, "@"); ok {
			want[Product(l)] = append(want[Product(l)], d)
		}
	}
	others, silent := map[string][]string{}, map[string][]string{}
	compared := 0
	for _, i := range f.Images.Value {
		product := Product(i.Reference)
		digests, ok := want[product]
		if !ok {
			continue
		}
		compared++
		switch d := i.digest(); {
		case d == "":
			silent[product] = append(silent[product], i.Pod)
		case !slices.Contains(digests, d):
			key := fmt.Sprintf("%s is %s instead of %s", product, short(d), short(digests[0]))
			others[key] = append(others[key], i.Pod)
		}
	}
	out := result{summary: fmt.Sprintf("%d images of the list", compared)}
	for _, other := range sorted(others) {
		out.findings = append(out.findings, Finding{
			Status: Wrong, Summary: fmt.Sprintf("The image %s: pods %s", other, distinct(others[other])),
			Impact: "It is not that of the list. Copies of a registry have another digest if they lack an architecture: docs/airgap.md, Digests.",
			Fix:    o.ours(f, chartOf(other), ""),
		})
	}
	for _, product := range sorted(silent) {
		out.findings = append(out.findings, Finding{Status: Unknown, Summary: fmt.Sprintf("which %s runs: the container runtime reports no digest for pods %s", product, distinct(silent[product]))})
	}
	if f.Images.Unknown != "" {
		out.findings = append(out.findings, Finding{Status: Unknown, Summary: "which other images run: " + f.Images.Unknown})
	}
	return out
}

// chartOf returns the chart that sets an image.
func chartOf(image string) string {
	if strings.HasPrefix(image, products.Extension+" ") {
		return charts.Extension
	}
	return charts.Install
}

func distinct(names []string) string {
	slices.Sort(names)
	return listed(slices.Compact(names))
}

// short returns a digest as people compare it.
func short(digest string) string {
	const length = len("sha256:") + 12
	return digest[:min(len(digest), length)]
}

// skew checks that our parts are at most one minor version apart: docs/skew.md has what they exchange.
func skew(f Facts, o Options) result {
	if f.Packages.Unknown != "" {
		return unknown("whether the versions of our parts fit", f.Packages.Unknown)
	}
	versions := map[string]*version.Version{}
	add := func(product, v string) {
		// A tag that is no version, such as that of a build, says nothing.
		if parsed, err := version.ParseGeneric(v); err == nil {
			versions[product+" "+v] = parsed
		}
	}
	for product, p := range f.Packages.Value {
		add(product, tag(p.Image))
	}
	if d := f.Gateway.Extension.Value; d != nil {
		add(products.Extension, Version(d))
	}
	for _, i := range f.Images.Value {
		if Product(i.Reference) == products.Agent {
			add(products.Agent, tag(i.Reference))
		}
	}
	if !strings.HasSuffix(o.Version, "-dev") {
		add("plugin", o.Version)
	}
	names := sorted(versions)
	if len(names) == 0 {
		return skip("versions of our parts (no image has one in its tag)")
	}
	compare := func(a, b string) int {
		switch {
		case versions[a].LessThan(versions[b]):
			return -1
		case versions[b].LessThan(versions[a]):
			return 1
		}
		return 0
	}
	oldest, newest := slices.MinFunc(names, compare), slices.MaxFunc(names, compare)
	a, b := versions[oldest], versions[newest]
	if a.Major() != b.Major() || b.Minor()-a.Minor() > 1 {
		return warning(fmt.Sprintf("Our parts are more than one minor version apart: %s and %s", oldest, newest),
			"Only neighbouring minor versions understand each other: docs/skew.md.", "upgrade the older one, one minor version after the other: docs/upgrading.md")
	}
	if compare(oldest, newest) != 0 {
		return right(fmt.Sprintf("versions (%s to %s)", oldest, newest))
	}
	return right("versions")
}
