// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import "k8s.io/apimachinery/pkg/types"

func name(n string) types.NamespacedName { return types.NamespacedName{Namespace: "shop", Name: n} }
