// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/package/builder/internal/provenance"
	"github.com/tailscale-gateway/tailscale-gateway/package/builder/internal/sbom"
)

// TestPlugins builds archives of a small program for all platforms, and compares them with the
// manifest for krew.
func TestPlugins(t *testing.T) {
	dir := t.TempDir()
	head := commit{hash: strings.Repeat("c", 40), time: time.Unix(1, 0)}
	release := func(subdir string) *releaseCmd {
		c := &releaseCmd{
			Out: filepath.Join(dir, subdir), Version: "v0.0.1", Arch: []string{"amd64", "arm64"}, Builder: source,
			PluginMain: "./testdata/hello", License: "../../LICENSE",
		}
		if err := c.plugins(t.Context(), head); err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := release("a")
	release("b")
	b, err := os.ReadFile(filepath.Join(c.Out, "plugin", pluginName+".krew.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Spec struct {
			Platforms []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
			}
		}
	}
	if err := yaml.UnmarshalStrict(b, &struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Spec             map[string]any
	}{}); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	license, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	statement, err := os.ReadFile(filepath.Join(c.Out, "provenance", pluginBinary+".intoto.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Spec.Platforms) != 6 {
		t.Errorf("want 6 platforms, got %d", len(m.Spec.Platforms))
	}
	for _, p := range m.Spec.Platforms {
		file := filepath.Base(p.URI)
		system, ending, binary := p.Selector.MatchLabels["os"], ".tar.gz", pluginBinary
		if system == "windows" {
			ending, binary = ".zip", pluginBinary+".exe"
		}
		platform := system + "-" + p.Selector.MatchLabels["arch"]
		if want := pluginBinary + "-" + platform + ending; file != want {
			t.Errorf("%s: the archive of %s is %s", want, platform, file)
		}
		packed, err := os.ReadFile(filepath.Join(c.Out, "plugin", file))
		if err != nil {
			t.Fatal(err)
		}
		second, err := os.ReadFile(filepath.Join(dir, "b", "plugin", file))
		if err != nil {
			t.Fatal(err)
		}
		if checksum(packed) != p.SHA256 || checksum(second) != p.SHA256 {
			t.Errorf("%s: the manifest has the digest %s, the archives have %s and %s", file, p.SHA256, checksum(packed), checksum(second))
		}
		bin, err := os.ReadFile(filepath.Join(c.Out, "plugin", "bin", platform, binary))
		if err != nil {
			t.Fatal(err)
		}
		files, err := unpacked(file, packed)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{p.Bin: checksum(bin), "LICENSE": checksum(license)}
		sums := map[string]string{}
		for name, content := range files {
			sums[name] = checksum(content)
		}
		if diff := cmp.Diff(want, sums); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", file, diff)
		}
		info, err := buildinfo.Read(bytes.NewReader(bin))
		if err != nil {
			t.Fatal(err)
		}
		document, err := os.ReadFile(filepath.Join(c.Out, "sbom", strings.TrimSuffix(file, ending)+".spdx.json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := sbom.Check(document, p.SHA256, info); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if err := provenance.Check(statement, p.SHA256, head.hash); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if p.Bin != binary || !strings.HasPrefix(p.URI, source+"/releases/download/v0.0.1/") {
			t.Errorf("%s: binary %q at %q", file, p.Bin, p.URI)
		}
	}
	bins := filepath.Join(c.Out, "plugin", "bin")
	if f, err := macho.Open(filepath.Join(bins, "darwin-arm64", pluginBinary)); err != nil || f.Cpu != macho.CpuArm64 {
		t.Errorf("darwin-arm64: %v, %v", f, err)
	}
	if f, err := elf.Open(filepath.Join(bins, "linux-arm64", pluginBinary)); err != nil || f.Machine != elf.EM_AARCH64 {
		t.Errorf("linux-arm64: %v, %v", f, err)
	}
	if f, err := pe.Open(filepath.Join(bins, "windows-arm64", pluginBinary+".exe")); err != nil || f.Machine != pe.IMAGE_FILE_MACHINE_ARM64 {
		t.Errorf("windows-arm64: %v, %v", f, err)
	}
}

// unpacked returns the files of an archive, all of which it reads.
func unpacked(name string, packed []byte) (map[string][]byte, error) {
	if filepath.Ext(name) == ".zip" {
		return unzipped(packed)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	t := tar.NewReader(z)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if out[h.Name], err = io.ReadAll(t); err != nil {
			return nil, err
		}
	}
	// The checksum comes after the archive.
	_, err = io.Copy(io.Discard, z)
	return out, err
}

// unzipped returns the files of a zip archive, whose checksums it verifies.
func unzipped(packed []byte) (map[string][]byte, error) {
	z, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		// The reader compares the checksum at the end of the file.
		if out[f.Name], err = io.ReadAll(r); err != nil {
			return nil, err
		}
		if err := r.Close(); err != nil {
			return nil, err
		}
	}
	return out, nil
}
