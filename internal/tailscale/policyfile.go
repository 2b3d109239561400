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
	// mediaHuJSON makes the API answer with the policy file as people wrote it.
	mediaHuJSON = "application/hujson"

	// scopePolicyRead and scopePolicyWrite are all scopes of calls on the policy file:
	// it may name devices by their attributes (OpenAPI document, GET and POST
	// /tailnet/{tailnet}/acl). The API's refusal does not name the last two.
	scopePolicyRead  = scopePolicy + ":read" + scopePolicyBeside
	scopePolicyWrite = scopePolicy + scopePolicyBeside

	scopePolicyBeside = " and " + scopeDeviceAttributes + ":read and " + scopeDevices + ":read"

	// maxPolicyTries of an edit, if others change the policy file meanwhile.
	maxPolicyTries = 10

	// policyPause is how long to wait before the second try, at most. Each further
	// pause may be twice as long, up to maxPolicyPause, so that one of those who
	// write at the same time gets ahead of the others.
	policyPause    = 20 * time.Millisecond
	maxPolicyPause = time.Second
)

// A PolicyFile is a tailnet's policy file.
type PolicyFile struct {
	// Text in HuJSON, with comments.
	Text string

	// ETag identifies the version.
	ETag string
}

// PolicyFile returns the tailnet's policy file from the shared copy.
func (c *Client) PolicyFile(ctx context.Context, staleness Staleness) (PolicyFile, error) {
	return c.values.policy.get(ctx, c.maxAge(staleness))
}

func (c *Client) loadPolicy(ctx context.Context) (PolicyFile, error) {
	b, etag, err := c.rawHuJSON(ctx, scopePolicyRead, http.MethodGet, "", nil, "tailnet", c.tailnet, "acl")
	return PolicyFile{Text: string(b), ETag: etag}, err
}

// EditPolicyFile changes the policy file and returns the warnings of Tailscale about
// the new text. edit gets the text as it is now and returns what it is to be; it may
// be called again if somebody else changed the file meanwhile. Tailscale validates a
// new text, and runs its tests, before it is set: an error of ClassInvalid means that
// nothing was changed. Edits of one client wait for each other.
func (c *Client) EditPolicyFile(ctx context.Context, edit func(text string) (string, error)) (warnings []string, err error) {
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

func (c *Client) editPolicyOnce(ctx context.Context, edit func(string) (string, error)) ([]string, error) {
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
	// A write without an answer may have been done.
	defer c.values.policy.expire()
	etag := `"` + strings.Trim(p.ETag, `"`) + `"`
	_, _, err = c.rawHuJSON(ctx, scopePolicyWrite, http.MethodPost, etag, []byte(text), "tailnet", c.tailnet, "acl")
	return warnings, err
}

// A policyVerdict is how the API answers a validation with something to say.
type policyVerdict struct {
	Message string `json:"message"`
	Data    []struct {
		// User is the source of the test that failed.
		User     string   `json:"user"`
		Errors   []string `json:"errors"`
		Warnings []string `json:"warnings"`
	} `json:"data"`
}

// lines returns what each entry says, after the name of the entry.
func (v policyVerdict) lines(of func(i int) []string) []string {
	var out []string
	for i, d := range v.Data {
		said := of(i)
		if len(said) == 0 {
			continue
		}
		line := strings.Join(said, ", ")
		if d.User != "" {
			line = d.User + ": " + line
		}
		out = append(out, scrub(line))
	}
	return out
}

// validatePolicy returns warnings about a policy file, and an error of ClassInvalid
// that says why the API would refuse it. The API answers 200 either way: without a
// body, with errors, or with warnings alone, which is a success (OpenAPI document,
// POST /tailnet/{tailnet}/acl/validate; a group that is not synced from SCIM is the
// common one).
func (c *Client) validatePolicy(ctx context.Context, text string) ([]string, error) {
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
