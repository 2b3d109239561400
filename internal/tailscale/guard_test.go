// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// errBeyond is the error of closed.
var errBeyond = errors.New("beyond")

// closed is a guard that permits only the tag, the service and the domain.
type closed struct{ tag, service, domain string }

func (c closed) Service(name string) error { return c.judge(name == c.service) }
func (c closed) Domain(d string) error     { return c.judge(d == c.domain) }
func (c closed) Key(tags []string) error   { return c.judge(len(tags) > 0 && tags[0] == c.tag) }
func (c closed) Tags(tags []string) error  { return c.judge(len(tags) == 0 || tags[0] == c.tag) }

func (c closed) Device(_ string, tags []string) error {
	return c.judge(len(tags) > 0 && tags[0] == c.tag)
}

func (c closed) judge(ok bool) error {
	if ok {
		return nil
	}
	return errBeyond
}

// TestGuard verifies that no write is sent that a guard rejects, and that the guard decides by the
// tags that devices and keys have in the tailnet.
func TestGuard(t *testing.T) {
	var writes []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := "{}"
		switch {
		case r.Method != http.MethodGet:
			writes = append(writes, r.Method+" "+r.URL.Path)
		case strings.HasSuffix(r.URL.Path, "/devices"):
			answer = `{"devices":[{"nodeId":"nOurs","tags":["tag:shop"]},{"nodeId":"nTheirs","tags":["tag:blog"]},{"nodeId":"nPerson"}]}`
		case strings.HasSuffix(r.URL.Path, "/device/nNew"):
			answer = `{"nodeId":"nNew","tags":["tag:blog"]}`
		case strings.HasSuffix(r.URL.Path, "/keys/kOurs"):
			answer = `{"id":"kOurs","keyType":"auth","capabilities":{"devices":{"create":{"tags":["tag:shop"]}}}}`
		case strings.HasSuffix(r.URL.Path, "/keys/kTheirs"):
			answer = `{"id":"kTheirs","keyType":"auth","capabilities":{"devices":{"create":{"tags":["tag:blog"]}}}}`
		case strings.HasSuffix(r.URL.Path, "/keys/kFederated"):
			answer = `{"id":"kFederated","keyType":"federated","tags":["tag:shop"]}`
		case strings.HasSuffix(r.URL.Path, "/keys/kToken"):
			answer = `{"id":"kToken","keyType":"api"}`
		case strings.HasSuffix(r.URL.Path, "/keys/kClient"):
			answer = `{"id":"kClient","keyType":"client","tags":["tag:shop"]}`
		}
		w.Header().Set("Content-Type", mediaJSON)
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(s.Close)
	whole, err := NewClient(Config{URL: s.URL, APIKey: "k"}, Options{Rate: 1000, Burst: 1000, ListMaxAge: time.Minute, Metrics: NewMetrics()})
	if err != nil {
		t.Fatal(err)
	}
	c := whole.Guarded(closed{tag: "tag:shop", service: "svc:shop", domain: "shop.example.com"})
	ctx := t.Context()
	cases := map[string]struct {
		call   func() error
		beyond bool
	}{
		"PutService": {call: func() error { _, err := c.Services().PutService(ctx, Service{Name: "svc:blog"}); return err }, beyond: true},
		"PutServiceTags": {call: func() error {
			_, err := c.Services().PutService(ctx, Service{Name: "svc:shop", Tags: []string{"tag:x"}})
			return err
		}, beyond: true},
		"DeleteService":        {call: func() error { return c.Services().DeleteService(ctx, "svc:blog") }, beyond: true},
		"DeleteServiceOurs":    {call: func() error { return c.Services().DeleteService(ctx, "svc:shop") }},
		"ApproveHost":          {call: func() error { _, err := c.Services().ApproveHost(ctx, "svc:blog", "nOurs"); return err }, beyond: true},
		"DeleteDevice":         {call: func() error { return c.Devices().DeleteDevice(ctx, "nTheirs") }, beyond: true},
		"DeleteDevicePerson":   {call: func() error { return c.Devices().DeleteDevice(ctx, "nPerson") }, beyond: true},
		"DeleteDeviceUnlisted": {call: func() error { return c.Devices().DeleteDevice(ctx, "nNew") }, beyond: true},
		"SetDeviceTags":        {call: func() error { return c.Devices().SetDeviceTags(ctx, "nOurs", []string{"tag:x"}) }, beyond: true},
		"SetDeviceTagsTheirs":  {call: func() error { return c.Devices().SetDeviceTags(ctx, "nTheirs", []string{"tag:shop"}) }, beyond: true},
		"SetDeviceAuthorized":  {call: func() error { return c.Devices().SetDeviceAuthorized(ctx, "nTheirs", true) }, beyond: true},
		"SetDeviceName":        {call: func() error { return c.Devices().SetDeviceName(ctx, "nTheirs", "x") }, beyond: true},
		"EditDeviceRoutes":     {call: func() error { return c.Devices().EditDeviceRoutes(ctx, "nTheirs", nil, nil) }, beyond: true},
		"SetDeviceKeyExpiry":   {call: func() error { return c.Devices().SetDeviceKeyExpiryDisabled(ctx, "nTheirs", true) }, beyond: true},
		"SetDeviceAttribute":   {call: func() error { return c.Devices().SetDeviceAttribute(ctx, "nTheirs", "custom:x", 1) }, beyond: true},
		"DelDeviceAttribute":   {call: func() error { return c.Devices().DeleteDeviceAttribute(ctx, "nTheirs", "custom:x") }, beyond: true},
		"SetDeviceNameOurs":    {call: func() error { return c.Devices().SetDeviceName(ctx, "nOurs", "x") }},
		"CreateKey": {call: func() error {
			_, err := c.Keys().CreateAuthKey(ctx, AuthKeyRequest{Preauthorized: true, Tags: []string{"tag:x"}})
			return err
		}, beyond: true},
		"CreateKeyUntagged": {call: func() error { _, err := c.Keys().CreateAuthKey(ctx, AuthKeyRequest{Preauthorized: true}); return err }, beyond: true},
		"CreateAuthKey": {call: func() error {
			_, err := c.Keys().CreateAuthKey(ctx, AuthKeyRequest{Preauthorized: true, Tags: []string{"tag:x"}})
			return err
		}, beyond: true},
		"CreateOAuthClient": {call: func() error {
			_, err := c.TrustCredentials().CreateOAuthClient(ctx, OAuthClientRequest{Tags: []string{"tag:x"}})
			return err
		}, beyond: true},
		"SetOAuthClient": {call: func() error { return c.TrustCredentials().SetOAuthClient(ctx, "k", OAuthClientRequest{}) }, beyond: true},
		"CreateIdentity": {call: func() error {
			_, err := c.TrustCredentials().CreateFederatedIdentity(ctx, FederatedIdentityRequest{})
			return err
		}, beyond: true},
		"SetIdentity":         {call: func() error { return c.TrustCredentials().SetFederatedIdentity(ctx, "k", FederatedIdentityRequest{}) }, beyond: true},
		"RevokeAuthKeyOurs":   {call: func() error { return c.Keys().RevokeAuthKey(ctx, "kOurs") }},
		"RevokeAuthKey":       {call: func() error { return c.Keys().RevokeAuthKey(ctx, "kTheirs") }, beyond: true},
		"RevokeClient":        {call: func() error { return c.Keys().RevokeAuthKey(ctx, "kClient") }, beyond: true},
		"PatchSplitDNS":       {call: func() error { return c.DNS().PatchSplitDNS(ctx, map[string][]string{"example.com": nil}) }, beyond: true},
		"PatchSplitDNSOurs":   {call: func() error { return c.DNS().PatchSplitDNS(ctx, map[string][]string{"shop.example.com": nil}) }},
		"SetNameservers":      {call: func() error { return c.DNS().SetNameservers(ctx, nil) }, beyond: true},
		"SetSearchPaths":      {call: func() error { return c.DNS().SetSearchPaths(ctx, []string{"example.com"}) }, beyond: true},
		"SetMagicDNS":         {call: func() error { return c.DNS().SetMagicDNS(ctx, false) }, beyond: true},
		"SetOverrideLocalDNS": {call: func() error { return c.DNS().SetOverrideLocalDNS(ctx, true) }, beyond: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			writes = nil
			err := tc.call()
			if (err != nil) != tc.beyond || (len(writes) > 0) == tc.beyond {
				t.Errorf("want a refusal: %t, got %v and the writes %v", tc.beyond, err, writes)
			}
		})
	}
	writes = nil
	for _, id := range []string{"kClient", "kFederated", "kToken"} {
		if err := whole.Keys().RevokeAuthKey(ctx, id); err == nil || len(writes) > 0 {
			t.Errorf("RevokeAuthKey(%q) without a guard: want a refusal, got %v and the writes %v", id, err, writes)
		}
	}
	if err := whole.Keys().RevokeAuthKey(ctx, "kTheirs"); err != nil || len(writes) != 1 {
		t.Errorf("RevokeAuthKey(...) without a guard: want the key to be deleted, got %v and the writes %v", err, writes)
	}
	if whole.guard != nil || whole.Guarded(nil) != whole {
		t.Error("A guard must apply to one client only")
	}
}
