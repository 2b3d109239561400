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
	tsclient "tailscale.com/client/tailscale/v2"
)

const (
	// mediaHuJSON makes the API answer with the policy file as people wrote it.
	mediaHuJSON = "application/hujson"

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

	// ETag tells one version from another.
	ETag string
}

// PolicyFile returns the tailnet's policy file from the shared copy, which may
// be as old as maxAge; zero means the age that the client was made with.
func (c *Client) PolicyFile(ctx context.Context, maxAge time.Duration) (PolicyFile, error) {
	return c.wide.policy.get(ctx, c.age(maxAge))
}

func (c *Client) loadPolicy(ctx context.Context) (PolicyFile, error) {
	b, etag, err := c.rawHuJSON(ctx, scopePolicy+":read", http.MethodGet, "", nil, "tailnet", c.tailnet, "acl")
	return PolicyFile{Text: string(b), ETag: etag}, err
}

// EditPolicyFile changes the policy file. edit gets the text as it is now and
// returns what it is to be; it may be called again if somebody else changed the
// file meanwhile. Tailscale validates a new text, and runs its tests, before it
// is set: an error of ClassInvalid means that nothing was changed. Edits of one
// client wait for each other.
func (c *Client) EditPolicyFile(ctx context.Context, edit func(text string) (string, error)) error {
	select {
	case c.wide.policyEdits <- struct{}{}:
		defer func() { <-c.wide.policyEdits }()
	case <-ctx.Done():
		return classify(ctx.Err(), scopePolicy, false)
	}
	pause := wait.Backoff{Duration: policyPause / 2, Factor: 2, Jitter: 1, Steps: maxPolicyTries, Cap: maxPolicyPause}
	for {
		err := c.editPolicyOnce(ctx, edit)
		if ClassOf(err) != ClassPreconditionFailed || pause.Steps <= 1 {
			return err
		}
		select {
		case <-time.After(pause.Step()):
		case <-ctx.Done():
			return classify(ctx.Err(), scopePolicy, false)
		}
	}
}

func (c *Client) editPolicyOnce(ctx context.Context, edit func(string) (string, error)) error {
	p, err := c.loadPolicy(ctx)
	if err != nil {
		return err
	}
	text, err := edit(p.Text)
	if err != nil || text == p.Text {
		c.wide.policy.expire()
		return err
	}
	if err := c.validatePolicy(ctx, text); err != nil {
		return err
	}
	// A write without an answer may have been done.
	defer c.wide.policy.expire()
	etag := `"` + strings.Trim(p.ETag, `"`) + `"`
	_, _, err = c.rawHuJSON(ctx, scopePolicy, http.MethodPost, etag, []byte(text), "tailnet", c.tailnet, "acl")
	return err
}

// validatePolicy returns an error of ClassInvalid that says why the API would
// refuse a policy file. The API answers 200 either way: without a body, or with
// a message if something is wrong.
func (c *Client) validatePolicy(ctx context.Context, text string) error {
	b, _, err := c.rawHuJSON(ctx, scopePolicy+":read", http.MethodPost, "", []byte(text), "tailnet", c.tailnet, "acl", "validate")
	if err != nil || len(bytes.TrimSpace(b)) == 0 {
		return err
	}
	var refusal tsclient.APIError
	if err := json.Unmarshal(b, &refusal); err != nil {
		return classify(err, scopePolicy, false)
	}
	if refusal.Message == "" {
		return nil
	}
	parts := []string{refusal.Message}
	for _, d := range refusal.Data {
		parts = append(parts, d.User+": "+strings.Join(d.Errors, ", "))
	}
	return &Error{Class: ClassInvalid, Status: http.StatusBadRequest, Scope: scopePolicy, Message: scrub(strings.Join(parts, "; "))}
}
