// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"regexp"
	"strings"

	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// PathExpression returns the expression that a path with its query must match as a whole. It
// is empty if every path matches.
func PathExpression(kind, path string) string {
	const query = `(?:\?.*)?`
	switch gwapiv1.PathMatchType(kind) {
	case gwapiv1.PathMatchExact:
		return regexp.QuoteMeta(path) + query
	case gwapiv1.PathMatchRegularExpression:
		return "(?:" + path + ")" + query
	case gwapiv1.PathMatchPathPrefix:
		if p := strings.TrimSuffix(path, "/"); p != "" {
			return regexp.QuoteMeta(p) + `(?:[/?].*)?`
		}
	}
	return ""
}
