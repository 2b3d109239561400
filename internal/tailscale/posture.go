// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"net/http"
	"time"

	tsclient "tailscale.com/client/tailscale/v2"
)

// scopePosture is the scope of integrations: they count as a feature's settings.
const scopePosture = "feature_settings"

// A PostureIntegration lets a device management system tell Tailscale about
// devices. The client library leaves out how it fares.
type PostureIntegration struct {
	tsclient.PostureIntegration

	Status PostureStatus `json:"status"`
}

// A PostureIntegrationRequest describes an integration to make, with its secret.
type PostureIntegrationRequest = tsclient.CreatePostureIntegrationRequest

// A PostureStatus says how the last synchronisation of an integration went.
// When that was is left out: it changes by time alone.
type PostureStatus struct {
	// Error of the last synchronisation, in the provider's words; empty if it
	// succeeded.
	Error string `json:"error"`

	// MatchedCount is how many devices of the tailnet the provider knows.
	MatchedCount int64 `json:"matchedCount"`

	// PossibleMatchedCount is how many devices of the tailnet could be matched.
	PossibleMatchedCount int64 `json:"possibleMatchedCount"`

	// ProviderHostCount is how many devices the provider has.
	ProviderHostCount int64 `json:"providerHostCount"`
}

func isPostureIntegration(p PostureIntegration, id string) bool { return p.ID == id }

func (c *Client) loadPostureIntegrations(ctx context.Context) ([]PostureIntegration, time.Time, error) {
	r := request{scope: scopePosture, method: http.MethodGet, path: []string{"tailnet", c.tailnet, "posture", "integrations"}, tailnet: true}
	return listOf[PostureIntegration](ctx, c, r, "integrations")
}

// PostureIntegrations returns the tailnet's integrations from a shared list.
func (c *Client) PostureIntegrations(ctx context.Context, staleness Staleness) ([]PostureIntegration, error) {
	l, _, err := c.integrations.get(ctx, c.maxAge(staleness))
	return l, err
}

// PostureIntegration returns an integration by its id, fresh.
func (c *Client) PostureIntegration(ctx context.Context, id string) (*PostureIntegration, error) {
	p := &PostureIntegration{}
	if err := c.raw(ctx, scopePosture, http.MethodGet, nil, p, "posture", "integrations", id); err != nil {
		return nil, err
	}
	if p.ID == "" {
		return nil, &Error{Class: ClassUnavailable, Scope: scopePosture, Message: "the answer has no id"}
	}
	return p, nil
}

// CreatePostureIntegration makes an integration and returns its id. Tailscale
// takes one per provider and answers with ClassConflict if there is one.
func (c *Client) CreatePostureIntegration(ctx context.Context, p PostureIntegrationRequest) (string, error) {
	made, err := c.api.DevicePosture().CreateIntegration(ctx, p)
	if err != nil {
		return "", c.integrations.createFailed(classify(err, scopePosture, true))
	}
	return made.ID, c.integrations.add(made.ID, PostureIntegration{PostureIntegration: *made})
}

// UpdatePostureIntegration sets all of an integration but its provider. An empty
// secret keeps the one that Tailscale has.
func (c *Client) UpdatePostureIntegration(ctx context.Context, id, cloudID, clientID, tenantID, secret string) error {
	// The client library omits empty fields, which would keep their old values.
	in := map[string]string{"cloudId": cloudID, "clientId": clientID, "tenantId": tenantID}
	if secret != "" {
		in["clientSecret"] = secret
	}
	return c.integrations.write(id, func() (fold[PostureIntegration], error) {
		if err := c.raw(ctx, scopePosture, http.MethodPatch, in, nil, "posture", "integrations", id); err != nil {
			return nil, err
		}
		return edited(func(p *PostureIntegration) { p.CloudID, p.ClientID, p.TenantID = cloudID, clientID, tenantID }), nil
	})
}

// DeletePostureIntegration removes an integration. One that does not exist is no
// error.
func (c *Client) DeletePostureIntegration(ctx context.Context, id string) error {
	return c.integrations.write(id, func() (fold[PostureIntegration], error) {
		err := c.api.DevicePosture().DeleteIntegration(ctx, id)
		return removed[PostureIntegration], ignoreNotFound(classify(err, scopePosture, false))
	})
}
