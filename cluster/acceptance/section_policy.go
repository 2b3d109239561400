// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"net/http"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const sectionPolicy = "policy"

func policyRows() []row {
	return []row{
		{sectionPolicy, "read", "The policy file comes as HuJSON with its comments, as JSON, and with an ETag.", nil, readPolicy},
		{sectionPolicy, "validate-good", "The current policy file is valid: 200, and no message except for warnings.", nil, validateGood},
		{sectionPolicy, "validate-bad", "A text that is not a policy file is invalid, and the reply says why.", nil, validateBad},
		{sectionPolicy, "validate-warning", "The API's warnings about a policy file with a group that does not exist.", nil, validateWarning},
		{sectionPolicy, "wrong-etag", "A write with an ETag other than the current one is refused with 412.", []need{needPolicy}, wrongETag},
		{sectionPolicy, "mark", "A comment is added to the policy file, is kept, and is removed again.", []need{needPolicy}, markPolicy},
	}
}

// policy returns the policy file and its ETag.
func (t *turn) policy(ctx context.Context) (text, etag string, err error) {
	r, err := getPolicy(ctx, t.session)
	if err != nil {
		return "", "", err
	}
	if err := t.want("GET policy file", r, http.StatusOK); err != nil {
		return "", "", err
	}
	if etag = r.header.Get("ETag"); etag == "" {
		return "", "", errors.New("the reply has no ETag")
	}
	return string(r.body), etag, nil
}

func readPolicy(ctx context.Context, t *turn) error {
	text, etag, err := t.policy(ctx)
	if err != nil {
		return err
	}
	t.observe("the ETag is quoted", strings.HasPrefix(etag, `"`))
	if _, err := hujson.Parse([]byte(text)); err != nil {
		return errors.Wrap(err, "the policy file is not HuJSON")
	}
	r, err := t.get(ctx, t.tn("acl")...)
	if err != nil {
		return err
	}
	t.observe("as JSON", r.status)
	if r.ok() && r.value() == nil {
		return errors.New("the reply to a request for JSON is not JSON")
	}
	return nil
}

// validate lets the API validate a policy file, which changes nothing.
func (t *turn) validate(ctx context.Context, text string) (*reply, error) {
	r, err := t.do(ctx, call{method: http.MethodPost, path: t.tn("acl", "validate"), body: text, header: map[string]string{"Accept": "application/hujson"}})
	if err != nil {
		return nil, err
	}
	t.observe("status", r.status)
	t.observe("message", r.object()["message"] != nil)
	return r, refusal(r.status, r.message())
}

func validateGood(ctx context.Context, t *turn) error {
	text, _, err := t.policy(ctx)
	if err != nil {
		return err
	}
	r, err := t.validate(ctx, text)
	if err != nil {
		return err
	}
	if !r.ok() {
		return errors.Errorf("the API answered %d: %s", r.status, t.secret.text(r.message()))
	}
	t.observe("the reply is empty", len(bytes.TrimSpace(r.body)) == 0)
	refused, warnings := verdict(r)
	t.observe("warnings", len(warnings) > 0)
	for _, w := range warnings {
		t.note("warning: %s", w)
	}
	if refused != "" {
		return errors.Errorf("the API refuses the current policy file, and so every change by the product: %s", t.secret.text(refused))
	}
	return nil
}

// verdict reads the API's reply to a policy file as the product does: a message is a refusal,
// unless only warnings come with it (internal/tailscale, validatePolicy).
func verdict(r *reply) (refused string, warnings []string) {
	var v struct {
		Message string `json:"message"`
		Data    []struct {
			Errors   []string `json:"errors"`
			Warnings []string `json:"warnings"`
		} `json:"data"`
	}
	if len(bytes.TrimSpace(r.body)) == 0 {
		return "", nil
	}
	if err := r.into(&v); err != nil {
		return err.Error(), nil
	}
	var problems []string
	for _, d := range v.Data {
		problems = append(problems, d.Errors...)
		warnings = append(warnings, d.Warnings...)
	}
	if v.Message == "" || len(problems) == 0 && len(warnings) > 0 {
		return "", warnings
	}
	return strings.Join(append([]string{v.Message}, problems...), "; "), warnings
}

func validateBad(ctx context.Context, t *turn) error {
	for _, text := range []string{`{"grants": [}`, `{"grants": [{"src": ["tag:` + t.name("none") + `"], "dst": ["*"], "ip": ["*"]}]}`} {
		r, err := t.validate(ctx, text)
		if err != nil {
			return err
		}
		if r.ok() && r.object()["message"] == nil {
			return errors.Errorf("the API accepts the invalid policy file %s", text)
		}
		t.note("%d: %s", r.status, r.message())
	}
	return nil
}

// validateWarning lets the API validate a grant for a group that does not exist.
func validateWarning(ctx context.Context, t *turn) error {
	text, _, err := t.policy(ctx)
	if err != nil {
		return err
	}
	group := "group:" + t.name("group")
	changed, err := withGrant(text, group+"@example.com")
	if err != nil {
		return err
	}
	r, err := t.validate(ctx, changed)
	if err != nil {
		return err
	}
	t.note("%d: %s", r.status, strings.TrimSpace(string(r.body)))
	_, warnings := verdict(r)
	t.observe("warnings", len(warnings) > 0)
	if len(warnings) > 0 {
		t.note("warnings come with a message: a client that treats each message as a refusal rejects files that the API accepts")
	}
	if r.status >= 500 {
		return errors.Errorf("the API answered %d", r.status)
	}
	return nil
}

// withGrant returns a policy file with one more grant, for src.
func withGrant(text, src string) (string, error) {
	v, err := hujson.Parse([]byte(text))
	if err != nil {
		return "", errors.Wrap(err, "cannot parse the policy file")
	}
	grant := `{"src": ["` + src + `"], "dst": ["*"], "ip": ["tcp:1"]}`
	patch := `[{"op": "add", "path": "/grants/-", "value": ` + grant + `}]`
	if v.Find("/grants") == nil {
		patch = `[{"op": "add", "path": "/grants", "value": [` + grant + `]}]`
	}
	if err := v.Patch([]byte(patch)); err != nil {
		return "", errors.Wrap(err, "cannot change the policy file")
	}
	return v.String(), nil
}

// wrongETag writes the current text, so that nothing changes if the API accepts it.
func wrongETag(ctx context.Context, t *turn) error {
	text, _, err := t.policy(ctx)
	if err != nil {
		return err
	}
	r, err := setPolicy(ctx, t.session, text, strings.Repeat("0", 64))
	if err != nil {
		return err
	}
	t.observe("status", r.status)
	return t.want("a write with a wrong ETag", r, http.StatusPreconditionFailed)
}

func markPolicy(ctx context.Context, t *turn) error {
	original, etag, err := t.policy(ctx)
	if err != nil {
		return err
	}
	mark := policyMark(t.run.prefix)
	seq, err := t.run.ledger.intend(t.owner(), kindPolicy, mark, "")
	if err != nil {
		return err
	}
	r, err := setPolicy(ctx, t.session, withMark(original, mark), etag)
	if err != nil {
		return err
	}
	if err := errors.Join(t.tried(seq, r), t.want("POST policy file", r, http.StatusOK)); err != nil {
		return err
	}
	marked, _, err := t.policy(ctx)
	if err != nil {
		return err
	}
	if withoutMark(marked, mark) == marked {
		return errors.New("the policy file lacks the comment")
	}
	t.observe("the text is kept to the byte", marked == withMark(original, mark))
	if err := removePolicyMark(ctx, t.session, object{kindPolicy, mark, ""}); err != nil {
		return err
	}
	restored, _, err := t.policy(ctx)
	if err != nil {
		return err
	}
	if withoutMark(restored, mark) != restored {
		return errors.New("the comment is still there")
	}
	if restored != original && restored != original+"\n" {
		t.note("the policy file is not what it was before: somebody else changed it, or the API formats it")
	}
	return t.run.ledger.gone(seq)
}
