// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package issue

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
)

// TestFit fills a state Secret with certificates until it is full.
func TestFit(t *testing.T) {
	data := map[string][]byte{"_machinekey": make([]byte, 100)}
	admitted := map[string]bool{}
	var wanted, full []string
	for n := 0; len(full) == 0; n++ {
		wanted = append(wanted, fmt.Sprintf("web-%03d.tail1234.ts.net", n))
		var fit []string
		fit, full = Fit(data, wanted, admitted)
		for _, name := range fit {
			admitted[name] = true
			data[name+".crt"], data[name+".key"] = make([]byte, 5000), make([]byte, 227)
		}
	}
	if size := Size(data); size > corev1.MaxSecretSize-reserve {
		t.Errorf("the Secret leaves %d bytes to others, want %d", corev1.MaxSecretSize-size, reserve)
	}
	if n := len(admitted); n < 150 || n > 200 {
		t.Errorf("want 150 to 200 names, got %d", n)
	}

	// A newcomer that is the first by name takes nobody's place.
	last := wanted[len(wanted)-1]
	fit, full := Fit(data, append([]string{"a.tail1234.ts.net"}, wanted...), admitted)
	if slices.Contains(fit, "a.tail1234.ts.net") || len(fit) != len(admitted) {
		t.Errorf("want the %d names from before, got %d", len(admitted), len(fit))
	}
	if diff := cmp.Diff([]string{"a.tail1234.ts.net", last}, full); diff != "" {
		t.Errorf("names without space: -want, +got:\n%s", diff)
	}
}

func TestFitCases(t *testing.T) {
	stored := func(size int, names ...string) map[string][]byte {
		out := map[string][]byte{"_serve": make([]byte, size)}
		for _, n := range names {
			out[n+".crt"], out[n+".key"] = []byte("cert"), []byte("key")
		}
		return out
	}
	const full = corev1.MaxSecretSize
	cases := map[string]struct {
		reason   string
		data     map[string][]byte
		wanted   []string
		admitted map[string]bool
		fit      []string
		full     []string
	}{
		"Empty":    {reason: "All names fit into an empty Secret.", wanted: []string{"b", "a"}, fit: []string{"a", "b"}},
		"Stored":   {reason: "A certificate in a full Secret is renewed.", data: stored(full, "a"), wanted: []string{"a", "b"}, fit: []string{"a"}, full: []string{"b"}},
		"Admitted": {reason: "An attempt under way is not given up.", data: stored(full), wanted: []string{"a", "b"}, admitted: map[string]bool{"b": true}, fit: []string{"b"}, full: []string{"a"}},
		"Reserved": {
			reason: "The names that wait for their certificates have reserved space.",
			data:   stored(full - reserve - 2*perName), wanted: []string{"a", "b", "c"}, admitted: map[string]bool{"c": true},
			fit: []string{"a", "c"}, full: []string{"b"},
		},
		"Half": {
			reason: "A certificate without its key is none.",
			data:   map[string][]byte{"_serve": make([]byte, full), "a.crt": []byte("cert")}, wanted: []string{"a"},
			full: []string{"a"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fit, full := Fit(tc.data, tc.wanted, tc.admitted)
			if diff := cmp.Diff(tc.fit, fit, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("\n%s\nfit: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.full, full, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("\n%s\nfull: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestExpired(t *testing.T) {
	at := time.Now()
	old, young := chain(t, issuerProduction, at.Add(-90*day), at.Add(-day)), chain(t, issuerProduction, at, at.Add(90*day))
	data := map[string][]byte{
		"old.crt": old, "old.key": []byte("key"),
		"wanted.crt": old, "wanted.key": []byte("key"),
		"young.crt": young, "young.key": []byte("key"),
		"half.crt": old, "text.crt": []byte("text"), "text.key": []byte("key"),
	}
	if diff := cmp.Diff([]string{"old.crt", "old.key"}, Expired(data, []string{"wanted"}, at)); diff != "" {
		t.Errorf("Expired(...): -want, +got:\n%s", diff)
	}
}
