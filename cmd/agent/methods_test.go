// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/internal/products/productstest"
)

// TestMethods checks that the binary has only the methods that it uses.
func TestMethods(t *testing.T) { productstest.CheckMethods(t, products.Agent) }
