// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/daemon"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/images"
)

// registry returns the address of the lab's registry on this machine.
func registry(r runtime) (string, error) {
	st, err := r.daemon().Status(r, false)
	if err != nil {
		return "", err
	}
	return st.Forward(daemon.ForwardRegistry)
}

// pushAll builds images and pushes them to the lab's registry.
func pushAll(r runtime, all ...images.Image) error {
	addr, err := registry(r)
	if err != nil {
		return err
	}
	for _, i := range all {
		img, err := i.Build()
		if err != nil {
			return err
		}
		if err := images.Push(r, addr, i.Name, img); err != nil {
			return err
		}
	}
	return nil
}

// push pushes an archive to the lab's registry through the registry's forward.
func push(r runtime, name, file string) error {
	st, err := r.daemon().Status(r, false)
	if err != nil {
		return err
	}
	addr, err := st.Forward(daemon.ForwardRegistry)
	if err != nil {
		return err
	}
	img, err := images.Load(file)
	if err != nil {
		return err
	}
	if err := images.Push(r, addr, name, img); err != nil {
		return err
	}
	ref, err := images.In(st.IPFamily.Hub().RegistryInCluster(), name)
	if err != nil {
		return err
	}
	fmt.Println(ref)
	return nil
}
