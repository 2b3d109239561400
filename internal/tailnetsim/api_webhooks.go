// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// webhookEvents are the events of webhooks.
var webhookEvents = []string{
	"categoryTailnetManagement", "nodeCreated", "nodeNeedsApproval", "nodeApproved", "nodeKeyExpiringInOneDay",
	"nodeKeyExpired", "nodeDeleted", "nodeSigned", "nodeNeedsSignature", "policyUpdate", "userCreated",
	"userNeedsApproval", "userSuspended", "userRestored", "userDeleted", "userApproved", "userRoleUpdated",
	"categoryDeviceMisconfigurations", "subnetIPForwardingNotEnabled", "exitNodeIPForwardingNotEnabled",
}

var webhookProviders = []string{"", "slack", "mattermost", "googlechat", "discord"}

// A webhook sends events to a URL; here it sends none. Its secret is kept as a
// hash.
type webhook struct {
	ID            string    `json:"id"`
	URL           string    `json:"url"`
	Provider      string    `json:"provider"`
	Creator       string    `json:"creator"`
	Created       time.Time `json:"created"`
	Modified      time.Time `json:"modified"`
	Subscriptions []string  `json:"subscriptions"`
	SecretHash    string    `json:"secretHash"`
}

// view is the webhook as the API shows it, without its secret.
func (w *webhook) view() map[string]any {
	return map[string]any{
		"endpointId": w.ID, "endpointUrl": w.URL, "providerType": w.Provider, "creatorLoginName": w.Creator,
		"created": w.Created, "lastModified": w.Modified, "subscriptions": nonNil(w.Subscriptions),
	}
}

// listWebhooks answers null when there is none (abn/ansible-tailscale-admin,
// tests/unit/plugins/modules/test_tailscale_webhook.py, which also has the reply to a
// URL that is in use and the order of subscriptions).
func listWebhooks(c *call) {
	var out []any
	for _, w := range sortedBy(c.s.st.Webhooks, func(a, b *webhook) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) }) {
		out = append(out, w.view())
	}
	c.json(map[string]any{"webhooks": out})
}

func createWebhook(c *call) {
	var req struct {
		EndpointURL   string   `json:"endpointUrl"`
		ProviderType  string   `json:"providerType"`
		Subscriptions []string `json:"subscriptions"`
	}
	if !c.decode(&req) {
		return
	}
	u, err := url.Parse(req.EndpointURL)
	// Only the scheme and the form are checked (tests/live/test_webhook_module_live.py).
	if err != nil || u.Host == "" || u.Scheme != "https" {
		c.fail(http.StatusBadRequest, "endpointUrl must be an HTTPS URL")
		return
	}
	if !slices.Contains(webhookProviders, req.ProviderType) {
		c.fail(http.StatusBadRequest, "unknown providerType "+req.ProviderType)
		return
	}
	if !areEvents(c, req.Subscriptions) {
		return
	}
	for _, w := range c.s.st.Webhooks {
		if w.URL == req.EndpointURL {
			c.fail(http.StatusInternalServerError, "internal error")
			return
		}
	}
	at := c.s.now().UTC().Truncate(time.Second)
	w := &webhook{
		ID: randomHex(6) + "CNTRL", URL: req.EndpointURL, Provider: req.ProviderType, Creator: c.actor.Client,
		Created: at, Modified: at, Subscriptions: sortedSet(req.Subscriptions),
	}
	c.s.st.Webhooks[w.ID] = w
	showWebhookSecret(c, w)
}

// sortedSet returns the form in which the API stores a list without order.
func sortedSet(values []string) []string { return slices.Compact(slices.Sorted(slices.Values(values))) }

// areEvents reports whether all are events and there is one, and answers if not.
func areEvents(c *call, events []string) bool {
	if len(events) == 0 {
		c.fail(http.StatusBadRequest, "subscriptions must not be empty")
		return false
	}
	for _, e := range events {
		if !slices.Contains(webhookEvents, e) {
			c.fail(http.StatusBadRequest, "unknown subscription "+e)
			return false
		}
	}
	return true
}

// showWebhookSecret gives a webhook a new secret and shows it, this once.
func showWebhookSecret(c *call, w *webhook) {
	secret := "tskey-webhook-" + w.ID + "-" + randomHex(16)
	w.SecretHash = hashSecret(secret)
	c.s.dirty()
	v := w.view()
	v["secret"] = secret
	c.json(v)
}

func (c *call) webhook() *webhook {
	w := c.s.st.Webhooks[c.r.PathValue("webhook")]
	if w == nil {
		c.fail(http.StatusNotFound, "webhook not found")
	}
	return w
}

func getWebhook(c *call) {
	if w := c.webhook(); w != nil {
		c.json(w.view())
	}
}

// patchWebhook changes subscriptions, and nothing else.
func patchWebhook(c *call) {
	w := c.webhook()
	if w == nil {
		return
	}
	var req struct {
		Subscriptions []string `json:"subscriptions"`
	}
	if !c.decode(&req) {
		return
	}
	if len(req.Subscriptions) == 0 {
		c.fail(http.StatusBadRequest, "no updates requested")
		return
	}
	if !areEvents(c, req.Subscriptions) {
		return
	}
	w.Subscriptions, w.Modified = sortedSet(req.Subscriptions), c.s.now().UTC().Truncate(time.Second)
	c.s.dirty()
	c.json(w.view())
}

func deleteWebhook(c *call) {
	if w := c.webhook(); w != nil {
		delete(c.s.st.Webhooks, w.ID)
		c.s.dirty()
		c.ok()
	}
}

func rotateWebhook(c *call) {
	if w := c.webhook(); w != nil {
		showWebhookSecret(c, w)
	}
}

// testWebhook promises an event that is never sent.
func testWebhook(c *call) {
	if c.webhook() != nil {
		c.w.WriteHeader(http.StatusAccepted)
	}
}
