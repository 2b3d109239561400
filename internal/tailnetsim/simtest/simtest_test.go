// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package simtest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// TestNodeDir ends a test while a goroutine still writes to the directory of its node.
func TestNodeDir(t *testing.T) {
	const files = 20000
	var dir string
	var writer sync.WaitGroup
	t.Run("Test", func(t *testing.T) {
		dir = nodeDir(t)
		started := make(chan struct{})
		writer.Go(func() {
			close(started)
			for i := range files {
				if os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600) != nil {
					return // The directory is removed.
				}
			}
		})
		<-started
	})
	writer.Wait()
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory of a test that has ended: want fs.ErrNotExist, got %v", err)
	}
}
