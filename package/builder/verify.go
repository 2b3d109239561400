// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg"
	pkgmetav1 "github.com/crossplane/crossplane/apis/v2/pkg/meta/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/package/builder/internal/constraint"
	"github.com/tailscale-gateway/tailscale-gateway/package/builder/internal/provenance"
	"github.com/tailscale-gateway/tailscale-gateway/package/builder/internal/sbom"
)

// machines are the architectures of ELF files, and qemu the programs that run them elsewhere:
// Debian's qemu-user-static or qemu-user.
var (
	machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	qemu     = map[string][]string{"amd64": {"qemu-x86_64-static", "qemu-x86_64"}, "arm64": {"qemu-aarch64-static", "qemu-aarch64"}}
)

// A verifier compares a registry with what was released. It pulls everything by tag, as users do.
type verifier struct {
	version string
	arch    []string
	commit  string
	// charts are the archives that were pushed.
	charts []string
	// digests are those by which binaries of packages name images.
	digests []string
}

// verify returns the first difference.
func (v *verifier) verify(ctx context.Context, arts []artifact) error {
	for _, a := range arts {
		d, err := remote.Head(a.Tag, registryOptions(ctx)...)
		if err != nil {
			return errors.Wrapf(err, "cannot read %s", a.Tag)
		}
		if d.Digest != a.Digest {
			return errors.Errorf("%s has digest %s, want %s", a.Tag, d.Digest, a.Digest)
		}
		check := v.chart
		if a.Product != nil {
			check = v.product
		}
		if err := check(ctx, a); err != nil {
			return errors.Wrapf(err, "%s", a.Tag)
		}
		statement, err := attached(ctx, a.ref(a.Digest), provenance.MediaType)
		if err != nil {
			return err
		}
		for _, h := range append([]v1.Hash{a.Digest}, digests(a)...) {
			if err := provenance.Check(statement, h.Hex, v.commit); err != nil {
				return errors.Wrapf(err, "%s", a.Tag)
			}
		}
	}
	return nil
}

// digests returns the digests of a product's images.
func digests(a artifact) []v1.Hash {
	out := make([]v1.Hash, 0, len(a.Images))
	for _, arch := range sortedKeys(a.Images) {
		out = append(out, a.Images[arch])
	}
	return out
}

// product checks that a product's index has one image for each architecture, and checks these.
func (v *verifier) product(ctx context.Context, a artifact) error {
	idx, err := remote.Index(a.Tag, registryOptions(ctx)...)
	if err != nil {
		return errors.Wrap(err, "cannot pull index")
	}
	m, err := idx.IndexManifest()
	if err != nil {
		return errors.Wrap(err, "cannot read index")
	}
	var found []string
	for _, d := range m.Manifests {
		if d.Platform == nil || d.Platform.OS != "linux" {
			return errors.Errorf("%s is for no Linux", d.Digest)
		}
		found = append(found, d.Platform.Architecture)
		img, err := idx.Image(d.Digest)
		if err != nil {
			return errors.Wrap(err, "cannot pull image")
		}
		if err := v.image(ctx, a, d, img); err != nil {
			return errors.Wrapf(err, "image for %s", d.Platform.Architecture)
		}
	}
	slices.Sort(found)
	if want := slices.Sorted(slices.Values(v.arch)); !slices.Equal(want, found) {
		return errors.Errorf("the index has images for %v, want %v", found, want)
	}
	return nil
}

// image checks one image: its config, its binary with the SBOM, and its package.
func (v *verifier) image(ctx context.Context, a artifact, d v1.Descriptor, img v1.Image) error {
	arch := d.Platform.Architecture
	cfg, err := img.ConfigFile()
	if err != nil {
		return errors.Wrap(err, "cannot read image config")
	}
	if cfg.OS != "linux" || cfg.Architecture != arch {
		return errors.Errorf("the config is for %s/%s", cfg.OS, cfg.Architecture)
	}
	for label, want := range map[string]string{"version": v.version, "revision": v.commit, "source": source} {
		if value := cfg.Config.Labels["org.opencontainers.image."+label]; value != want {
			return errors.Errorf("label %s is %q, want %q", label, value, want)
		}
	}
	if a.Product.Package != "" {
		if err := v.pack(*a.Product, img); err != nil {
			return err
		}
	}
	if a.Product.Main == "" {
		return nil
	}

	binary, err := fileOf(img, "usr/local/bin/"+path.Base(a.Product.Main))
	if err != nil {
		return err
	}
	f, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		return errors.Wrap(err, "the binary is no ELF file")
	}
	if f.Machine != machines[arch] {
		return errors.Errorf("the binary is for %s", f.Machine)
	}
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return errors.Wrap(err, "cannot read build info")
	}
	document, err := attached(ctx, a.ref(d.Digest), sbom.MediaType)
	if err != nil {
		return err
	}
	if err := sbom.Check(document, d.Digest.Hex, info); err != nil {
		return err
	}
	if pinned := strings.Join(v.digests, ","); a.Product.Package != "" && !bytes.Contains(binary, []byte(pinned)) {
		return errors.Errorf("the binary does not name the images %s", pinned)
	}
	outcome, err := v.start(ctx, arch, binary)
	if err != nil {
		return err
	}
	fmt.Printf("verified %s for %s: %d modules in its SBOM; %s\n", a.Tag, arch, len(info.Deps), outcome)
	return nil
}

// pack checks a package: Crossplane finds its layer by an annotation, and a configuration accepts
// the packages of its release.
func (v *verifier) pack(p products.Product, img v1.Image) error {
	m, err := img.Manifest()
	if err != nil {
		return errors.Wrap(err, "cannot read manifest")
	}
	if !slices.ContainsFunc(m.Layers, func(l v1.Descriptor) bool { return l.Annotations[xpkg.AnnotationKey] == xpkg.PackageAnnotation }) {
		return errors.Errorf("no layer has the annotation %s: %s", xpkg.AnnotationKey, xpkg.PackageAnnotation)
	}
	b, err := fileOf(img, xpkg.StreamFile)
	if err != nil {
		return err
	}
	// The metadata comes first.
	first, _, _ := strings.Cut(strings.TrimPrefix(string(b), "---\n"), "\n---\n")
	meta := &pkgmetav1.Configuration{}
	if err := yaml.Unmarshal([]byte(first), meta); err != nil {
		return errors.Wrap(err, "cannot decode package")
	}
	if meta.Name != p.Name {
		return errors.Errorf("the package's name is %q", meta.Name)
	}
	version, err := constraint.Parse(v.version)
	if err != nil {
		return err
	}
	for _, d := range meta.Spec.DependsOn {
		if d.Package == nil || !strings.HasPrefix(*d.Package, products.Organization+"/") {
			continue
		}
		c, err := semver.NewConstraint(d.Version)
		if err != nil {
			return errors.Wrapf(err, "cannot parse the constraint on %s", *d.Package)
		}
		if d.Version == "*" || !c.Check(version) {
			return errors.Errorf("the constraint %q on %s does not fit the release", d.Version, *d.Package)
		}
	}
	return nil
}

// start runs a binary with --version, by qemu if it is for another architecture, and returns
// what it did.
func (v *verifier) start(ctx context.Context, arch string, binary []byte) (string, error) {
	var runner []string
	outcome := "answers --version"
	if arch != runtime.GOARCH || runtime.GOOS != "linux" {
		for _, q := range qemu[arch] {
			if p, err := exec.LookPath(q); err == nil {
				runner, outcome = []string{p}, outcome+" in "+q
				break
			}
		}
		if runner == nil {
			return "not started, because this machine has no " + qemu[arch][0], nil
		}
	}
	dir, err := os.MkdirTemp("", "release")
	if err != nil {
		return "", errors.Wrap(err, "cannot make temporary folder")
	}
	defer os.RemoveAll(dir)
	f := filepath.Join(dir, "binary")
	if err := os.WriteFile(f, binary, 0o700); err != nil {
		return "", errors.Wrap(err, "cannot write binary")
	}
	args := slices.Concat(runner, []string{f, "--version"})
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return "", errors.Wrapf(err, "the binary fails: %s", strings.TrimSpace(string(out)))
	}
	if reported := strings.TrimSpace(string(out)); reported != v.version {
		return "", errors.Errorf("the binary's version is %q", reported)
	}
	return outcome, nil
}

// chart checks that a chart's layer is the archive that was packaged.
func (v *verifier) chart(ctx context.Context, a artifact) error {
	img, err := remote.Image(a.Tag, registryOptions(ctx)...)
	if err != nil {
		return errors.Wrap(err, "cannot pull chart")
	}
	m, err := img.Manifest()
	if err != nil {
		return errors.Wrap(err, "cannot read manifest")
	}
	file := a.name() + "-" + strings.TrimPrefix(v.version, "v") + ".tgz"
	i := slices.IndexFunc(v.charts, func(f string) bool { return filepath.Base(f) == file })
	if i < 0 {
		return errors.Errorf("%s was not packaged", file)
	}
	b, err := os.ReadFile(v.charts[i])
	if err != nil {
		return errors.Wrap(err, "cannot read chart")
	}
	if !slices.ContainsFunc(m.Layers, func(l v1.Descriptor) bool { return l.MediaType == chartMediaType && l.Digest.Hex == checksum(b) }) {
		return errors.Errorf("no layer is %s", file)
	}
	fmt.Printf("verified %s\n", a.Tag)
	return nil
}

// fileOf returns a file of an image.
func fileOf(img v1.Image, file string) ([]byte, error) {
	r := mutate.Extract(img)
	defer r.Close()
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil, errors.Errorf("the image has no file %s", file)
		}
		if err != nil {
			return nil, errors.Wrap(err, "cannot read image")
		}
		if h.Name == file {
			b, err := io.ReadAll(tr)
			return b, errors.Wrapf(err, "cannot read %s", file)
		}
	}
}
