// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// writePolicy answers with the policy file, as JSON if that alone is accepted.
func writePolicy(c *call) {
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
func getPolicy(c *call) {
	if c.r.URL.Query().Get("details") == "" {
		writePolicy(c)
		return
	}
	warnings := []string{}
	for _, w := range c.s.policy.warnings() {
		for _, text := range w.Warnings {
			warnings = append(warnings, w.User+": "+text)
		}
	}
	c.w.Header().Set("ETag", c.s.policy.etag())
	c.json(map[string]any{"acl": []byte(c.s.policy.raw), "warnings": warnings, "errors": []string{}})
}

// policyOfBody parses the policy file of the body, and answers 400 if it is invalid. JSON with
// comments that is sent as application/json results in a special message
// (abn/ansible-tailscale-admin, docs/troubleshooting.md, "exactly one capability scope must be
// populated").
func policyOfBody(c *call) (*policy, error) {
	p, err := parsePolicy(string(c.body), c.s.switches.UnsyncedGroups)
	if err == nil && strings.HasPrefix(c.r.Header.Get("Content-Type"), "application/json") && !json.Valid(c.body) {
		return nil, errors.New("exactly one capability scope must be populated")
	}
	return p, err
}

// setPolicy replaces the policy file. An empty body resets it to the default
// (tailscale/terraform-provider-tailscale, resource_acl.go, reset_acl_on_destroy).
// Warnings do not keep it from being written.
func setPolicy(c *call) {
	if m := c.r.Header.Get("If-Match"); m != "" {
		want := strings.Trim(m, `"`)
		// "ts-default" matches a file that has not been changed yet.
		fresh := want == "ts-default" && c.s.policy.raw == DefaultPolicy
		if want != strings.Trim(c.s.policy.etag(), `"`) && !fresh {
			c.fail(http.StatusPreconditionFailed, "precondition failed, invalid old hash")
			return
		}
	}
	if len(bytes.TrimSpace(c.body)) == 0 {
		c.body = []byte(DefaultPolicy)
		c.r.Header.Del("Content-Type")
	}
	p, err := policyOfBody(c)
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
	writePolicy(c)
}

// validatePolicy answers with nothing when a policy and its tests are good, or
// the tests of the body are against the present policy. Warnings are no failure,
// though they come in the same form (OpenAPI: paths./tailnet/{tailnet}/acl/validate).
func validatePolicy(c *call) {
	p, tests := c.s.policy, []policyTest{}
	var warnings []policyWarning
	var err error
	if bytes.HasPrefix(bytes.TrimSpace(c.body), []byte("[")) {
		var std []byte
		if std, err = hujson.Standardize(c.body); err == nil {
			err = json.Unmarshal(std, &tests)
		}
	} else if p, err = policyOfBody(c); err == nil {
		tests, warnings = p.Tests, p.warnings()
	}
	if err != nil {
		writeError(c.w, http.StatusOK, err.Error())
		return
	}
	if f := c.s.failuresLocked(p, tests); len(f) > 0 {
		writeFailures(c.w, http.StatusOK, f)
		return
	}
	if len(warnings) > 0 {
		c.json(map[string]any{"message": "warning(s) found", "data": warnings})
	}
}

// writeFailures answers as the API does when tests fail.
func writeFailures(w http.ResponseWriter, status int, f []testFailure) {
	writeJSON(w, status, map[string]any{"message": "test(s) failed", "data": f})
}

// A ruleMatch is a rule that applies to the subject of a preview.
type ruleMatch struct {
	Users      []string `json:"users"`
	Ports      []string `json:"ports"`
	LineNumber int      `json:"lineNumber"`
}

// previewPolicy lists the rules of the body's policy file that apply to a user, or to
// an address and port (OpenAPI: paths./tailnet/{tailnet}/acl/preview).
func previewPolicy(c *call) {
	q := c.r.URL.Query()
	kind, subject := q.Get("type"), q.Get("previewFor")
	if kind != "user" && kind != "ipport" {
		c.fail(http.StatusBadRequest, `type must be "user" or "ipport"`)
		return
	}
	if subject == "" {
		c.fail(http.StatusBadRequest, "previewFor must be set")
		return
	}
	p, err := policyOfBody(c)
	if err != nil {
		c.fail(http.StatusBadRequest, err.Error())
		return
	}
	matches := []ruleMatch{}
	for _, r := range p.placed() {
		m := ruleMatch{Users: r.Src, Ports: r.targets(), LineNumber: r.line}
		if kind == "user" && !slices.ContainsFunc(r.Src, func(sel string) bool { return c.s.meansLocked(p, sel, subject) }) {
			continue
		}
		if kind == "ipport" && !c.s.reachesLocked(p, r.rule, subject, "") {
			continue
		}
		matches = append(matches, m)
	}
	slices.SortStableFunc(matches, func(a, b ruleMatch) int { return cmp.Compare(a.LineNumber, b.LineNumber) })
	c.json(map[string]any{"matches": matches, "type": kind, "previewFor": subject})
}

// A placedRule is a rule with its line in the policy file.
type placedRule struct {
	rule

	line int
}

// placed returns the rules with their lines.
func (p *policy) placed() []placedRule {
	var out []placedRule
	root, err := hujson.Parse([]byte(p.raw))
	if err != nil {
		return nil // The file was parsed before.
	}
	for _, section := range []struct {
		pointer string
		rules   []rule
	}{{"/acls", p.ACLs}, {"/grants", p.Grants}} {
		list := root.Find(section.pointer)
		if list == nil {
			continue
		}
		a, ok := list.Value.(*hujson.Array)
		if !ok {
			continue
		}
		for i, r := range section.rules {
			out = append(out, placedRule{rule: r, line: 1 + strings.Count(p.raw[:a.Elements[i].StartOffset], "\n")})
		}
	}
	return out
}

// targets returns the destinations of a rule with their ports, as ACLs have them.
func (r rule) targets() []string {
	if r.Action != "" {
		return r.Dst
	}
	var out []string
	for _, d := range r.Dst {
		for _, p := range r.IP {
			out = append(out, d+":"+p)
		}
	}
	return out
}
