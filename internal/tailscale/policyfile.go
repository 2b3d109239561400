// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// mediaHuJSON requests the policy file with its comments and formatting.
	mediaHuJSON = "application/hujson"

	// scopePolicyRead and scopePolicyWrite are all OAuth scopes of calls on the policy file: it may
	// refer to devices by their attributes (OpenAPI document, GET and POST /tailnet/{tailnet}/acl).
	// The API's error does not name the last two.
	scopePolicyRead  = scopePolicy + ":read" + scopePolicyBeside
	scopePolicyWrite = scopePolicy + scopePolicyBeside

	scopePolicyBeside = " and " + scopeDeviceAttributes + ":read and " + scopeDevices + ":read"

	// maxPolicyTries is the number of attempts of an edit if other clients change the policy file
	// concurrently.
	maxPolicyTries = 10

	// policyPause is the maximum pause before the second attempt. Each further pause may be twice
	// as long, up to maxPolicyPause, so that one of several concurrent writers succeeds first.
	policyPause    = 20 * time.Millisecond
	maxPolicyPause = time.Second
)

// A PolicyFile is a tailnet's policy file.
type PolicyFile struct {
	// Text is the policy file in HuJSON, with comments.
	Text string

	// ETag identifies the version of the policy file.
	ETag string
}

// A PolicyFileResource calls the API for the policy file.
type PolicyFileResource struct{ *core }

// PolicyFile returns the tailnet's policy file from the shared copy.
func (c PolicyFileResource) PolicyFile(ctx context.Context, staleness Staleness) (PolicyFile, error) {
	return c.values.policy.get(ctx, c.maxAge(staleness))
}

func (c PolicyFileResource) loadPolicy(ctx context.Context) (PolicyFile, error) {
	b, etag, err := c.rawHuJSON(ctx, scopePolicyRead, http.MethodGet, "", nil, "tailnet", c.tailnet, "acl")
	return PolicyFile{Text: string(b), ETag: etag}, err
}

// EditPolicyFile changes the policy file and returns Tailscale's warnings about the new text. edit
// receives the current text and returns the new one. It may be called again if another client
// changes the file in the meantime. Tailscale validates the new text and runs its tests before the
// text is set: an error of ClassInvalid means that nothing was changed. Edits of one client run one
// after another.
func (c PolicyFileResource) EditPolicyFile(ctx context.Context, edit func(text string) (string, error)) (warnings []string, err error) {
	select {
	case c.values.policyEdits <- struct{}{}:
		defer func() { <-c.values.policyEdits }()
	case <-ctx.Done():
		return nil, classify(ctx.Err(), scopePolicyWrite, false)
	}
	pause := wait.Backoff{Duration: policyPause / 2, Factor: 2, Jitter: 1, Steps: maxPolicyTries, Cap: maxPolicyPause}
	for {
		warnings, err := c.editPolicyOnce(ctx, edit)
		if ClassOf(err) != ClassPreconditionFailed || pause.Steps <= 1 {
			return warnings, err
		}
		select {
		case <-time.After(pause.Step()):
		case <-ctx.Done():
			return nil, classify(ctx.Err(), scopePolicyWrite, false)
		}
	}
}

func (c PolicyFileResource) editPolicyOnce(ctx context.Context, edit func(string) (string, error)) ([]string, error) {
	p, err := c.loadPolicy(ctx)
	if err != nil {
		return nil, err
	}
	text, err := edit(p.Text)
	if err != nil || text == p.Text {
		c.values.policy.expire()
		return nil, err
	}
	warnings, err := c.validatePolicy(ctx, text)
	if err != nil {
		return nil, err
	}
	// A write without a response may have succeeded.
	defer c.values.policy.expire()
	etag := `"` + strings.Trim(p.ETag, `"`) + `"`
	_, _, err = c.rawHuJSON(ctx, scopePolicyWrite, http.MethodPost, etag, []byte(text), "tailnet", c.tailnet, "acl")
	return warnings, err
}

// A policyVerdict is the API's response to a validation with errors or warnings.
type policyVerdict struct {
	Message string `json:"message"`
	Data    []struct {
		// User is the source of the test that failed.
		User     string   `json:"user"`
		Errors   []string `json:"errors"`
		Warnings []string `json:"warnings"`
	} `json:"data"`
}

// lines returns the texts of each entry, prefixed with the name of the entry.
func (v policyVerdict) lines(textsOf func(i int) []string) []string {
	var out []string
	for i, d := range v.Data {
		texts := textsOf(i)
		if len(texts) == 0 {
			continue
		}
		line := strings.Join(texts, ", ")
		if d.User != "" {
			line = d.User + ": " + line
		}
		out = append(out, scrub(line))
	}
	return out
}

// validatePolicy returns warnings about a policy file, and an error of ClassInvalid with the reason
// if the API would reject it. The API answers 200 in all cases: without a body, with errors, or
// with warnings alone, which is a success (OpenAPI document, POST /tailnet/{tailnet}/acl/validate;
// the most common warning is about a group that is not synced from SCIM).
func (c PolicyFileResource) validatePolicy(ctx context.Context, text string) ([]string, error) {
	a, err := c.do(ctx, request{
		scope: scopePolicyRead, method: http.MethodPost, media: mediaHuJSON, accept: mediaJSON,
		path: []string{"tailnet", c.tailnet, "acl", "validate"}, body: []byte(text),
	})
	if err != nil || len(bytes.TrimSpace(a.body)) == 0 {
		return nil, err
	}
	var v policyVerdict
	if err := json.Unmarshal(a.body, &v); err != nil {
		return nil, classify(err, scopePolicyRead, false)
	}
	refused := v.lines(func(i int) []string { return v.Data[i].Errors })
	warnings := v.lines(func(i int) []string { return v.Data[i].Warnings })
	if v.Message == "" || len(refused) == 0 && len(warnings) > 0 {
		return warnings, nil
	}
	message := strings.Join(append([]string{v.Message}, refused...), "; ")
	return nil, &Error{Class: ClassInvalid, Status: http.StatusBadRequest, Scope: scopePolicyRead, Message: scrub(message)}
}
