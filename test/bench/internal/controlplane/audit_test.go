// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAudit checks which writes count for which program, also while the API server writes its log.
func TestAudit(t *testing.T) {
	a, err := newAudit(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	line := func(program, resource, subresource, second string) string {
		return `{"userAgent":"` + program + `/v0.0.0 (linux/amd64)","requestReceivedTimestamp":"2026-11-29T16:00:` + second + `.000000Z",` +
			`"objectRef":{"resource":"` + resource + `","subresource":"` + subresource + `"}}` + "\n"
	}
	steps := map[string]struct {
		reason string
		add    string
		want   Writes
		last   string
	}{
		"1First":  {reason: "Each program has its writes, by resource.", add: line(Provider, "machines", "status", "01") + line(Crossplane, "vipservices", "", "02"), want: Writes{Provider: {"machines/status": 1}, Crossplane: {"vipservices": 1}}, last: "16:00:02"},
		"2Others": {reason: "A write of another program is no activity of the control plane.", add: line("bench", "machines", "status", "09"), want: Writes{"bench": {"machines/status": 1}}, last: "16:00:02"},
		"3Half":   {reason: "A line that is not complete counts later.", add: line(Provider, "machines", "status", "10")[:40], want: Writes{}, last: "16:00:02"},
		"4Rest":   {reason: "It counts once it is complete.", add: line(Provider, "machines", "status", "10")[40:], want: Writes{Provider: {"machines/status": 1}}, last: "16:00:10"},
	}
	previous := Writes{}
	for _, name := range []string{"1First", "2Others", "3Half", "4Rest"} {
		tc := steps[name]
		f, err := os.OpenFile(a.log(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(tc.add); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		all, last, err := a.read()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, all.Since(previous)); diff != "" {
			t.Errorf("\n%s\n%s: -want, +got:\n%s", tc.reason, name, diff)
		}
		if got := last.Format("15:04:05"); got != tc.last {
			t.Errorf("\n%s\n%s: last write at %s, want %s", tc.reason, name, got, tc.last)
		}
		previous = all
	}
}

// TestSize checks that the objects are as many as are waited for.
func TestSize(t *testing.T) {
	s := Size{Services: 40, Endpoints: 8, Gateways: 2}
	got := map[string]int{}
	names := map[string]bool{}
	for _, o := range s.objects() {
		got[o.GetKind()]++
		key := o.GetKind() + "/" + o.GetNamespace() + "/" + o.GetName()
		if names[key] {
			t.Errorf("objects(): %s exists twice", key)
		}
		names[key] = true
	}
	want := map[string]int{"TailscaleServices": 40, "TailscaleEndpoints": 8, "TailscaleGateway": 2, "Gateway": 2, "Service": 2}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects(): -want, +got:\n%s", diff)
	}
	// Each Gateway composes one of both.
	if n := s.count("TailscaleServices"); n != 42 {
		t.Errorf("count(TailscaleServices): got %d, want 42", n)
	}
	if n := s.count("TailscaleEndpoints"); n != 10 {
		t.Errorf("count(TailscaleEndpoints): got %d, want 10", n)
	}
}
