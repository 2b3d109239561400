// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
)

type pushCmd struct {
	From     string `default:"_out/xpkg"  help:"Folder that build wrote to." type:"existingdir"`
	Registry string `arg:""               help:"Registry and organization to push to, such as ghcr.io/tailscale-gateway."`
	Version  string `default:"v0.1.0-dev" help:"Tag to push."`
}

// Run pushes each product, as an index when it was built for several
// architectures.
func (c *pushCmd) Run(ctx context.Context) error {
	for _, p := range products.All() {
		files, err := filepath.Glob(filepath.Join(c.From, p.Name+"-*."+extension(p)))
		if err != nil {
			return errors.Wrap(err, "cannot list built files")
		}
		if len(files) == 0 {
			return errors.Errorf("no build of %s in %q: run build first", p.Name, c.From)
		}
		ref, err := tag(c.Registry, p.Name, c.Version)
		if err != nil {
			return err
		}
		if err := push(ctx, ref, files); err != nil {
			return errors.Wrapf(err, "cannot push %s", ref)
		}
		fmt.Printf("pushed %s\n", ref)
	}
	return nil
}

// tag returns the tag of a product in a registry.
func tag(registry, product, version string) (name.Tag, error) {
	t, err := name.NewTag(strings.TrimSuffix(registry, "/") + "/" + product + ":" + version)
	return t, errors.Wrap(err, "cannot parse image name")
}

func extension(p products.Product) string {
	if p.Package == "" {
		return "tar"
	}
	return "xpkg"
}

// push pushes the builds of one product, as an index when there are several.
func push(ctx context.Context, ref name.Tag, files []string) error {
	imgs, err := images(files)
	if err != nil {
		return err
	}
	if len(imgs) == 1 {
		return remote.Write(ref, imgs[0], registryOptions(ctx)...)
	}
	idx, err := index(imgs)
	if err != nil {
		return err
	}
	return remote.WriteIndex(ref, idx, registryOptions(ctx)...)
}

// images reads built images.
func images(files []string) ([]v1.Image, error) {
	imgs := make([]v1.Image, 0, len(files))
	for _, f := range files {
		img, err := tarball.ImageFromPath(f, nil)
		if err != nil {
			return nil, errors.Wrapf(err, "cannot read %q", f)
		}
		// A tarball cannot hold annotations of layers: Crossplane needs them.
		if img, err = xpkg.AnnotateLayers(img); err != nil {
			return nil, errors.Wrapf(err, "cannot annotate layers of %q", f)
		}
		imgs = append(imgs, img)
	}
	return imgs, nil
}

// index returns the index of the images of one product.
func index(imgs []v1.Image) (v1.ImageIndex, error) {
	idx := v1.ImageIndex(empty.Index)
	for _, img := range imgs {
		cfg, err := img.ConfigFile()
		if err != nil {
			return nil, errors.Wrap(err, "cannot read image config")
		}
		idx = mutate.AppendManifests(idx, mutate.IndexAddendum{
			Add:        img,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: cfg.OS, Architecture: cfg.Architecture}},
		})
	}
	return idx, nil
}
