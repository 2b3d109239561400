// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"bytes"
	"net/http"
	"strings"
)

// writePolicy answers with the policy file, as JSON if that alone is accepted.
func (c *call) writePolicy() {
	p := c.s.policy
	c.w.Header().Set("ETag", p.etag())
	if a := c.r.Header.Get("Accept"); strings.Contains(a, "application/json") {
		b, err := p.json()
		if err != nil {
			c.fail(http.StatusInternalServerError, "cannot encode the policy file")
			return
		}
		c.w.Header().Set("Content-Type", "application/json")
		c.raw(b)
		return
	}
	c.w.Header().Set("Content-Type", "application/hujson")
	c.raw([]byte(p.raw))
}

func (c *call) raw(b []byte) {
	// The reply is a buffer: writing to it cannot fail.
	_, _ = c.w.Write(b)
}

func (c *call) getPolicy() { c.writePolicy() }

func (c *call) setPolicy() {
	if m := c.r.Header.Get("If-Match"); m != "" {
		want := strings.Trim(m, `"`)
		// "ts-default" matches a file that nobody has changed yet.
		fresh := want == "ts-default" && c.s.policy.raw == DefaultPolicy
		if want != strings.Trim(c.s.policy.etag(), `"`) && !fresh {
			c.fail(http.StatusPreconditionFailed, "precondition failed, invalid old hash")
			return
		}
	}
	p, err := parsePolicy(string(c.body))
	if err != nil {
		c.fail(http.StatusBadRequest, err.Error())
		return
	}
	c.s.policy = p
	c.s.st.Policy = p.raw
	c.s.changedLocked()
	c.writePolicy()
}

// validatePolicy answers with nothing when the policy, or the tests, are good.
// Tests are taken but not run.
func (c *call) validatePolicy() {
	if bytes.HasPrefix(bytes.TrimSpace(c.body), []byte("[")) {
		return
	}
	if _, err := parsePolicy(string(c.body)); err != nil {
		writeError(c.w, http.StatusOK, err.Error())
	}
}
