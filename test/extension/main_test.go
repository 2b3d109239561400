//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// build compiles the extension once, in a folder that servesWithoutExtension tests.
var build = sync.OnceValues(func() (string, error) {
	program := filepath.Join(programs, "extension")
	out, err := exec.Command("go", "build", "-o", program, "../../extension").CombinedOutput()
	return program, errors.Wrapf(err, "cannot build the extension: %s", out)
})

// programs is the folder of compiled programs.
var programs string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if programs, err = os.MkdirTemp("", "tailscale-gateway-extension-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		log.SetLogger(logr.Discard())                 // Logs of envtest are discarded.
		defer func() { _ = os.RemoveAll(programs) }() // A temporary folder.
		return m.Run()
	}())
}

// program returns the extension's binary.
func program(t *testing.T) string {
	t.Helper()
	p, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return p
}
