// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/images"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/tools"
)

type gatewayAPICmd struct{}

// Run builds Gateway API's conformance tests, and pushes the images of their backends.
func (c *gatewayAPICmd) Run(r runtime) error {
	unlock, err := lock(r)
	if err != nil {
		return err
	}
	defer unlock()
	b := builder(r.paths)
	if err := ensure(r, b, tools.GatewayAPI); err != nil {
		return err
	}
	bin, err := b.Binaries()
	if err != nil {
		return err
	}
	return pushAll(r, images.Conformance(bin)...)
}
