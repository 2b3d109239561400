// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/spf13/afero"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg"
	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg/parser"
	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg/parser/examples"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/package/builder/internal/constraint"
	claims "github.com/tailscale-gateway/tailscale-gateway/package/configuration-claims"
	"github.com/tailscale-gateway/tailscale-gateway/package/function/input"
)

// source is the URL of the source code.
const source = products.Source

// runtimeUser runs our images. Crossplane's default runtime sets 2000 as well.
const runtimeUser = "2000:2000"

type buildCmd struct {
	Out      string   `default:"_out/xpkg"               help:"Folder for the built files." type:"path"`
	Arch     []string `default:"${arch}"                 help:"Architectures to build for."`
	Version  string   `default:"v0.1.0-dev"              help:"Version that binaries and dependencies carry."`
	Examples string   `default:"examples"                help:"Folder of examples to put into the packages." type:"existingdir"`
	Products []string `name:"only" help:"Build these products alone."`

	// products are those to build.
	products []products.Product
	// revision is the commit that labels name, or empty.
	revision string
	// pin has packages name images by the digests of those that were built before them: those of an
	// index, as a release pushes it.
	pin     bool
	digests []string
}

// Run builds each product for each architecture.
func (c *buildCmd) Run(ctx context.Context) error {
	if err := os.MkdirAll(c.Out, 0o750); err != nil {
		return errors.Wrap(err, "cannot make output folder")
	}
	if c.products == nil {
		c.products = products.All()
	}
	for _, p := range c.products {
		if !c.wants(p) {
			continue
		}
		for _, arch := range c.Arch {
			start := time.Now()
			f := c.file(p, arch)
			if err := c.build(ctx, p, arch, f); err != nil {
				return errors.Wrapf(err, "cannot build %s for %s", p.Name, arch)
			}
			fmt.Printf("built %s (%s)\n", f, time.Since(start).Round(time.Second))
		}
		if !c.pin || p.Kind != products.KindImage {
			continue
		}
		b, err := c.index(p)
		if err != nil {
			return err
		}
		c.digests = append(c.digests, p.Name+"="+b.digest.String())
	}
	return nil
}

// An indexed product has an index of its images.
type indexed struct {
	index  v1.ImageIndex
	digest v1.Hash
	// images are the digests of the images, by architecture.
	images map[string]v1.Hash
}

// index returns the index of a product that was built.
func (c *buildCmd) index(p products.Product) (*indexed, error) {
	files := make([]string, len(c.Arch))
	for i, arch := range c.Arch {
		files[i] = c.file(p, arch)
	}
	imgs, err := images(files)
	if err != nil {
		return nil, err
	}
	out := &indexed{images: map[string]v1.Hash{}}
	for i, arch := range c.Arch {
		if out.images[arch], err = imgs[i].Digest(); err != nil {
			return nil, errors.Wrap(err, "cannot compute digest")
		}
	}
	if out.index, err = index(imgs); err != nil {
		return nil, err
	}
	out.digest, err = out.index.Digest()
	return out, errors.Wrap(err, "cannot compute digest")
}

func (c *buildCmd) wants(p products.Product) bool {
	if len(c.Products) == 0 {
		return true
	}
	for _, n := range c.Products {
		if n == p.Name {
			return true
		}
	}
	return false
}

// file returns the path of a product's build.
func (c *buildCmd) file(p products.Product, arch string) string {
	return filepath.Join(c.Out, p.Name+"-"+arch+"."+extension(p))
}

// binary returns the path of a product's binary.
func (c *buildCmd) binary(p products.Product, arch string) string {
	return filepath.Join(c.Out, "bin", arch, p.Name)
}

func (c *buildCmd) build(ctx context.Context, p products.Product, arch, file string) error {
	img, err := c.runtimeImage(ctx, p, arch)
	if err != nil {
		return err
	}
	if p.Package != "" {
		if img, err = c.pack(ctx, p, img); err != nil {
			return err
		}
	}

	ref, err := name.NewTag(products.Image(p.Name, c.Version))
	if err != nil {
		return errors.Wrap(err, "cannot parse image name")
	}
	tmp := file + ".tmp"
	if err := tarball.WriteToFile(tmp, ref, img); err != nil {
		return errors.Wrap(err, "cannot write image")
	}
	return errors.Wrap(os.Rename(tmp, file), "cannot put image in place")
}

// runtimeImage returns an image that holds one static binary and nothing else. The binaries
// include their root certificates.
func (c *buildCmd) runtimeImage(ctx context.Context, p products.Product, arch string) (v1.Image, error) {
	img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		OS:           "linux",
		Architecture: arch,
		RootFS:       v1.RootFS{Type: "layers"},
		Config:       v1.Config{Labels: c.labels(p)},
	})
	if err != nil {
		return nil, errors.Wrap(err, "cannot make empty image")
	}
	if p.Main == "" {
		return img, nil
	}

	bin, err := c.compile(ctx, p, arch)
	if err != nil {
		return nil, err
	}
	layer, err := binaryLayer(filepath.Base(p.Main), bin)
	if err != nil {
		return nil, err
	}
	if img, err = mutate.AppendLayers(img, layer); err != nil {
		return nil, errors.Wrap(err, "cannot add binary to image")
	}
	img, err = mutate.Config(img, v1.Config{
		Entrypoint: []string{"/usr/local/bin/" + filepath.Base(p.Main)},
		Env:        []string{"PATH=/usr/local/bin"},
		User:       runtimeUser,
		Labels:     c.labels(p),
		ExposedPorts: map[string]struct{}{
			"8080/tcp": {},
		},
	})
	return img, errors.Wrap(err, "cannot set image config")
}

// labels returns the labels of an image. Registries show them, and GitHub's connects an image to
// the repository of its source.
// https://github.com/opencontainers/image-spec/blob/main/annotations.md
func (c *buildCmd) labels(p products.Product) map[string]string {
	out := map[string]string{
		"org.opencontainers.image.title":    p.Name,
		"org.opencontainers.image.version":  c.Version,
		"org.opencontainers.image.source":   source,
		"org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.vendor":   "The Tailscale Gateway Authors",
	}
	if c.revision != "" {
		out["org.opencontainers.image.revision"] = c.revision
	}
	return out
}

func (c *buildCmd) compile(ctx context.Context, p products.Product, arch string) (string, error) {
	out := c.binary(p, arch)
	if err := os.MkdirAll(filepath.Dir(out), 0o750); err != nil {
		return "", errors.Wrap(err, "cannot make folder for binaries")
	}
	var pinned string
	if p.Package != "" {
		pinned = strings.Join(c.digests, ",")
	}
	return out, compileFor(ctx, p.Main, p.Tags, "linux", arch, map[string]string{"version.Version": c.Version, "products.Digests": pinned}, out)
}

func binaryLayer(binary, file string) (v1.Layer, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read binary")
	}
	buf := &bytes.Buffer{}
	tw := tar.NewWriter(buf)
	for _, h := range []*tar.Header{
		{Name: "usr/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "usr/local/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "usr/local/bin/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "usr/local/bin/" + binary, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(b))},
	} {
		if err := tw.WriteHeader(h); err != nil {
			return nil, errors.Wrap(err, "cannot write layer")
		}
	}
	if _, err := tw.Write(b); err != nil {
		return nil, errors.Wrap(err, "cannot write layer")
	}
	if err := tw.Close(); err != nil {
		return nil, errors.Wrap(err, "cannot write layer")
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(buf.Bytes())), nil
	})
	return l, errors.Wrap(err, "cannot make layer")
}

// pack adds the package's YAML and the examples to its runtime image.
func (c *buildCmd) pack(ctx context.Context, p products.Product, base v1.Image) (v1.Image, error) {
	metaScheme, err := xpkg.BuildMetaScheme()
	if err != nil {
		return nil, errors.Wrap(err, "cannot build meta scheme")
	}
	objScheme, err := xpkg.BuildObjectScheme()
	if err != nil {
		return nil, errors.Wrap(err, "cannot build object scheme")
	}

	pkgFS, err := c.completed(p)
	if err != nil {
		return nil, err
	}
	b := xpkg.New(
		parser.NewFsBackend(pkgFS, parser.FsDir("/"), parser.FsFilters(parser.SkipDirs(), parser.SkipNotYAML(), parser.SkipEmpty())),
		parser.NewFsBackend(afero.NewOsFs(), parser.FsDir(c.Examples), parser.FsFilters(parser.SkipDirs(), parser.SkipNotYAML(), parser.SkipEmpty())),
		parser.New(metaScheme, objScheme), examples.New())
	img, _, err := b.Build(ctx, xpkg.WithBase(base))
	return img, errors.Wrap(err, "cannot build package")
}

// iconAnnotation names the icon of a package, for marketplaces. Its value in our files is iconPath.
// The names of annotations are from crossplane/crossplane, in
// design/defunct/one-pager-package-annotations.md.
const (
	iconAnnotation = "meta.crossplane.io/iconURI"
	iconPath       = "package/icon.svg"
)

// derived returns the files of a package that are made of others, by path.
func derived(p products.Product) (map[string][]byte, error) {
	switch p.Name {
	case products.Function:
		inputs, err := input.Files()
		out := make(map[string][]byte, len(inputs))
		for f, b := range inputs {
			out[filepath.Join("input", f)] = b
		}
		return out, err
	case products.ConfigurationClaims:
		return claims.Files()
	}
	return nil, nil
}

// completed returns a copy of a package's folder with its derived files, in which our dependencies have the
// constraint of the version that is being built, and the icon is a data URI.
func (c *buildCmd) completed(p products.Product) (afero.Fs, error) {
	dir := p.Package
	versions, err := constraint.For(c.Version)
	if err != nil {
		return nil, err
	}
	icon, err := os.ReadFile(filepath.Join(filepath.Dir(dir), filepath.Base(iconPath)))
	if err != nil {
		return nil, errors.Wrap(err, "cannot read icon")
	}
	mem := afero.NewMemMapFs()
	src := os.DirFS(dir)
	err = fs.WalkDir(src, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(src, path)
		if err != nil {
			return err
		}
		if path == "crossplane.yaml" {
			b = bytes.ReplaceAll(b, []byte(`version: "*"`), []byte(`version: "`+versions+`"`))
			b = bytes.ReplaceAll(b, []byte(iconAnnotation+": "+iconPath), []byte(iconAnnotation+": data:image/svg+xml;base64,"+base64.StdEncoding.EncodeToString(icon)))
		}
		return afero.WriteFile(mem, filepath.Join("/", path), b, 0o600)
	})
	if err != nil {
		return nil, errors.Wrapf(err, "cannot read package folder %q", dir)
	}
	files, err := derived(p)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot derive files of %q", dir)
	}
	for path, b := range files {
		if err := afero.WriteFile(mem, filepath.Join("/", path), b, 0o600); err != nil {
			return nil, errors.Wrapf(err, "cannot write %s", path)
		}
	}
	return mem, nil
}
