// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"

	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/causes"
)

// objects checks that the objects of users are ready. The same cause of many objects is one finding.
func objects(f Facts, o Options) result {
	out := result{summary: fmt.Sprintf("%d objects", len(f.Objects.Value))}
	for _, c := range causes.Find(f.Objects.Value) {
		out.findings = append(out.findings, Finding{
			Status: Wrong, Summary: Describe(c), Impact: Affected(c), Fix: c.NextStep(o.Kubectl()),
		})
	}
	if f.Objects.Unknown != "" {
		out.findings = append(out.findings, Finding{Status: Unknown, Summary: "whether objects are ready: " + f.Objects.Unknown})
	}
	return out
}

// Describe returns the object that fails, with its condition.
func Describe(c causes.Cause) string {
	out := fmt.Sprintf("%s is not ready: %s (%s", c.Subject(), c.Message, c.Reason)
	if len(c.Objects) > 0 && c.Objects[0].Reference != c.Subject() {
		out += " of " + c.Objects[0].String()
	}
	return out + ")"
}

// Affected returns how many objects wait for a cause beside the one that Describe names, or is empty.
func Affected(c causes.Cause) string {
	var others []string
	for _, u := range c.Users {
		if u != c.Subject() {
			others = append(others, u.String())
		}
	}
	if len(others) == 0 {
		return ""
	}
	return "Also not ready because of it: " + listed(others)
}
