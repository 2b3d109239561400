// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/package/builder/internal/changelog"
	"github.com/tailscale-gateway/tailscale-gateway/package/builder/internal/constraint"
	"github.com/tailscale-gateway/tailscale-gateway/package/builder/internal/provenance"
	"github.com/tailscale-gateway/tailscale-gateway/package/builder/internal/sbom"
)

type releaseCmd struct {
	Registry   string   `arg:""                     help:"Registry and organization to push to, such as ghcr.io/tailscale-gateway."`
	Version    string   `required:""                help:"Version to release, with a leading v."`
	Arch       []string `default:"amd64,arm64"      help:"Architectures to build for."`
	Out        string   `default:"_out/release"     help:"Folder for the files of the release. It is emptied first." type:"path"`
	Examples   string   `default:"examples"         help:"Folder of examples to put into the packages."              type:"existingdir"`
	Charts     string   `default:"package/charts"   help:"Folder of charts. Empty releases no charts."`
	Package    string   `default:"package"          help:"Folder of what is shipped."                                type:"existingdir"`
	Changelog  string   `default:"CHANGELOG.md"     help:"Page with the release notes."                              type:"existingfile"`
	License    string   `default:"LICENSE"          help:"License of what is released."                              type:"existingfile"`
	Helm       string   `default:"helm"             help:"Path of helm."`
	Builder    string   `default:"${source}/blob/main/Makefile#release" help:"URI of what builds, for the provenance."`
	Invocation string   `help:"URI of the run that builds, for the provenance."`
	Sign       bool     `help:"Sign all artifacts with cosign, which needs the identity of a workflow. Signatures are public."`
	Cosign     string   `default:"cosign"           help:"Path of cosign."`
	Identity   string   `help:"URI of the workflow that signs, to verify the signatures."`
	PluginMain string   `default:"./cmd/kubectl-tailscale_gateway" help:"Go package of the kubectl plugin. Empty releases no plugin."`
	Public     bool     `help:"Verify without credentials that the registry has what was released, as users pull it."`
	Dirty      bool     `help:"Release a tree that differs from its commit, for tests."`

	products []products.Product
}

// An artifact is what a release pushed: the index of a product's images, or a chart.
type artifact struct {
	// Product is nil for a chart.
	Product *products.Product
	Tag     name.Tag
	Digest  v1.Hash
	// Images of a product, by architecture.
	Images map[string]v1.Hash
}

// ref returns the reference of a manifest of the artifact.
func (a artifact) ref(h v1.Hash) name.Digest { return a.Tag.Digest(h.String()) }

// name returns the name of the product or chart.
func (a artifact) name() string {
	return a.Tag.RepositoryStr()[strings.LastIndex(a.Tag.RepositoryStr(), "/")+1:]
}

// A commit is the state of the tree that a release is built from.
type commit struct {
	hash string
	time time.Time
}

// Run releases a version. Nothing is pushed before everything is built, and the tag of a release
// is never moved.
func (c *releaseCmd) Run(ctx context.Context) error {
	c.Registry = strings.TrimSuffix(c.Registry, "/")
	if c.products == nil {
		c.products = products.All()
	}
	if _, err := constraint.Parse(c.Version); err != nil {
		return err
	}
	if c.Sign && c.Identity == "" {
		return errors.New("signing needs --identity: the URI of the workflow that signs")
	}
	page, err := os.ReadFile(c.Changelog)
	if err != nil {
		return errors.Wrap(err, "cannot read changelog")
	}
	notes, err := changelog.Notes(string(page), c.Version)
	if err != nil {
		return err
	}
	head, err := c.head(ctx)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(c.Out); err != nil {
		return errors.Wrap(err, "cannot empty output folder")
	}

	build := &buildCmd{Out: filepath.Join(c.Out, "xpkg"), Arch: c.Arch, Version: c.Version, Examples: c.Examples, products: c.products, revision: head.hash, pin: true}
	if err := build.Run(ctx); err != nil {
		return err
	}
	if c.PluginMain != "" {
		if err := c.plugins(ctx, head); err != nil {
			return err
		}
	}
	chart := &chartCmd{Out: filepath.Join(c.Out, "charts"), Charts: c.Charts, Version: c.Version, Helm: c.Helm, digests: build.digests}
	var charts []string
	if c.Charts != "" {
		if charts, err = chart.pack(ctx, head.time); err != nil {
			return err
		}
	}

	arts, err := c.push(ctx, build, chart, charts)
	if err != nil {
		return err
	}
	sboms, err := c.sboms(ctx, build, arts, head)
	if err != nil {
		return err
	}
	predicate, err := c.provenance(ctx, arts, head)
	if err != nil {
		return err
	}
	if err := c.writeFiles(); err != nil {
		return err
	}
	if err := c.write(notes, arts); err != nil {
		return err
	}
	if c.Sign {
		if err := sign(ctx, c.Cosign, c.Identity, signatures(arts, sboms, predicate, filepath.Join(c.Out, "checksums.txt"))); err != nil {
			return err
		}
	}
	v := &verifier{version: c.Version, arch: c.Arch, commit: head.hash, charts: charts, digests: build.digests}
	if c.Public {
		ctx = withoutCredentials(ctx)
	}
	if err := v.verify(ctx, arts); err != nil {
		return errors.Wrap(err, "the registry does not have what was released, or does not show it to everybody: CONTRIBUTING.md, \"Release\"")
	}
	fmt.Printf("released %s to %s: notes, checksums and documents are in %s\n", c.Version, c.Registry, c.Out)
	return nil
}

// head returns the commit of the tree. A provenance that names a commit must be true.
func (c *releaseCmd) head(ctx context.Context) (commit, error) {
	changes, err := exec.CommandContext(ctx, "git", "status", "--porcelain").Output()
	if err != nil {
		return commit{}, errors.Wrap(err, "cannot read the state of the tree")
	}
	if len(changes) > 0 && !c.Dirty {
		return commit{}, errors.Errorf("the tree differs from its commit: commit these changes\n%s", changes)
	}
	out, err := exec.CommandContext(ctx, "git", "log", "-1", "--format=%H %ct").Output()
	if err != nil {
		return commit{}, errors.Wrap(err, "cannot read the commit of the tree")
	}
	hash, seconds, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	s, err := strconv.ParseInt(seconds, 10, 64)
	return commit{hash: hash, time: time.Unix(s, 0)}, errors.Wrap(err, "cannot parse the time of the commit")
}

// push pushes all products, each after its dependencies, and then all charts.
func (c *releaseCmd) push(ctx context.Context, build *buildCmd, chart *chartCmd, charts []string) ([]artifact, error) {
	indexes := make([]v1.ImageIndex, len(c.products))
	arts := make([]artifact, len(c.products))
	for i, p := range c.products {
		ref, err := tag(c.Registry, p.Name, c.Version)
		if err != nil {
			return nil, err
		}
		b, err := build.index(p)
		if err != nil {
			return nil, err
		}
		if err := c.keep(ctx, ref, b.digest); err != nil {
			return nil, err
		}
		indexes[i], arts[i] = b.index, artifact{Product: &p, Tag: ref, Digest: b.digest, Images: b.images}
	}
	for i, a := range arts {
		if err := remote.WriteIndex(a.Tag, indexes[i], registryOptions(ctx)...); err != nil {
			return nil, errors.Wrapf(err, "cannot push %s", a.Tag)
		}
		fmt.Printf("pushed %s@%s\n", a.Tag, a.Digest)
	}
	for _, f := range charts {
		a, err := chart.push(ctx, c.Registry, f)
		if err != nil {
			return nil, err
		}
		fmt.Printf("pushed %s@%s\n", a.Tag, a.Digest)
		arts = append(arts, a)
	}
	return arts, nil
}

// keep returns an error if a registry has other content under the tag of a release.
func (c *releaseCmd) keep(ctx context.Context, ref name.Tag, digest v1.Hash) error {
	d, err := remote.Head(ref, registryOptions(ctx)...)
	if absent(err) {
		return nil
	}
	if err != nil {
		return errors.Wrapf(err, "cannot read %s", ref)
	}
	if v, err := constraint.Parse(c.Version); err != nil || v.Prerelease() != "" || d.Digest == digest {
		return err
	}
	return errors.Errorf("%s exists with digest %s, and the tag of a release is not moved to %s: release another version", ref, d.Digest, digest)
}

// absent reports whether an error says that a registry has no such repository or tag. Some answer
// 403 for a repository that does not exist; a push is then refused or creates it.
func absent(err error) bool {
	var response *transport.Error
	return errors.As(err, &response) && (response.StatusCode == http.StatusNotFound || response.StatusCode == http.StatusForbidden)
}

// sboms attaches an SBOM to each image with a binary, and returns their files by image.
func (c *releaseCmd) sboms(ctx context.Context, build *buildCmd, arts []artifact, head commit) (map[string]string, error) {
	out := map[string]string{}
	for _, a := range arts {
		if a.Product == nil || a.Product.Main == "" {
			continue
		}
		for _, arch := range c.Arch {
			info, err := buildinfo.ReadFile(build.binary(*a.Product, arch))
			if err != nil {
				return nil, errors.Wrap(err, "cannot read build info")
			}
			img := a.Images[arch]
			doc, err := sbom.New(sbom.Artifact{
				Name: a.Product.Name, Version: c.Version, Platform: "linux/" + arch, Purpose: sbom.PurposeContainer, Hex: img.Hex, Source: source, Created: head.time,
			}, info)
			if err != nil {
				return nil, err
			}
			f := filepath.Join(c.Out, "sbom", a.Product.Name+"-"+arch+".spdx.json")
			if err := writeFile(f, doc); err != nil {
				return nil, err
			}
			if err := attach(ctx, a.ref(img), sbom.MediaType, filepath.Base(f), doc); err != nil {
				return nil, err
			}
			out[a.ref(img).String()] = f
		}
	}
	return out, nil
}

// provenance attaches a statement to each artifact, and returns the file of the predicate that
// they share.
func (c *releaseCmd) provenance(ctx context.Context, arts []artifact, head commit) (string, error) {
	b := c.build(head)
	predicate, err := provenance.Predicate(b)
	if err != nil {
		return "", err
	}
	f := filepath.Join(c.Out, "provenance", "predicate.json")
	if err := writeFile(f, predicate); err != nil {
		return "", err
	}
	for _, a := range arts {
		subjects := []provenance.Subject{{Name: a.Tag.Repository.Name(), SHA256: a.Digest.Hex}}
		for _, arch := range c.Arch {
			if img, ok := a.Images[arch]; ok {
				subjects = append(subjects, provenance.Subject{Name: a.Tag.Repository.Name(), SHA256: img.Hex})
			}
		}
		statement, err := provenance.Statement(b, subjects...)
		if err != nil {
			return "", err
		}
		file := filepath.Join(c.Out, "provenance", a.name()+".intoto.json")
		if err := writeFile(file, statement); err != nil {
			return "", err
		}
		if err := attach(ctx, a.ref(a.Digest), provenance.MediaType, filepath.Base(file), statement); err != nil {
			return "", err
		}
	}
	return f, nil
}

// build returns what the provenance of all artifacts says.
func (c *releaseCmd) build(head commit) provenance.Build {
	return provenance.Build{
		Source: source, Commit: head.hash, Version: c.Version, Arch: c.Arch, Go: runtime.Version(),
		Builder: c.Builder, Invocation: c.Invocation,
	}
}

// assets are the files of a GitHub release by their patterns in the output folder, besides the list of their
// checksums.
var assets = []string{"xpkg/*.xpkg", "xpkg/*.tar", "charts/*.tgz", "sbom/*.json", "provenance/*.intoto.json", "plugin/*.tar.gz", "plugin/*.zip", "plugin/*.yaml", "files/*", "images.txt"}

// write writes the release notes, the list of all that an installation pulls, and the checksums of all files.
func (c *releaseCmd) write(notes string, arts []artifact) error {
	if err := writeFile(filepath.Join(c.Out, "release-notes.md"), []byte(notes)); err != nil {
		return err
	}
	list := &strings.Builder{}
	for _, a := range arts {
		fmt.Fprintf(list, "%s@%s\n", a.Tag, a.Digest)
	}
	// Proxies need it, too.
	fmt.Fprintln(list, products.Tailscale)
	if err := writeFile(filepath.Join(c.Out, "images.txt"), []byte(list.String())); err != nil {
		return err
	}
	var files []string
	for _, pattern := range assets {
		found, err := filepath.Glob(filepath.Join(c.Out, pattern))
		if err != nil {
			return errors.Wrap(err, "cannot list files")
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	sums := &strings.Builder{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return errors.Wrap(err, "cannot read file of release")
		}
		// All names differ, so the files of a GitHub release need no folders.
		fmt.Fprintf(sums, "%s  %s\n", checksum(b), filepath.Base(f))
	}
	return writeFile(filepath.Join(c.Out, "checksums.txt"), []byte(sums.String()))
}

// signatures returns what cosign signs: each artifact with its images, each SBOM, the provenance
// of each artifact, and the checksums.
func signatures(arts []artifact, sboms map[string]string, predicate, checksums string) []signature {
	var out []signature
	for _, a := range arts {
		ref := a.ref(a.Digest).String()
		out = append(out,
			signature{reference: ref, recursive: a.Product != nil},
			signature{reference: ref, predicate: predicate, predicateType: "slsaprovenance1"})
		for _, arch := range sortedKeys(a.Images) {
			img := a.ref(a.Images[arch]).String()
			if f, ok := sboms[img]; ok {
				out = append(out, signature{reference: img, predicate: f, predicateType: "spdxjson"})
			}
		}
	}
	return append(out, signature{file: checksums})
}

func sortedKeys(m map[string]v1.Hash) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func checksum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func writeFile(file string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return errors.Wrap(err, "cannot make folder")
	}
	return errors.Wrap(os.WriteFile(file, b, 0o644), "cannot write file")
}
