// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package standalone

import (
	"errors"

	"github.com/vishvananda/netlink"
)

// Without Linux, this package compiles, and its Gateways do not start.
const (
	newNetwork = iota
	newMounts
	recursive
	private
	bound
	tableLocal

	scopeLink = netlink.Scope(0)
)

func unshare(int) error { return errors.ErrUnsupported }

func setns(int, int) error { return errors.ErrUnsupported }

func mount(string, string, string, uintptr, string) error { return errors.ErrUnsupported }
