// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

const getACL = "GET /api/v2/tailnet/{tailnet}/acl"

// appended returns an edit that adds a comment.
func appended(comment string) func(string) (string, error) {
	return func(text string) (string, error) { return text + "// " + comment + "\n", nil }
}

func TestEditPolicyFile(t *testing.T) {
	r := simtest.StartAPI(t)
	c := newClient(t, r, nil)
	for range 3 {
		if _, err := c.PolicyFile().PolicyFile(t.Context(), AtMost(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.Calls()[getACL]; n != 1 {
		t.Errorf("want one call for a shared copy, got %d", n)
	}

	// Edits of one client run one after another; edits of other clients are detected.
	other := newClient(t, r, nil)
	var wg sync.WaitGroup
	errs := make(chan error, 12)
	for i := range 12 {
		wg.Go(func() {
			cl := c
			if i%4 == 0 {
				cl = other
			}
			_, err := cl.PolicyFile().EditPolicyFile(t.Context(), appended("edit "+string(rune('a'+i))))
			errs <- err
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Errorf("EditPolicyFile(...): %v", err)
		}
	}
	p, err := c.PolicyFile().PolicyFile(t.Context(), AtMost(time.Hour))
	if err != nil || strings.Count(p.Text, "// edit ") != 12 {
		t.Errorf("want 12 edits, got %v\n%s", err, p.Text)
	}
}

func TestEditPolicyFileRefused(t *testing.T) {
	r := simtest.StartAPI(t)
	c := newClient(t, r, nil)
	original, err := c.PolicyFile().PolicyFile(t.Context(), Cached)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.PolicyFile().EditPolicyFile(t.Context(), func(text string) (string, error) {
		i := strings.LastIndexByte(text, '}')
		return text[:i] + `"tests": [{"src": "ann@example.com", "deny": ["tag:k8s:1"]}]}`, nil
	})
	if ClassOf(err) != ClassInvalid || !strings.Contains(err.Error(), "want: Drop, got: Accept") {
		t.Errorf("want the test's failure, got %v", err)
	}
	updated, err := c.PolicyFile().PolicyFile(t.Context(), Current)
	if err != nil || updated != original {
		t.Errorf("the policy file changed: %v\n%s", err, updated.Text)
	}
}

func TestEditPolicyFileLostReply(t *testing.T) {
	r := simtest.StartAPI(t)
	c := newClient(t, r, nil)
	if err := r.SetFaults(tailnetsim.Fault{Method: "POST", Path: "/acl$", Count: 1, DropReply: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PolicyFile().EditPolicyFile(t.Context(), appended("lost")); ClassOf(err) != ClassUnavailable {
		t.Errorf("want an error of class Unavailable, got %v", err)
	}
	p, err := c.PolicyFile().PolicyFile(t.Context(), AtMost(time.Hour))
	if err != nil || !strings.Contains(p.Text, "// lost") {
		t.Errorf("a write without a response is not visible: %v\n%s", err, p.Text)
	}
}
