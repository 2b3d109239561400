// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	// pluginBinary is the name by which kubectl finds the plugin as kubectl tailscale-gateway.
	pluginBinary = "kubectl-tailscale_gateway"

	// pluginName is the plugin's name in an index of krew.
	pluginName = "tailscale-gateway"
)

// pluginSystems are the operating systems of the plugin. Its architectures are those of the release.
var pluginSystems = []string{"darwin", "linux"}

// A pluginArchive is the plugin for one platform.
type pluginArchive struct{ system, arch, file, sum string }

// plugins builds an archive of the plugin for each platform, and the manifest for krew. The same
// commit gives the same archives.
func (c *releaseCmd) plugins(ctx context.Context, main string, head commit) error {
	dir := filepath.Join(c.Out, "plugin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return errors.Wrap(err, "cannot make folder for the plugin")
	}
	var archives []pluginArchive
	for _, system := range pluginSystems {
		for _, arch := range c.Arch {
			bin := filepath.Join(dir, "bin", system+"-"+arch, pluginBinary)
			if err := compileFor(ctx, main, system, arch, c.Version, bin); err != nil {
				return err
			}
			b, err := os.ReadFile(bin)
			if err != nil {
				return errors.Wrap(err, "cannot read the plugin")
			}
			packed, err := packPlugin(b, head.time)
			if err != nil {
				return err
			}
			a := pluginArchive{system: system, arch: arch, file: pluginBinary + "-" + system + "-" + arch + ".tar.gz", sum: checksum(packed)}
			if err := writeFile(filepath.Join(dir, a.file), packed); err != nil {
				return err
			}
			archives = append(archives, a)
		}
	}
	manifest, err := krew(c.Version, archives)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, pluginName+".krew.yaml"), manifest)
}

// compileFor compiles a static binary.
func compileFor(ctx context.Context, main, system, arch, version, out string) error {
	ld := "-s -w -X github.com/tailscale-gateway/tailscale-gateway/internal/version.Version=" + version
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", ld, "-o", out, main)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return errors.Wrapf(cmd.Run(), "cannot compile %s", main)
}

// packPlugin returns an archive with the plugin.
func packPlugin(binary []byte, at time.Time) ([]byte, error) {
	out := &bytes.Buffer{}
	z := gzip.NewWriter(out)
	t := tar.NewWriter(z)
	if err := t.WriteHeader(&tar.Header{Name: pluginBinary, Mode: 0o755, Size: int64(len(binary)), ModTime: at.UTC(), Format: tar.FormatPAX}); err != nil {
		return nil, errors.Wrap(err, "cannot pack the plugin")
	}
	if _, err := t.Write(binary); err != nil {
		return nil, errors.Wrap(err, "cannot pack the plugin")
	}
	// The writers have more to write when they are closed.
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return nil, errors.Wrap(err, "cannot pack the plugin")
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
			"bin":      pluginBinary,
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
