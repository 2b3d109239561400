// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
)

// A need is a flag without which a row must not run.
type need string

// Flags that rows need.
const (
	needWrite      need = "--write"
	needPolicy     need = "--policy"
	needSettings   need = "--settings"
	needCerts      need = "--certs"
	needKubeconfig need = "--kubeconfig"
)

// A row proves one thing.
type row struct {
	section string
	name    string

	// about says what the row proves.
	about string

	needs []need
	run   func(ctx context.Context, t *turn) error
}

func (r row) id() string { return r.section + "/" + r.name }

// table returns all rows in the order in which they run.
func table() []row {
	return slices.Concat(
		credentialRows(),
		serviceRows(),
		hostRows(),
		trafficRows(),
		egressRows(),
		policyRows(),
		settingRows(),
		kindRows(),
		quickstartRows(),
	)
}

// lacks returns the first flag that a row needs and that is not set.
func (o *options) lacks(r row) (need, bool) {
	granted := map[need]bool{needWrite: o.Write, needPolicy: o.Policy, needSettings: o.Settings, needCerts: o.Certs, needKubeconfig: o.Kubeconfig != ""}
	for _, n := range r.needs {
		if !granted[n] {
			return n, true
		}
	}
	return "", false
}
