// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package netns

import (
	"errors"

	"github.com/vishvananda/netlink"
)

// On other systems, this package compiles, but does not work.
const (
	detach    = 0
	scopeLink = netlink.Scope(0)
	modeTAP   = netlink.TuntapMode(0)
	flagNoPI  = netlink.TuntapFlag(0)
	flagNoDAD = 0
)

func share(string) error { return errors.ErrUnsupported }

func setns(int) error { return errors.ErrUnsupported }
