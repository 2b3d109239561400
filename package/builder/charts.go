// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
	"github.com/tailscale-gateway/tailscale-gateway/package/builder/internal/constraint"
)

// chartMediaType is the media type of the layer with a chart:
// https://helm.sh/docs/topics/registries/.
const chartMediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

type chartCmd struct {
	Out     string `default:"_out/charts"    help:"Folder for the packaged charts." type:"path"`
	Charts  string `default:"package/charts" help:"Folder of charts."               type:"existingdir"`
	Version string `default:"v0.1.0-dev"     help:"Version of the charts, and of the images that they install."`
	Helm    string `default:"helm"           help:"Path of helm."`

	// digests of the images that the charts name, as NAME=sha256:... of a release. Without any, charts
	// name images by tag.
	digests []string
}

// Run packages each chart.
func (c *chartCmd) Run(ctx context.Context) error {
	files, err := c.pack(ctx, time.Unix(0, 0))
	for _, f := range files {
		fmt.Printf("packaged %s\n", f)
	}
	return err
}

// pack packages each folder with a Chart.yaml, and returns the archives in the order of their
// names. All files in them have the given time, so that the same charts have the same bytes.
func (c *chartCmd) pack(ctx context.Context, modified time.Time) ([]string, error) {
	if err := os.MkdirAll(c.Out, 0o750); err != nil {
		return nil, errors.Wrap(err, "cannot make folder for charts")
	}
	tmp, err := os.MkdirTemp("", "charts")
	if err != nil {
		return nil, errors.Wrap(err, "cannot make temporary folder")
	}
	defer os.RemoveAll(tmp)

	metas, err := filepath.Glob(filepath.Join(c.Charts, "*", "Chart.yaml"))
	if err != nil || len(metas) == 0 {
		return nil, errors.Errorf("no charts in %q", c.Charts)
	}
	// A chart finds its dependencies beside it: its folder charts has symbolic links to them.
	for _, m := range metas {
		dir := filepath.Join(tmp, filepath.Base(filepath.Dir(m)))
		if err := os.CopyFS(dir, os.DirFS(filepath.Dir(m))); err != nil {
			return nil, errors.Wrap(err, "cannot copy chart")
		}
		if err := stamp(filepath.Join(dir, "Chart.yaml"), c.Version, c.digests); err != nil {
			return nil, err
		}
	}
	var out []string
	for _, m := range metas {
		chart := filepath.Base(filepath.Dir(m))
		cmd := exec.CommandContext(ctx, c.Helm, "package", "--destination="+c.Out, filepath.Join(tmp, chart))
		if b, err := cmd.CombinedOutput(); err != nil {
			return nil, errors.Wrapf(err, "cannot package chart %s: %s", chart, strings.TrimSpace(string(b)))
		}
		f := filepath.Join(c.Out, chart+"-"+strings.TrimPrefix(c.Version, "v")+".tgz")
		if err := normalize(f, modified); err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// unknownDigest follows the name of an image in an annotation of a chart, by which its templates name the
// image of a release.
const unknownDigest = `-digest: ""`

// stamp replaces the version of the tree in a chart's metadata: its version, that of its images,
// and those of our charts that it depends on. If there are digests, it also sets those of the images
// that the metadata has an annotation for.
func stamp(file, to string, digests []string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return errors.Wrap(err, "cannot read chart")
	}
	from := []byte(strings.TrimPrefix(version.Version, "v"))
	if bytes.Count(b, from) < 2 {
		return errors.Errorf("%q names version %s less than twice: as version and as appVersion", file, from)
	}
	b = bytes.ReplaceAll(b, from, []byte(strings.TrimPrefix(to, "v")))
	for _, d := range digests {
		image, sum, _ := strings.Cut(d, "=")
		b = bytes.ReplaceAll(b, []byte(image+unknownDigest), []byte(image+strings.Replace(unknownDigest, `""`, sum, 1)))
	}
	if len(digests) > 0 && bytes.Contains(b, []byte(unknownDigest)) {
		return errors.Errorf("%q names an image that was not built", file)
	}
	return errors.Wrap(os.WriteFile(file, b, 0o644), "cannot write chart")
}

// normalize rewrites an archive so that its bytes depend only on the files in it.
func normalize(file string, modified time.Time) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return errors.Wrap(err, "cannot read chart")
	}
	zr, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return errors.Wrap(err, "cannot decompress chart")
	}
	buf := &bytes.Buffer{}
	zw := gzip.NewWriter(buf)
	tr, tw := tar.NewReader(zr), tar.NewWriter(zw)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Wrap(err, "cannot read chart")
		}
		if err := tw.WriteHeader(&tar.Header{Typeflag: h.Typeflag, Name: h.Name, Mode: 0o644, Size: h.Size, ModTime: modified}); err != nil {
			return errors.Wrap(err, "cannot write chart")
		}
		if _, err := io.CopyN(tw, tr, h.Size); err != nil {
			return errors.Wrap(err, "cannot write chart")
		}
	}
	if err := tw.Close(); err != nil {
		return errors.Wrap(err, "cannot write chart")
	}
	if err := zw.Close(); err != nil {
		return errors.Wrap(err, "cannot compress chart")
	}
	return errors.Wrap(os.WriteFile(file, buf.Bytes(), 0o644), "cannot write chart")
}

// push pushes an archive with helm, and returns the artifact. An archive that the registry already
// has stays as it is: helm adds the time to the manifest.
func (c *chartCmd) push(ctx context.Context, registry, file string) (artifact, error) {
	chart := strings.TrimSuffix(filepath.Base(file), "-"+strings.TrimPrefix(c.Version, "v")+".tgz")
	ref, err := name.NewTag(registry + "/charts/" + chart + ":" + strings.TrimPrefix(c.Version, "v"))
	if err != nil {
		return artifact{}, errors.Wrap(err, "cannot parse chart name")
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return artifact{}, errors.Wrap(err, "cannot read chart")
	}
	if a, err := c.existing(ctx, ref, checksum(content)); err != nil || a.Digest.Hex != "" {
		return a, err
	}
	args := []string{"push", file, "oci://" + registry + "/charts"}
	if ref.Scheme() == "http" {
		args = append(args, "--plain-http")
	}
	if b, err := exec.CommandContext(ctx, c.Helm, args...).CombinedOutput(); err != nil {
		return artifact{}, errors.Wrapf(err, "cannot push chart %s: %s", chart, strings.TrimSpace(string(b)))
	}
	d, err := remote.Head(ref, registryOptions(ctx)...)
	if err != nil {
		return artifact{}, errors.Wrapf(err, "cannot read %s", ref)
	}
	return artifact{Tag: ref, Digest: d.Digest}, nil
}

// existing returns the artifact of a chart that the registry has, if its archive has this
// checksum. The tag of a release is not moved to another archive.
func (c *chartCmd) existing(ctx context.Context, ref name.Tag, sum string) (artifact, error) {
	img, err := remote.Image(ref, registryOptions(ctx)...)
	if absent(err) {
		return artifact{}, nil
	}
	if err != nil {
		return artifact{}, errors.Wrapf(err, "cannot read %s", ref)
	}
	m, err := img.Manifest()
	if err != nil {
		return artifact{}, errors.Wrapf(err, "cannot read %s", ref)
	}
	if slices.ContainsFunc(m.Layers, func(l v1.Descriptor) bool { return l.Digest.Hex == sum }) {
		d, err := img.Digest()
		return artifact{Tag: ref, Digest: d}, errors.Wrapf(err, "cannot read %s", ref)
	}
	if v, err := constraint.Parse(c.Version); err != nil || v.Prerelease() != "" {
		return artifact{}, err
	}
	return artifact{}, errors.Errorf("%s exists with other content, and the tag of a release is not moved: release another version", ref)
}
