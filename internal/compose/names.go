// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// ChildName returns names.Child.
func ChildName(parts ...string) string { return names.Child(parts...) }

// MachineName returns names.Machine.
func MachineName(set string, i int32) string { return names.Machine(set, i) }

// HostName returns names.Host.
func HostName(namespace, machine string) string { return names.Host(namespace, machine) }

// ServiceName returns names.Service.
func ServiceName(name string) string { return names.Service(name) }
