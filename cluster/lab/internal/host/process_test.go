// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"testing"
)

func TestParseStat(t *testing.T) {
	cases := map[string]struct {
		reason string
		line   string
		want   stat
	}{
		"Plain": {
			reason: "State, parent and start should be fields 3, 4 and 22.",
			line:   "7 (etcd) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 12345 1 2",
			want:   stat{state: "S", parent: "1", start: "12345"},
		},
		"OddName": {
			reason: "Blanks and parentheses in the command should not shift fields.",
			line:   "7 (a) b (c)) Z 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 12345 1 2",
			want:   stat{state: "Z", parent: "1", start: "12345"},
		},
		"Garbage": {
			reason: "An invalid line should result in empty fields.",
			line:   "7 etcd",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := parseStat(tc.line); got != tc.want {
				t.Errorf("\n%s\nparseStat(...): got %+v, want %+v", tc.reason, got, tc.want)
			}
		})
	}
}

func TestDaemon(t *testing.T) {
	p := Paths{State: t.TempDir()}
	if _, ok := p.Daemon(); ok {
		t.Error("Daemon(): found one without a pid file")
	}
	if err := p.WritePIDFile(); err != nil {
		t.Fatal(err)
	}
	if d, ok := p.Daemon(); !ok || d.PID != os.Getpid() {
		t.Errorf("Daemon(): did not find this process: %+v, %t", d, ok)
	}
	if err := os.WriteFile(p.PIDFile(), []byte("1 1 another-boot"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := p.Daemon(); ok {
		t.Error("Daemon(): took a process of another boot for the daemon")
	}
}
