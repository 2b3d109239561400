// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/daemon"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/images"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/plan"
)

// push puts an archive into the lab's registry by the registry's forward.
func push(r runtime, name, file string) error {
	st, err := r.daemon().Status(r, false)
	if err != nil {
		return err
	}
	registry, err := st.Forward(daemon.ForwardRegistry)
	if err != nil {
		return err
	}
	img, err := images.Load(file)
	if err != nil {
		return err
	}
	if err := images.Push(r, registry, name, img); err != nil {
		return err
	}
	ref, err := images.In(plan.Registry, name)
	if err != nil {
		return err
	}
	fmt.Println(ref)
	return nil
}
