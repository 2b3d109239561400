// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// postureProviders are those of the official client v2.10.1, and two of the product's
// documentation that it does not know yet: Kandji's new name Iru, and 1Password.
var postureProviders = []string{
	"1password", "falcon", "fleet", "huntress", "intune", "iru", "jamfpro", "kandji", "kolide", "sentinelone",
}

// A postureIntegration reads devices from a device management system; the simulator makes no
// requests. Its secret is stored as a hash.
type postureIntegration struct {
	ID         string    `json:"id"`
	Provider   string    `json:"provider"`
	CloudID    string    `json:"cloudId"`
	ClientID   string    `json:"clientId"`
	TenantID   string    `json:"tenantId"`
	SecretHash string    `json:"secretHash"`
	Updated    time.Time `json:"updated"`
	Synced     time.Time `json:"synced"`
	Error      string    `json:"error"`
	Matched    int       `json:"matched"`
}

// view is the integration as the API shows it, without its secret.
func (p *postureIntegration) view() map[string]any {
	return map[string]any{
		"id": p.ID, "provider": p.Provider, "cloudId": p.CloudID, "clientId": p.ClientID, "tenantId": p.TenantID,
		"configUpdated": p.Updated,
		"status": map[string]any{
			"lastSync": p.Synced, "error": p.Error,
			"matchedCount": p.Matched, "possibleMatchedCount": p.Matched, "providerHostCount": p.Matched,
		},
	}
}

// SetPostureStatus has the integration with a provider report an error, or that
// it matched so many devices.
func (s *Server) SetPostureStatus(provider, failure string, matched int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.st.Postures {
		if p.Provider == provider {
			p.Error, p.Matched, p.Synced = failure, matched, s.now().UTC()
			s.dirty()
			return nil
		}
	}
	return errors.Errorf("there is no integration with %q", provider)
}

func listPostures(c *call) {
	out := []any{}
	for _, p := range sortedBy(c.s.st.Postures, func(a, b *postureIntegration) int { return cmp.Compare(a.ID, b.ID) }) {
		out = append(out, p.view())
	}
	c.json(map[string]any{"integrations": out})
}

// A postureRequest does not change absent fields.
type postureRequest struct {
	Provider     string  `json:"provider"`
	CloudID      *string `json:"cloudId"`
	ClientID     *string `json:"clientId"`
	TenantID     *string `json:"tenantId"`
	ClientSecret *string `json:"clientSecret"`
}

func (r *postureRequest) apply(p *postureIntegration) {
	for from, to := range map[*string]*string{r.CloudID: &p.CloudID, r.ClientID: &p.ClientID, r.TenantID: &p.TenantID} {
		if from != nil {
			*to = *from
		}
	}
	if r.ClientSecret != nil {
		p.SecretHash = hashSecret(*r.ClientSecret)
	}
}

func createPosture(c *call) {
	var req postureRequest
	if !c.decode(&req) {
		return
	}
	if !slices.Contains(postureProviders, req.Provider) {
		c.fail(http.StatusBadRequest, "unknown provider "+req.Provider)
		return
	}
	if req.ClientSecret == nil || *req.ClientSecret == "" {
		c.fail(http.StatusBadRequest, "clientSecret must be set")
		return
	}
	for _, p := range c.s.st.Postures {
		if p.Provider == req.Provider {
			c.fail(http.StatusConflict, "a posture integration for the same provider already exists")
			return
		}
	}
	p := &postureIntegration{ID: "p" + randomHex(6) + "CNTRL", Provider: req.Provider, Updated: c.s.now().UTC()}
	req.apply(p)
	c.s.st.Postures[p.ID] = p
	c.s.dirty()
	c.json(p.view())
}

func (c *call) posture() *postureIntegration {
	p := c.s.st.Postures[c.r.PathValue("integration")]
	if p == nil {
		c.fail(http.StatusNotFound, "posture integration not found")
	}
	return p
}

func getPosture(c *call) {
	if p := c.posture(); p != nil {
		c.json(p.view())
	}
}

// patchPosture ignores the provider.
func patchPosture(c *call) {
	p := c.posture()
	if p == nil {
		return
	}
	var req postureRequest
	if !c.decode(&req) {
		return
	}
	req.apply(p)
	p.Updated = c.s.now().UTC()
	c.s.dirty()
	c.json(p.view())
}

func deletePosture(c *call) {
	if p := c.posture(); p != nil {
		delete(c.s.st.Postures, p.ID)
		c.s.dirty()
		c.ok()
	}
}
