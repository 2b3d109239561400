// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"reflect"
	"slices"

	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const (
	sectionDNS      = "dns"
	sectionWebhooks = "webhooks"
	sectionPosture  = "posture"
)

// settingRows returns the rows about settings of a tailnet. Settings that are only read, such
// as log streams, are in the section lists.
func settingRows() []row {
	write := []need{needWrite}
	return []row{
		{sectionDNS, "split-dns", "A domain gets additional nameservers, and loses them again.", write, splitDNS},
		{sectionWebhooks, "webhook", "A webhook is created, shown without its secret, changed and removed.", write, webhookReplies},
		{sectionPosture, "attribute", "A node gets a posture attribute of each type, and loses it again.", write, attribute},
	}
}

func splitDNS(ctx context.Context, t *turn) error {
	path := t.tn("dns", "split-dns")
	previous, err := t.get(ctx, path...)
	if err != nil {
		return err
	}
	if err := t.want("GET split DNS", previous, http.StatusOK); err != nil {
		return err
	}
	domain := t.run.prefix + ".example.com"
	seq, err := t.run.ledger.intend(t.owner(), kindSplitDNS, domain, "")
	if err != nil {
		return err
	}
	// Addresses for documentation: no server gets queries.
	servers := []string{"192.0.2.53", "192.0.2.54"}
	r, err := t.send(ctx, http.MethodPatch, map[string]any{domain: servers}, path...)
	if err != nil {
		return err
	}
	if err := errors.Join(t.tried(seq, r), t.want("PATCH split DNS", r, http.StatusOK)); err != nil {
		return err
	}
	if r, err = t.get(ctx, path...); err != nil {
		return err
	}
	if err := t.findings(r, reflect.TypeFor[tsclient.SplitDNSResponse]()); err != nil {
		return err
	}
	var all map[string][]string
	if err := r.into(&all); err != nil {
		return err
	}
	if !slices.Equal(all[domain], servers) {
		return errors.Errorf("the domain has %v, want %v", all[domain], servers)
	}
	for other := range previous.object() {
		if _, ok := all[other]; !ok {
			t.note("another domain was removed meanwhile, or a PATCH removes others")
			t.observe("others stay", false)
		}
	}
	if err := t.removeDomain(ctx, domain); err != nil {
		return err
	}
	return t.run.ledger.gone(seq)
}

// removeDomain removes a split-DNS domain as the product does: by null, which the API's
// documentation has; and, if the domain is still there, by an empty list.
func (t *turn) removeDomain(ctx context.Context, domain string) error {
	path := t.tn("dns", "split-dns")
	for _, way := range []struct {
		name  string
		value []string
	}{{"null", nil}, {"an empty list", []string{}}} {
		r, err := t.send(ctx, http.MethodPatch, map[string][]string{domain: way.value}, path...)
		if err != nil {
			return err
		}
		if refused := refusal(r.status, r.message()); refused != nil {
			return refused
		}
		if !r.ok() {
			t.note("%s: %d: %s", way.name, r.status, r.message())
		}
		remaining, err := findSplitDNS(ctx, t.session, domain)
		if err != nil {
			return err
		}
		t.observe(way.name+" removes a domain", len(remaining) == 0)
		if len(remaining) == 0 {
			return nil
		}
	}
	return errors.New("neither null nor an empty list removes a domain")
}

func webhookReplies(ctx context.Context, t *turn) error {
	u := "https://" + t.run.prefix + ".example.com/hook"
	seq, err := t.run.ledger.intend(t.owner(), kindWebhook, u, "")
	if err != nil {
		return err
	}
	body := tsclient.CreateWebhookRequest{EndpointURL: u, Subscriptions: []tsclient.WebhookSubscriptionType{tsclient.WebhookNodeKeyExpired}}
	r, err := t.send(ctx, http.MethodPost, body, t.tn("webhooks")...)
	if err != nil {
		return err
	}
	if err := errors.Join(t.tried(seq, r), t.want("POST webhook", r, http.StatusOK, http.StatusCreated)); err != nil {
		return err
	}
	id := str(r.object(), "endpointId")
	if err := t.run.ledger.made(seq, id); err != nil {
		return err
	}
	t.secret.know(str(r.object(), "secret"))
	if err := t.findings(r, reflect.TypeFor[tailscale.Webhook](), "endpointId", "endpointUrl", "subscriptions", "secret"); err != nil {
		return err
	}
	get := func(step string) error {
		r, err := t.get(ctx, "webhooks", id)
		if err != nil {
			return err
		}
		if err := t.want("GET webhook", r, http.StatusOK); err != nil {
			return err
		}
		t.observe(step+": has a secret", str(r.object(), "secret") != "")
		t.observe(step+": subscriptions", r.object()["subscriptions"])
		return t.findings(r, reflect.TypeFor[tailscale.Webhook](), "endpointId", "endpointUrl", "subscriptions")
	}
	if err := get("made"); err != nil {
		return err
	}
	change := map[string]any{"subscriptions": []string{"nodeKeyExpired", "nodeKeyExpiringInOneDay"}}
	if r, err = t.send(ctx, http.MethodPatch, change, "webhooks", id); err != nil {
		return err
	}
	if err := t.want("PATCH webhook", r, http.StatusOK); err != nil {
		return err
	}
	if err := get("changed"); err != nil {
		return err
	}
	if r, err = t.send(ctx, http.MethodPost, nil, "webhooks", id, "rotate"); err != nil {
		return err
	}
	t.secret.know(str(r.object(), "secret"))
	if err := t.want("rotate", r, http.StatusOK); err != nil {
		return err
	}
	if str(r.object(), "secret") == "" {
		return errors.New("rotate: the reply has no secret")
	}
	if err := t.product.Webhooks().DeleteWebhook(ctx, id); err != nil {
		return err
	}
	if r, err = t.get(ctx, "webhooks", id); err != nil {
		return err
	}
	if err := t.want("GET of a webhook that was removed", r, http.StatusNotFound); err != nil {
		return err
	}
	return t.run.ledger.gone(seq)
}

func attribute(ctx context.Context, t *turn) error {
	n, err := t.client(ctx)
	if err != nil {
		return err
	}
	// A key has one type in the whole tailnet.
	for key, v := range map[string]any{"custom:tsgwAccText": "some.text", "custom:tsgwAccNumber": float64(42), "custom:tsgwAccFlag": true} {
		if err := t.attribute(ctx, n, key, v); err != nil {
			return err
		}
	}
	return nil
}

// attribute sets an attribute of a node, and removes it again.
func (t *turn) attribute(ctx context.Context, n *node, key string, v any) error {
	seq, err := t.run.ledger.intend(t.owner(), kindAttribute, key, n.id)
	if err != nil {
		return err
	}
	r, err := t.send(ctx, http.MethodPost, map[string]any{"value": v}, "device", n.id, "attributes", key)
	if err != nil {
		return err
	}
	if err := errors.Join(t.tried(seq, r), t.want("POST attribute", r, http.StatusOK)); err != nil {
		return err
	}
	value, err := t.attributeOf(ctx, n, key)
	if err != nil {
		return err
	}
	if value != v {
		return errors.Errorf("the attribute is %v, want %v", value, v)
	}
	if err := removeAttribute(ctx, t.session, object{kindAttribute, key, n.id}); err != nil {
		return err
	}
	if value, err = t.attributeOf(ctx, n, key); err != nil {
		return err
	}
	if value != nil {
		return errors.New("the attribute is still there")
	}
	return t.run.ledger.gone(seq)
}

// attributeOf returns a node's attribute, or nil.
func (t *turn) attributeOf(ctx context.Context, n *node, key string) (any, error) {
	r, err := t.get(ctx, "device", n.id, "attributes")
	if err != nil {
		return nil, err
	}
	if err := t.want("GET attributes", r, http.StatusOK); err != nil {
		return nil, err
	}
	m, _ := r.object()["attributes"].(map[string]any)
	return m[key], t.findings(r, reflect.TypeFor[tsclient.DevicePostureAttributes](), "attributes")
}
