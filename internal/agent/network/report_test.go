// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
)

func TestProblem(t *testing.T) {
	cases := map[string]struct {
		reason   string
		report   Report
		forwards bool
		joined   bool
		want     string
		message  string
	}{
		"None":       {reason: "Nothing is wrong.", forwards: true},
		"Denied":     {reason: "The message says how to allow the device.", report: Report{Tun: "operation not permitted"}, forwards: true, want: "NoTunDevice", message: "kernel.privileged"},
		"Absent":     {reason: "No privilege helps if the kernel has no driver.", report: Report{Tun: "no such device", TunAbsent: true}, forwards: true, want: "NoTunDevice", message: "module tun"},
		"Joined":     {reason: "A tailscaled that runs has a device, whatever the check found.", report: Report{Tun: "operation not permitted"}, forwards: true, joined: true},
		"Forwarding": {reason: "Without forwarding nothing works.", joined: true, want: "NotForwarding", message: "net.ipv4.ip_forward"},
		"Dropped":    {reason: "The message names Cilium's setting.", report: Report{Dropped: "10.96.0.1:443"}, forwards: true, joined: true, want: "ForwardedPacketsDropped", message: "socketLB.hostNamespaceOnly"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reason, message := "", ""
			if p := tc.report.Problem(tc.forwards, tc.joined); p != nil {
				reason, message = p.Reason, p.Message
			}
			if reason != tc.want || !strings.Contains(message, tc.message) || len(message) > 1024 {
				t.Errorf("\n%s\nProblem(...): got %q, %q", tc.reason, reason, message)
			}
		})
	}
}

func TestReadReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "network.json")
	if r, err := ReadReport(path); err != nil || r != (Report{}) {
		t.Errorf("ReadReport(...): without a file nothing is known, got %v, %v", r, err)
	}
	want := Report{Tun: "operation not permitted", Dropped: "10.96.0.1:443"}
	if err := want.Write(path); err != nil {
		t.Fatalf("Write(...): %v", err)
	}
	got, err := ReadReport(path)
	if err != nil {
		t.Fatalf("ReadReport(...): %v", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ReadReport(...): -want, +got:\n%s", diff)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadReport(path); err == nil {
		t.Error("ReadReport(...): a broken file must be an error")
	}
}

func TestForwarding(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  map[string]string
		want   address.Families
	}{
		"Both":       {reason: "Settings that are on count.", files: map[string]string{settingIPv4: "1\n", settingIPv6: "1\n"}, want: address.Families{IPv4: true, IPv6: true}},
		"IPv4":       {reason: "The sysctl of a pod enables IPv4 only.", files: map[string]string{settingIPv4: "1\n", settingIPv6: "0\n"}, want: address.Families{IPv4: true}},
		"NoIPv6":     {reason: "A kernel may have no IPv6.", files: map[string]string{settingIPv4: "1\n"}, want: address.Families{IPv4: true}},
		"Unreadable": {reason: "A setting that cannot be read counts as on.", files: map[string]string{settingIPv4: "1\n", settingIPv6 + "/directory": ""}, want: address.Families{IPv4: true, IPv6: true}},
		"Off":        {reason: "Settings that are off do not count.", files: map[string]string{settingIPv4: "0\n", settingIPv6: "0\n"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for path, content := range tc.files {
				path = filepath.Join(root, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := Forwarding(root); got != tc.want {
				t.Errorf("\n%s\nForwarding(...): want %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}
