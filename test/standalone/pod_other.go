// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package standalone

import "errors"

func drop(string) error { return errors.ErrUnsupported }

func pass(string) error { return errors.ErrUnsupported }
