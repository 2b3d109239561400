// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// TestRestart checks that pushed images, including indexes, exist after a restart.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	serve := func() (string, func()) {
		r, err := New(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewServer(r)
		return strings.TrimPrefix(s.URL, "http://"), s.Close
	}
	ref := func(s string) name.Reference {
		r, err := name.ParseReference(s)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	img, err := random.Image(1024, 2)
	if err != nil {
		t.Fatal(err)
	}
	idx, err := random.Index(1024, 1, 2)
	if err != nil {
		t.Fatal(err)
	}

	host, stop := serve()
	if err := remote.Write(ref(host+"/a/image:v1"), img); err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(ref(host+"/a/index:v1"), idx); err != nil {
		t.Fatal(err)
	}
	stop()

	host, stop = serve()
	defer stop()
	got, err := remote.Image(ref(host + "/a/image:v1"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if d, err := got.Digest(); err != nil || d != want {
		t.Errorf("Image(...): got %s, %v, want %s", d, err, want)
	}
	if _, err := remote.Index(ref(host + "/a/index:v1")); err != nil {
		t.Errorf("Index(...): %v", err)
	}
}
