// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"strings"
	"testing"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

// kindCreates are the calls that create what the rows of section kinds add, by row.
var kindCreates = map[string]tailnetsim.Fault{
	"authkey":        {Method: "POST", Path: "/keys$"},
	"policyfragment": {Method: "POST", Path: "/acl$"},
	"splitdns":       {Method: "PATCH", Path: "/split-dns$"},
	"vipservice":     {Method: "PUT", Path: "/vip-services/"},
	"webhook":        {Method: "POST", Path: "/webhooks$"},
}

// TestKindsLostReplies loses the reply to each call that creates an object: the controllers find what it
// created, and go on.
func TestKindsLostReplies(t *testing.T) {
	r := simtest.StartAPI(t)
	var faults []tailnetsim.Fault
	for _, f := range kindCreates {
		f.DropReply, f.Count = true, 1
		faults = append(faults, f)
	}
	if err := r.SetFaults(faults...); err != nil {
		t.Fatalf("cannot set faults: %v", err)
	}
	out := t.TempDir()
	if code, _ := accept(t, flags(r, out, "--write", "--policy", "--only=kinds/")); code != exitPass {
		t.Errorf("exit code %d", code)
	}
	for _, row := range readSummary(t, out).Rows {
		if row.Outcome != outcomePass {
			t.Errorf("%s: %s %s", row.Name, row.Outcome, row.Reason)
		}
		for _, step := range []string{"create", "update", "drift", "delete"} {
			if _, ok := row.Seconds[step]; !ok {
				t.Errorf("%s has no step %s", row.Name, step)
			}
		}
	}
	if remaining := r.Faults(); len(remaining) > 0 {
		t.Errorf("no controller made the calls of %v", remaining)
	}
	nothingLeft(t, r, out)
	noSecrets(t, out)
}

// TestKindsReadOnly runs with scopes that only read: the rows are skipped, and have nothing to remove.
func TestKindsReadOnly(t *testing.T) {
	r := simtest.StartAPI(t, func(o *tailnetsim.Options) {
		o.Clients[0].Scopes = []string{"devices:core:read", "devices:posture_attributes:read", "auth_keys:read", "services:read", "dns:read", "webhooks:read", "policy_file:read"}
	})
	out := t.TempDir()
	if code, _ := accept(t, flags(r, out, "--write", "--policy", "--only=kinds/")); code != exitPass {
		t.Errorf("exit code %d", code)
	}
	for _, row := range readSummary(t, out).Rows {
		if row.Skip != skipScope {
			t.Errorf("%s: %s %q, want a skip for the scope: %s", row.Name, row.Outcome, row.Skip, row.Reason)
		}
	}
	nothingLeft(t, r, out)
}

// TestKindsFail ends the rows as soon as the controllers have created something: the ledger names it, and the
// run removes it.
func TestKindsFail(t *testing.T) {
	r := simtest.StartAPI(t)
	out := t.TempDir()
	if code, _ := accept(t, flags(r, out, "--write", "--policy", "--only=kinds/", "--timeout=1ns")); code != exitFail {
		t.Errorf("exit code %d, want failed rows", code)
	}
	rows := readSummary(t, out).Rows
	if len(rows) != len(kindCreates) {
		t.Errorf("%d rows, want %d", len(rows), len(kindCreates))
	}
	for _, row := range rows {
		if row.Outcome != outcomeFail || !strings.Contains(row.Reason, "create: not within") {
			t.Errorf("%s: %s %s, want a failure after the create", row.Name, row.Outcome, row.Reason)
		}
	}
	l, err := openLedger(out)
	if err != nil {
		t.Fatalf("cannot open the ledger: %v", err)
	}
	intended := map[string]bool{}
	for _, e := range l.entries {
		intended[e.Kind] = intended[e.Kind] || e.Op == opIntend
	}
	if err := l.close(); err != nil {
		t.Fatalf("cannot close the ledger: %v", err)
	}
	for _, kind := range []string{kindKey, kindFragment, kindSplitDNS, kindService, kindWebhook} {
		if !intended[kind] {
			t.Errorf("the ledger has no object of kind %s", kind)
		}
	}
	nothingLeft(t, r, out)
}
