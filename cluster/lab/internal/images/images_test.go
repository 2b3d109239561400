// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestIn(t *testing.T) {
	type want struct {
		name string
		err  error
	}
	const digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	cases := map[string]struct {
		reason string
		ref    string
		want   want
	}{
		"Registry": {
			reason: "The registry's own name should be dropped.",
			ref:    "ghcr.io/tailscale-gateway/agent:v1",
			want:   want{name: "127.0.0.1:5000/tailscale-gateway/agent:v1"},
		},
		"DockerHub": {
			reason: "A short name should get the path that containerd requests.",
			ref:    "busybox",
			want:   want{name: "127.0.0.1:5000/library/busybox:latest"},
		},
		"Digest": {
			reason: "A digest should stay a digest.",
			ref:    "ghcr.io/a/b@" + digest,
			want:   want{name: "127.0.0.1:5000/a/b@" + digest},
		},
		"ErrParse": {
			reason: "An invalid image name should be refused.",
			ref:    "A B",
			want:   want{err: cmpopts.AnyError},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := In("127.0.0.1:5000", tc.ref)
			if diff := cmp.Diff(tc.want.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Fatalf("\n%s\nIn(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.want.name, got.Name()); diff != "" {
				t.Errorf("\n%s\nIn(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLoadAndPush checks that an archive is in the registry under the name that nodes pull.
func TestLoadAndPush(t *testing.T) {
	img, err := random.Image(1024, 1)
	if err != nil {
		t.Fatal(err)
	}
	ref := name.MustParseReference("ghcr.io/tailscale-gateway/agent:v1")
	file := filepath.Join(t.TempDir(), "agent.tar")
	if err := tarball.WriteToFile(file, ref, img); err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer s.Close()
	host := strings.TrimPrefix(s.URL, "http://")
	if err := Push(t.Context(), host, ref.Name(), loaded); err != nil {
		t.Fatal(err)
	}
	at, err := name.ParseReference(host + "/tailscale-gateway/agent:v1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := remote.Image(at); err != nil {
		t.Errorf("Push(...): the image is not where nodes look for it: %v", err)
	}
}

// TestBuild checks that the same files result in the same image, or pods would pull it again.
func TestBuild(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "crds"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"program", "crds/a.yaml", "crds/b.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, f), []byte(f), 0o755); err != nil { // Stands for a program.
			t.Fatal(err)
		}
	}
	i := Image{
		Name:  "example.org/a:v1",
		Files: map[string]string{"/bin/program": filepath.Join(dir, "program"), "/crds": filepath.Join(dir, "crds")},
		Links: map[string]string{"/bin/link": "program"},
	}
	var digests []string
	for range 2 {
		img, err := i.Build()
		if err != nil {
			t.Fatal(err)
		}
		d, err := img.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, d.String())
	}
	if digests[0] != digests[1] {
		t.Errorf("Build(): got %s, then %s", digests[0], digests[1])
	}
}
