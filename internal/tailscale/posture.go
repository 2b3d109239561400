// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"net/http"
	"time"

	tsclient "tailscale.com/client/tailscale/v2"
)

// scopePosture is the OAuth scope of posture integrations: they belong to the feature settings.
const scopePosture = "feature_settings"

// A PostureIntegration imports device data from a device management system into Tailscale. The
// client library's type lacks the status.
type PostureIntegration struct {
	tsclient.PostureIntegration

	Status PostureStatus `json:"status"`
}

// A PostureIntegrationRequest describes an integration to create, with its secret.
type PostureIntegrationRequest = tsclient.CreatePostureIntegrationRequest

// A PostureStatus is the result of an integration's last synchronization. It omits the time, which
// changes with each synchronization.
type PostureStatus struct {
	// Error is the error of the last synchronization in the provider's words; empty if it
	// succeeded.
	Error string `json:"error"`

	// MatchedCount is the number of the tailnet's devices that the provider knows.
	MatchedCount int64 `json:"matchedCount"`

	// PossibleMatchedCount is the number of the tailnet's devices that the provider could know.
	PossibleMatchedCount int64 `json:"possibleMatchedCount"`

	// ProviderHostCount is the number of the provider's devices.
	ProviderHostCount int64 `json:"providerHostCount"`
}

func isPostureIntegration(p PostureIntegration, id string) bool { return p.ID == id }

// A PostureResource calls the API for posture integrations.
type PostureResource struct{ *core }

func (c PostureResource) loadPostureIntegrations(ctx context.Context) ([]PostureIntegration, time.Time, error) {
	r := request{scope: scopePosture, method: http.MethodGet, path: []string{"tailnet", c.tailnet, "posture", "integrations"}, tailnet: true}
	return listOf[PostureIntegration](ctx, c.core, r, "integrations")
}

// integrations returns the shared list of posture integrations.
func (c PostureResource) integrations() *list[PostureIntegration] {
	return listOfKind(c.core, "posture-integrations", isPostureIntegration, func(c *core) loader[PostureIntegration] { return PostureResource{c}.loadPostureIntegrations })
}

// PostureIntegrations returns the tailnet's integrations from a shared list.
func (c PostureResource) PostureIntegrations(ctx context.Context, staleness Staleness) ([]PostureIntegration, error) {
	l, _, err := c.integrations().get(ctx, c.maxAge(staleness))
	return l, err
}

// PostureIntegration returns an integration by its ID. It always sends a request.
func (c PostureResource) PostureIntegration(ctx context.Context, id string) (*PostureIntegration, error) {
	p := &PostureIntegration{}
	if err := c.raw(ctx, scopePosture, http.MethodGet, nil, p, "posture", "integrations", id); err != nil {
		return nil, err
	}
	if p.ID == "" {
		return nil, &Error{Class: ClassUnavailable, Scope: scopePosture, Message: "the answer has no id"}
	}
	return p, nil
}

// CreatePostureIntegration creates an integration and returns its ID. Tailscale permits one per
// provider and answers with ClassConflict if there is one already.
func (c PostureResource) CreatePostureIntegration(ctx context.Context, p PostureIntegrationRequest) (string, error) {
	created, err := c.api.DevicePosture().CreateIntegration(ctx, p)
	if err != nil {
		return "", c.integrations().createFailed(classify(err, scopePosture, true))
	}
	return created.ID, c.integrations().add(created.ID, PostureIntegration{PostureIntegration: *created})
}

// UpdatePostureIntegration sets all fields of an integration except for its provider. An empty
// secret keeps the current one.
func (c PostureResource) UpdatePostureIntegration(ctx context.Context, id, cloudID, clientID, tenantID, secret string) error {
	// The client library omits empty fields, so their old values would remain.
	body := map[string]string{"cloudId": cloudID, "clientId": clientID, "tenantId": tenantID}
	if secret != "" {
		body["clientSecret"] = secret
	}
	return c.integrations().write(id, func() (fold[PostureIntegration], error) {
		if err := c.raw(ctx, scopePosture, http.MethodPatch, body, nil, "posture", "integrations", id); err != nil {
			return nil, err
		}
		return edited(func(p *PostureIntegration) { p.CloudID, p.ClientID, p.TenantID = cloudID, clientID, tenantID }), nil
	})
}

// DeletePostureIntegration removes an integration. It returns no error if the integration does not
// exist.
func (c PostureResource) DeletePostureIntegration(ctx context.Context, id string) error {
	return c.integrations().write(id, func() (fold[PostureIntegration], error) {
		err := c.api.DevicePosture().DeleteIntegration(ctx, id)
		return removed[PostureIntegration], ignoreNotFound(classify(err, scopePosture, false))
	})
}
