// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLibraries checks the libraries of the machine's shell, which is linked with the C
// library.
func TestLibraries(t *testing.T) {
	got, err := libraries("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	var loader, libc bool
	for imagePath, hostPath := range got {
		if imagePath != hostPath {
			t.Errorf("libraries(...): %q is not at its own path in the image: %q", hostPath, imagePath)
		}
		loader = loader || strings.HasPrefix(filepath.Base(imagePath), "ld-linux")
		libc = libc || filepath.Base(imagePath) == "libc.so.6"
	}
	if !loader || !libc {
		t.Errorf("libraries(...): want the loader and the C library, got %v", got)
	}
}

func TestLibrariesStatic(t *testing.T) {
	// This test is built without cgo, so it is a static program.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	got, err := libraries(self)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 0 {
		t.Errorf("libraries(...): want nothing for a static program, got %v", got)
	}
}

func TestLibrariesErr(t *testing.T) {
	if _, err := libraries(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("libraries(...): want an error for a missing program")
	}
}
