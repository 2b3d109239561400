// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/tailscale/hujson"
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

// getPolicy answers with the policy file; with details=1, encoded within JSON.
func (c *call) getPolicy() {
	if c.r.URL.Query().Get("details") == "" {
		c.writePolicy()
		return
	}
	c.w.Header().Set("ETag", c.s.policy.etag())
	c.json(map[string]any{"acl": []byte(c.s.policy.raw), "warnings": []string{}, "errors": []string{}})
}

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
	if f := c.s.failuresLocked(p, p.Tests); len(f) > 0 {
		writeFailures(c.w, http.StatusBadRequest, f)
		return
	}
	c.s.policy = p
	c.s.st.Policy = p.raw
	c.s.changedLocked()
	c.writePolicy()
}

// validatePolicy answers with nothing when a policy and its tests are good, or
// the tests of the body are against the present policy.
func (c *call) validatePolicy() {
	p, tests := c.s.policy, []policyTest{}
	var err error
	if bytes.HasPrefix(bytes.TrimSpace(c.body), []byte("[")) {
		var std []byte
		if std, err = hujson.Standardize(c.body); err == nil {
			err = json.Unmarshal(std, &tests)
		}
	} else if p, err = parsePolicy(string(c.body)); err == nil {
		tests = p.Tests
	}
	if err != nil {
		writeError(c.w, http.StatusOK, err.Error())
		return
	}
	if f := c.s.failuresLocked(p, tests); len(f) > 0 {
		writeFailures(c.w, http.StatusOK, f)
	}
}

// writeFailures answers as the API does when tests fail.
func writeFailures(w http.ResponseWriter, status int, f []testFailure) {
	writeJSON(w, status, map[string]any{"message": "test(s) failed", "data": f})
}
