// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"debug/buildinfo"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/package/builder/internal/provenance"
	"github.com/tailscale-gateway/tailscale-gateway/package/builder/internal/sbom"
)

const (
	// pluginBinary is the name by which kubectl finds the plugin as kubectl tailscale-gateway.
	pluginBinary = "kubectl-tailscale_gateway"

	// pluginName is the plugin's name in an index of krew.
	pluginName = "tailscale-gateway"
)

// A pluginSystem is an operating system of the plugin, and the form in which its users expect programs.
type pluginSystem struct {
	name string

	// binary is the name of the program, and ending that of the archive.
	binary, ending string

	// pack returns an archive with files of one time.
	pack func(at time.Time, files ...packedFile) ([]byte, error)
}

// pluginSystems are the operating systems of the plugin. Its architectures are those of the release.
var pluginSystems = []pluginSystem{
	{name: "darwin", binary: pluginBinary, ending: ".tar.gz", pack: packTar},
	{name: "linux", binary: pluginBinary, ending: ".tar.gz", pack: packTar},
	{name: "windows", binary: pluginBinary + ".exe", ending: ".zip", pack: packZip},
}

// A pluginArchive is the plugin for one platform.
type pluginArchive struct{ system, arch, binary, file, sum string }

// plugins builds an archive of the plugin for each platform, with its SBOM, the provenance of all, and the
// manifest for krew. The same commit gives the same archives.
func (c *releaseCmd) plugins(ctx context.Context, head commit) error {
	license, err := os.ReadFile(c.License)
	if err != nil {
		return errors.Wrap(err, "cannot read the license")
	}
	var archives []pluginArchive
	var subjects []provenance.Subject
	for _, system := range pluginSystems {
		for _, arch := range c.Arch {
			a, err := c.plugin(ctx, system, arch, license, head)
			if err != nil {
				return err
			}
			archives = append(archives, a)
			subjects = append(subjects, provenance.Subject{Name: a.file, SHA256: a.sum})
		}
	}
	statement, err := provenance.Statement(c.build(head), subjects...)
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(c.Out, "provenance", pluginBinary+".intoto.json"), statement); err != nil {
		return err
	}
	manifest, err := krew(c.Version, archives)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(c.Out, "plugin", pluginName+".krew.yaml"), manifest)
}

// plugin builds the archive of the plugin for a platform, and its SBOM.
func (c *releaseCmd) plugin(ctx context.Context, system pluginSystem, arch string, license []byte, head commit) (pluginArchive, error) {
	name := pluginBinary + "-" + system.name + "-" + arch
	a := pluginArchive{system: system.name, arch: arch, binary: system.binary, file: name + system.ending}
	bin := filepath.Join(c.Out, "plugin", "bin", system.name+"-"+arch, system.binary)
	if err := compileFor(ctx, c.PluginMain, nil, system.name, arch, map[string]string{"version.Version": c.Version}, bin); err != nil {
		return a, err
	}
	binary, err := os.ReadFile(bin)
	if err != nil {
		return a, errors.Wrap(err, "cannot read the plugin")
	}
	packed, err := system.pack(head.time, packedFile{name: system.binary, mode: 0o755, content: binary}, packedFile{name: "LICENSE", mode: 0o644, content: license})
	if err != nil {
		return a, err
	}
	a.sum = checksum(packed)
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return a, errors.Wrap(err, "cannot read build info")
	}
	document, err := sbom.New(sbom.Artifact{
		Name: pluginBinary, Version: c.Version, Platform: system.name + "/" + arch, Purpose: sbom.PurposeArchive, Hex: a.sum, Source: source, Created: head.time,
	}, info)
	if err != nil {
		return a, err
	}
	return a, errors.Join(
		writeFile(filepath.Join(c.Out, "plugin", a.file), packed),
		writeFile(filepath.Join(c.Out, "sbom", name+".spdx.json"), document))
}

// compileFor compiles a static binary with build tags. Its variables, by PACKAGE.NAME of packages in internal, get these
// values.
func compileFor(ctx context.Context, main string, tags []string, system, arch string, variables map[string]string, out string) error {
	ld := []string{"-s", "-w"}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		ld = append(ld, "-X", products.Module+"/internal/"+name+"="+variables[name])
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", strings.Join(tags, ","), "-ldflags", strings.Join(ld, " "), "-o", out, main)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return errors.Wrapf(cmd.Run(), "cannot compile %s", main)
}

// A packedFile is a file in an archive.
type packedFile struct {
	name    string
	mode    fs.FileMode
	content []byte
}

// packTar returns a compressed tar archive with files of one time.
func packTar(at time.Time, files ...packedFile) ([]byte, error) {
	out := &bytes.Buffer{}
	z := gzip.NewWriter(out)
	t := tar.NewWriter(z)
	for _, f := range files {
		if err := t.WriteHeader(&tar.Header{Name: f.name, Mode: int64(f.mode), Size: int64(len(f.content)), ModTime: at.UTC(), Format: tar.FormatPAX}); err != nil {
			return nil, errors.Wrapf(err, "cannot pack %s", f.name)
		}
		if _, err := t.Write(f.content); err != nil {
			return nil, errors.Wrapf(err, "cannot pack %s", f.name)
		}
	}
	// The writers have more to write when they are closed.
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return nil, errors.Wrap(err, "cannot end the archive")
	}
	return out.Bytes(), nil
}

// packZip returns a zip archive with files of one time.
func packZip(at time.Time, files ...packedFile) ([]byte, error) {
	out := &bytes.Buffer{}
	z := zip.NewWriter(out)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at.UTC()}
		h.SetMode(f.mode)
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, errors.Wrapf(err, "cannot pack %s", f.name)
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, errors.Wrapf(err, "cannot pack %s", f.name)
		}
	}
	// The writer writes the directory of the archive when it is closed.
	if err := z.Close(); err != nil {
		return nil, errors.Wrap(err, "cannot end the archive")
	}
	return out.Bytes(), nil
}

// krew returns the plugin's manifest for krew (krew.sigs.k8s.io/docs/developer-guide/plugin-manifest).
func krew(version string, archives []pluginArchive) ([]byte, error) {
	type object = map[string]any
	var platforms []object
	for _, a := range archives {
		platforms = append(platforms, object{
			"selector": object{"matchLabels": object{"os": a.system, "arch": a.arch}},
			"uri":      source + "/releases/download/" + version + "/" + a.file,
			"sha256":   a.sum,
			"bin":      a.binary,
		})
	}
	b, err := yaml.Marshal(object{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   object{"name": pluginName},
		"spec": object{
			"version":          version,
			"homepage":         source,
			"shortDescription": "Finds what Tailscale Gateway left in a tailnet",
			"description":      "Lists objects of a tailnet that this cluster made and that no object of the\ncluster owns any more, and deletes them on request.\n",
			"platforms":        platforms,
		},
	})
	return b, errors.Wrap(err, "cannot encode the manifest for krew")
}
