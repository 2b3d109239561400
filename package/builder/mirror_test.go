// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// tools are the programs that the script may call, as scripts around the real crane: the others
// are not available to tests. They accept only the arguments that the script passes.
var tools = map[string]string{
	"crane": `exec "$CRANE" "$@"`,
	// skopeo refuses a reference with a tag and a digest.
	"skopeo": `[ "$1 $2 $3 $4" = "copy --all --preserve-digests --digestfile" ] || exit 64
case ${6##*/} in *:*@*) exit 65 ;; esac
from=${6#docker://} to=${7#docker://}
"$CRANE" copy "$from" "$to" && "$CRANE" digest "$to" > "$5"`,
	"oras": `case $1 in
cp) exec "$CRANE" copy "$2" "$3" ;;
resolve) exec "$CRANE" digest "$2" ;;
*) exit 64 ;;
esac`,
}

// TestMirror copies images between two registries, with each tool: one as images.txt of a release names it, and
// one without a digest.
func TestMirror(t *testing.T) {
	crane := filepath.Join(t.TempDir(), "crane")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", crane, "github.com/google/go-containerregistry/cmd/crane")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build crane: %v\n%s", err, output)
	}
	source := startRegistry(t)
	// An index is what a release pushes for several architectures, and a package is an image.
	index, err := random.Index(64, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	image, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	agent, pkg := parseTag(t, source+"/tailscale-gateway/agent:v1"), parseTag(t, source+"/tailscale-gateway/provider-tailscale:v1")
	if err := remote.WriteIndex(agent, index); err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(pkg, image); err != nil {
		t.Fatal(err)
	}

	for tool, script := range tools {
		t.Run(tool, func(t *testing.T) {
			bin := t.TempDir()
			if err := os.WriteFile(filepath.Join(bin, tool), []byte("#!/bin/sh\nset -e\n"+script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			mirror := startRegistry(t)
			out, err := run(t, []string{"CRANE=" + crane, "PATH=" + bin + ":/usr/bin:/bin", "TOOL=" + tool}, agent.String()+"@"+digest(t, index)+"\n# a comment\n\n"+pkg.String(), mirror+"/team/")
			if err != nil {
				t.Fatal(err)
			}
			want := agent.String() + "@" + digest(t, index) + " " + mirror + "/team/tailscale-gateway/agent:v1@" + digest(t, index) + "\n" +
				pkg.String() + " " + mirror + "/team/tailscale-gateway/provider-tailscale:v1@" + digest(t, image) + "\n"
			if diff := cmp.Diff(want, out); diff != "" {
				t.Errorf("-want copies, +got:\n%s", diff)
			}
			copied, err := remote.Index(parseTag(t, mirror+"/team/tailscale-gateway/agent:v1"))
			if err != nil {
				t.Fatal(err)
			}
			m, err := copied.IndexManifest()
			if err != nil {
				t.Fatal(err)
			}
			if len(m.Manifests) != 2 {
				t.Errorf("the copy has %d architectures, want 2", len(m.Manifests))
			}
		})
	}

	t.Run("Missing", func(t *testing.T) {
		// The tag exists in the mirror, from before.
		mirror := startRegistry(t)
		if err := remote.Write(parseTag(t, mirror+"/gone:v1"), image); err != nil {
			t.Fatal(err)
		}
		bin := t.TempDir()
		if err := os.Symlink(crane, filepath.Join(bin, "crane")); err != nil {
			t.Fatal(err)
		}
		if out, err := run(t, []string{"PATH=" + bin + ":/usr/bin:/bin"}, source+"/gone:v1\n"+pkg.String(), mirror); err == nil || out != "" {
			t.Errorf("an image that does not exist must stop the script, got %q", out)
		}
	})
	t.Run("NoRegistry", func(t *testing.T) {
		if out, err := run(t, []string{"PATH=/usr/bin:/bin"}, "tailscale/tailscale:v1\n", "127.0.0.1:1"); err == nil || out != "" {
			t.Errorf("an image without a registry must stop the script, got %q", out)
		}
	})
}

// startRegistry starts a registry and returns its address.
func startRegistry(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func parseTag(t *testing.T, s string) name.Tag {
	t.Helper()
	out, err := name.NewTag(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func digest(t *testing.T, artifact interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	d, err := artifact.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

// run runs the script and returns what it printed.
func run(t *testing.T, env []string, images, target string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", filepath.Join(root, "package/mirror.sh"), target)
	cmd.Env = slices.Concat(env, []string{"HOME=" + t.TempDir()})
	cmd.Stdin = strings.NewReader(images)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	t.Logf("%s", stderr.Bytes())
	return out.String(), err
}
