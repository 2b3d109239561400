// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const (
	sectionCredential = "credential"
	sectionLists      = "lists"
)

// A listing is a resource of the API without an ID, and the type into which the product decodes it.
type listing struct {
	name    string
	scope   string
	path    []string
	tailnet bool // The path is below the tailnet.
	query   url.Values
	header  map[string]string
	typ     reflect.Type
	needed  []string
	// base reports that the product does nothing without the scope.
	base bool
	// optional listings may not exist: 404 is no failure.
	optional bool
}

// listings returns the lists of the API that the product reads.
func listings() []listing {
	return []listing{
		{
			name: "devices", scope: "devices:core", path: []string{"devices"}, tailnet: true, query: url.Values{"fields": {"all"}}, base: true,
			typ:    reflect.TypeFor[struct{ Devices []tailscale.Device }](),
			needed: []string{"devices[].nodeId", "devices[].name", "devices[].hostname", "devices[].addresses", "devices[].authorized"},
		},
		{
			name: "keys", scope: "auth_keys", path: []string{"keys"}, tailnet: true, query: url.Values{"all": {"true"}}, base: true,
			typ: reflect.TypeFor[struct{ Keys []tailscale.Key }](), needed: []string{"keys[].id"},
		},
		{
			name: "own-keys", scope: "oauth_keys, or that of a person", path: []string{"keys"}, tailnet: true,
			typ: reflect.TypeFor[struct{ Keys []tailscale.Key }](), needed: []string{"keys[].id"},
		},
		{
			name: "vip-services", scope: "services", path: []string{"vip-services"}, tailnet: true, base: true,
			typ: reflect.TypeFor[struct {
				VIPServices []tailscale.Service `json:"vipServices"`
			}](),
			needed: []string{"vipServices[].name", "vipServices[].addrs"},
		},
		{
			name: "services", scope: "services", path: []string{"services"}, tailnet: true, optional: true,
			typ: reflect.TypeFor[struct {
				VIPServices []tailscale.Service `json:"vipServices"`
			}](),
		},
		{name: "policy-file", scope: "policy_file:read", path: []string{"acl"}, tailnet: true, header: map[string]string{"Accept": "application/hujson"}},
		{
			name: "dns-nameservers", scope: "dns:read", path: []string{"dns", "nameservers"}, tailnet: true,
			typ: reflect.TypeFor[map[string][]string](), needed: []string{"dns"},
		},
		{
			name: "dns-searchpaths", scope: "dns:read", path: []string{"dns", "searchpaths"}, tailnet: true,
			typ: reflect.TypeFor[map[string][]string](), needed: []string{"searchPaths"},
		},
		{
			name: "dns-preferences", scope: "dns:read", path: []string{"dns", "preferences"}, tailnet: true,
			typ: reflect.TypeFor[tsclient.DNSPreferences](), needed: []string{"magicDNS"},
		},
		{name: "dns-split-dns", scope: "dns:read", path: []string{"dns", "split-dns"}, tailnet: true, typ: reflect.TypeFor[tsclient.SplitDNSResponse]()},
		{
			name: "dns-configuration", scope: "dns:read", path: []string{"dns", "configuration"}, tailnet: true, optional: true,
			typ: reflect.TypeFor[tsclient.DNSConfiguration](), needed: []string{"preferences"},
		},
		{name: "settings", scope: "feature_settings:read", path: []string{"settings"}, tailnet: true, typ: reflect.TypeFor[tailscale.Settings]()},
		{name: "contacts", scope: "account_settings:read", path: []string{"contacts"}, tailnet: true, typ: reflect.TypeFor[tailscale.Contacts]()},
		{name: "users", scope: "users:read", path: []string{"users"}, tailnet: true, typ: reflect.TypeFor[struct{ Users []tsclient.User }](), optional: true},
		{
			name: "webhooks", scope: "webhooks:read", path: []string{"webhooks"}, tailnet: true,
			typ: reflect.TypeFor[struct{ Webhooks []tailscale.Webhook }](), needed: []string{"webhooks[].endpointId", "webhooks[].endpointUrl"},
		},
		{
			name: "posture-integrations", scope: "feature_settings:read", path: []string{"posture", "integrations"}, tailnet: true,
			typ: reflect.TypeFor[struct {
				Integrations []tailscale.PostureIntegration
			}](),
			needed: []string{"integrations[].id", "integrations[].provider"},
		},
		{
			name: "logstream-configuration", scope: "log_streaming:read", path: []string{"logging", "configuration", "stream"}, tailnet: true, optional: true,
			typ: reflect.TypeFor[tailscale.LogstreamConfiguration](),
		},
		{
			name: "logstream-network", scope: "log_streaming:read", path: []string{"logging", "network", "stream"}, tailnet: true, optional: true,
			typ: reflect.TypeFor[tailscale.LogstreamConfiguration](),
		},
		{
			name: "organization-tailnets", scope: "tailnets:read", path: []string{"organizations", "-", "tailnets"}, optional: true,
			typ: reflect.TypeFor[struct {
				Tailnets []struct {
					ID          string `json:"id"`
					DisplayName string `json:"displayName"`
					OrgID       string `json:"orgId"`
					DNSName     string `json:"dnsName"`
				} `json:"tailnets"`
			}](),
		},
	}
}

func credentialRows() []row {
	rows := []row{
		{section: sectionCredential, name: "token", about: "The credential gets a token, with the fields that the product reads.", run: token},
		{section: sectionCredential, name: "scopes", about: "The credential has the scopes that the product requires.", run: scopes},
		{section: sectionCredential, name: "refused", about: "A wrong token is refused with 401, and an unknown tailnet with 404.", run: wrongToken},
	}
	for _, l := range listings() {
		rows = append(rows, row{
			section: sectionLists, name: l.name, about: "GET " + strings.Join(l.path, "/") + " (scope " + l.scope + ") decodes into the product's types.",
			run: l.probe,
		})
	}
	return append(rows, row{section: sectionLists, name: "product", about: "The product's own client reads every list that the credential may read.", run: productReads})
}

func token(ctx context.Context, t *turn) error {
	if t.cred.apiKey != "" {
		if t.run.locked != nil {
			return t.run.locked
		}
		return skipf(skipMissing, "an API access token needs no other token")
	}
	fresh, err := t.login(t.cred)
	if err != nil {
		return err
	}
	_, err = t.callWith(ctx, fresh, call{method: http.MethodGet, path: t.tn("devices")})
	r := t.rec.token()
	if r == nil {
		return errors.Errorf("no reply to the request for a token: %v", err)
	}
	if r.status != http.StatusOK {
		return errors.Errorf("the API answered %d: %s", r.status, t.secret.text(r.message()))
	}
	type answer struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
		ExpiresIn   int    `json:"expires_in"`
		Scope       string `json:"scope"`
	}
	if s := str(r.object(), "scope"); s != "" {
		t.note("scopes of the token: %s", s)
	}
	t.observe("expires_in", r.object()["expires_in"])
	return t.findings(r, reflect.TypeFor[answer](), "access_token", "expires_in")
}

// findings notes fields that the product does not know, and returns an error about
// those that it cannot decode or lacks.
func (t *turn) findings(r *reply, typ reflect.Type, needed ...string) error {
	if t := strings.TrimSpace(string(r.body)); t == "" {
		return errors.New("the reply is empty")
	}
	v := r.value()
	if v == nil {
		return errors.New("the reply is not JSON")
	}
	var bad []string
	for _, f := range compareType(v, typ, needed...) {
		if f.problem == fieldUnknown {
			t.note("%s", f)
			continue
		}
		bad = append(bad, f.String())
	}
	if len(bad) > 0 {
		return errors.New(strings.Join(bad, "; "))
	}
	return nil
}

func (l listing) get(ctx context.Context, t *turn) (*reply, error) {
	path := l.path
	if l.tailnet {
		path = t.tn(path...)
	}
	return t.do(ctx, call{method: http.MethodGet, path: path, query: l.query, header: l.header})
}

func (l listing) probe(ctx context.Context, t *turn) error {
	r, err := l.get(ctx, t)
	if err != nil {
		return err
	}
	t.observe("status", r.status)
	if l.optional && (r.status == http.StatusNotFound || r.status == http.StatusBadRequest) {
		t.note("the API answered %d: %s", r.status, r.message())
		return nil
	}
	if err := t.want(l.name, r, http.StatusOK); err != nil {
		return err
	}
	if l.typ == nil {
		if len(r.body) == 0 || r.header.Get("ETag") == "" {
			return errors.New("the reply has no text, or no ETag")
		}
		return nil
	}
	return t.findings(r, l.typ, l.needed...)
}

func scopes(ctx context.Context, t *turn) error {
	var lacks []string
	for _, l := range listings() {
		r, err := l.get(ctx, t)
		if err != nil {
			return err
		}
		works := r.ok() || r.status == http.StatusNotFound
		t.observe(l.name, works)
		if !works {
			t.note("%s (scope %s): %d: %s", l.name, l.scope, r.status, r.message())
			if l.base {
				lacks = append(lacks, l.scope)
			}
		}
	}
	if len(lacks) > 0 {
		return errors.Errorf("the credential lacks scopes that the product requires: %s", strings.Join(lacks, ", "))
	}
	return nil
}

func wrongToken(ctx context.Context, t *turn) error {
	wrong, err := t.login(credential{apiKey: "tskey-api-wrong"})
	if err != nil {
		return err
	}
	r, err := t.callWith(ctx, wrong, call{method: http.MethodGet, path: t.tn("devices")})
	if err != nil {
		return err
	}
	t.observe("wrong token", r.status)
	if r.status != http.StatusUnauthorized {
		return errors.Errorf("a wrong token: the API answered %d, want 401, which the product expects for a wrong credential", r.status)
	}
	r, err = t.get(ctx, "tailnet", t.name("none")+".example.com", "devices")
	if err != nil {
		return err
	}
	t.observe("unknown tailnet", r.status)
	if r.ok() {
		return errors.Errorf("an unknown tailnet: the API answered %d", r.status)
	}
	t.note("an unknown tailnet: %d: %s", r.status, r.message())
	return nil
}

func productReads(ctx context.Context, t *turn) error {
	c, err := t.login(t.cred)
	if err != nil {
		return err
	}
	var failed []string
	for _, read := range []struct {
		name string
		base bool
		call func() error
	}{
		{"devices", true, func() error { _, err := c.Devices().Devices(ctx, tailscale.Current); return err }},
		{"services", true, func() error { _, err := c.Services().Services(ctx, tailscale.Current); return err }},
		{"auth keys", true, func() error { _, err := c.Keys().AuthKeys(ctx, tailscale.Current); return err }},
		{"trust credentials", false, func() error { _, err := c.TrustCredentials().TrustCredentials(ctx, tailscale.Current); return err }},
		{"policy file", false, func() error { _, err := c.PolicyFile().PolicyFile(ctx, tailscale.Current); return err }},
		{"DNS", false, func() error { _, err := c.DNS().DNS(ctx, tailscale.Current); return err }},
		{"settings", false, func() error { _, err := c.Tailnet().Settings(ctx, tailscale.Current); return err }},
		{"contacts", false, func() error { _, err := c.Tailnet().Contacts(ctx, tailscale.Current); return err }},
		{"webhooks", false, func() error { _, err := c.Webhooks().Webhooks(ctx, tailscale.Current); return err }},
		{"posture integrations", false, func() error { _, err := c.Posture().PostureIntegrations(ctx, tailscale.Current); return err }},
		{"organization", false, func() error { _, err := c.Tailnet().Organization(ctx, ""); return err }},
	} {
		err := read.call()
		class := tailscale.ClassOf(err)
		switch {
		case err == nil:
		case !read.base && class != tailscale.ClassUnavailable && class != "":
			t.note("%s: %v", read.name, err)
		default:
			failed = append(failed, read.name+": "+err.Error())
		}
	}
	if len(failed) > 0 {
		return errors.New(strings.Join(failed, "; "))
	}
	return nil
}
