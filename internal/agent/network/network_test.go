// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestEnableForwarding(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  map[string]string
		// stuck are settings that cannot be written.
		stuck []string
		want  map[string]string
		err   error
	}{
		"Off": {
			reason: "Settings that are off are turned on.",
			files:  map[string]string{settingIPv4: "0\n", settingIPv6: "0\n"},
			want:   map[string]string{settingIPv4: "1", settingIPv6: "1"},
		},
		"On": {
			reason: "Settings that are on are not written.",
			files:  map[string]string{settingIPv4: "1\n", settingIPv6: "1\n"},
			want:   map[string]string{settingIPv4: "1\n", settingIPv6: "1\n"},
		},
		"NoIPv6": {
			reason: "A kernel without IPv6 is no error.",
			files:  map[string]string{settingIPv4: "0"},
			want:   map[string]string{settingIPv4: "1"},
		},
		"NoIPv4": {
			reason: "A kernel without IPv4 forwarding is an error.",
			files:  map[string]string{settingIPv6: "0"},
			want:   map[string]string{settingIPv6: "0"},
			err:    fs.ErrNotExist,
		},
		"IPv6Stuck": {
			reason: "The error must show that only IPv6 is not forwarded.",
			files:  map[string]string{settingIPv4: "0"},
			stuck:  []string{settingIPv6},
			want:   map[string]string{settingIPv4: "1"},
			err:    ErrIPv6,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for path, content := range tc.files {
				path = filepath.Join(root, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatalf("MkdirAll(...): %v", err)
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatalf("WriteFile(...): %v", err)
				}
			}
			for _, path := range tc.stuck {
				// Not even root can read a directory as a file.
				if err := os.MkdirAll(filepath.Join(root, path), 0o700); err != nil {
					t.Fatalf("MkdirAll(...): %v", err)
				}
			}
			if diff := cmp.Diff(tc.err, EnableForwarding(root), cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\nEnableForwarding(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			for path, want := range tc.want {
				got, err := os.ReadFile(filepath.Join(root, path))
				if err != nil {
					t.Fatalf("ReadFile(...): %v", err)
				}
				if diff := cmp.Diff(want, string(got)); diff != "" {
					t.Errorf("\n%s\n%s: -want, +got:\n%s", tc.reason, path, diff)
				}
			}
		})
	}
}
