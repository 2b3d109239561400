// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package allow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// official are the repositories in which Tailscale publishes its image
// (https://tailscale.com/kb/1282/docker).
var official = []tailnetv1alpha1.ImageRepository{"docker.io/tailscale/tailscale", "ghcr.io/tailscale/tailscale"}

// image returns a violation for the image of a proxy in its spec. The repositories of the
// default images are always allowed. An empty image means the default.
func (g *Grant) image(field, image string, defaults ...string) *ViolationError {
	if image == "" {
		return nil
	}
	refused := g.beyond(field, fmt.Sprintf("image %q", image), "images")
	repository, ok := repositoryOf(image)
	if !ok {
		return refused
	}
	for _, d := range defaults {
		if r, ok := repositoryOf(d); ok && r == repository {
			return nil
		}
	}
	granted := g.limits.Images
	if len(granted) == 0 {
		granted = official
	}
	if inAny(granted, repository) {
		return nil
	}
	return refused
}

// ExtensionImage returns a violation for an image that a dedicated extension has instead of the
// installed one. It runs with permissions of ours, so no repository is allowed by default, not even
// that of the installed image, where another tag may be one with known faults.
func (g *Grant) ExtensionImage(field, image string) *ViolationError {
	if r, ok := repositoryOf(image); ok && inAny(g.limits.ExtensionImages, r) {
		return nil
	}
	return g.beyond(field, fmt.Sprintf("image %q", image), "extensionImages")
}

// inAny reports whether a repository is one of the granted ones, or below one of them.
func inAny(granted []tailnetv1alpha1.ImageRepository, repository string) bool {
	return slices.ContainsFunc(granted, func(pattern tailnetv1alpha1.ImageRepository) bool { return covers(string(pattern), repository) })
}

// repositoryOf returns the repository of an image, with its registry. It returns false for an
// invalid name.
func repositoryOf(image string) (string, bool) {
	ref, err := name.ParseReference(image)
	if err != nil {
		return "", false
	}
	n := ref.Context().Name()
	// The parser accepts dots, with which a path could leave its prefix.
	return n, !strings.Contains(n, "..") && !strings.Contains(n, "/.")
}

// covers reports whether a granted repository is that of an image, or above it.
func covers(granted, repository string) bool {
	parent, whole := strings.CutSuffix(granted, "/*")
	if !whole {
		r, err := name.NewRepository(granted)
		return err == nil && r.Name() == repository
	}
	// The registry of a path without one is Docker's, as for a repository below it.
	const child = "/any"
	r, err := name.NewRepository(parent + child)
	return err == nil && strings.HasPrefix(repository, strings.TrimSuffix(r.Name(), child)+"/")
}
