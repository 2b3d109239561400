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
		do     func() error
		beyond bool
	}{
		"PutService": {do: func() error { _, err := c.PutService(ctx, Service{Name: "svc:blog"}); return err }, beyond: true},
		"PutServiceTags": {do: func() error {
			_, err := c.PutService(ctx, Service{Name: "svc:shop", Tags: []string{"tag:x"}})
			return err
		}, beyond: true},
		"DeleteService":        {do: func() error { return c.DeleteService(ctx, "svc:blog") }, beyond: true},
		"DeleteServiceOurs":    {do: func() error { return c.DeleteService(ctx, "svc:shop") }},
		"ApproveHost":          {do: func() error { _, err := c.ApproveHost(ctx, "svc:blog", "nOurs"); return err }, beyond: true},
		"DeleteDevice":         {do: func() error { return c.DeleteDevice(ctx, "nTheirs") }, beyond: true},
		"DeleteDevicePerson":   {do: func() error { return c.DeleteDevice(ctx, "nPerson") }, beyond: true},
		"DeleteDeviceUnlisted": {do: func() error { return c.DeleteDevice(ctx, "nNew") }, beyond: true},
		"SetDeviceTags":        {do: func() error { return c.SetDeviceTags(ctx, "nOurs", []string{"tag:x"}) }, beyond: true},
		"SetDeviceTagsTheirs":  {do: func() error { return c.SetDeviceTags(ctx, "nTheirs", []string{"tag:shop"}) }, beyond: true},
		"SetDeviceAuthorized":  {do: func() error { return c.SetDeviceAuthorized(ctx, "nTheirs", true) }, beyond: true},
		"SetDeviceName":        {do: func() error { return c.SetDeviceName(ctx, "nTheirs", "x") }, beyond: true},
		"EditDeviceRoutes":     {do: func() error { return c.EditDeviceRoutes(ctx, "nTheirs", nil, nil) }, beyond: true},
		"SetDeviceKeyExpiry":   {do: func() error { return c.SetDeviceKeyExpiryDisabled(ctx, "nTheirs", true) }, beyond: true},
		"SetDeviceAttribute":   {do: func() error { return c.SetDeviceAttribute(ctx, "nTheirs", "custom:x", 1) }, beyond: true},
		"DelDeviceAttribute":   {do: func() error { return c.DeleteDeviceAttribute(ctx, "nTheirs", "custom:x") }, beyond: true},
		"SetDeviceNameOurs":    {do: func() error { return c.SetDeviceName(ctx, "nOurs", "x") }},
		"CreateKey": {do: func() error {
			_, err := c.CreateAuthKey(ctx, AuthKeyRequest{Preauthorized: true, Tags: []string{"tag:x"}})
			return err
		}, beyond: true},
		"CreateKeyUntagged": {do: func() error { _, err := c.CreateAuthKey(ctx, AuthKeyRequest{Preauthorized: true}); return err }, beyond: true},
		"CreateAuthKey": {do: func() error {
			_, err := c.CreateAuthKey(ctx, AuthKeyRequest{Preauthorized: true, Tags: []string{"tag:x"}})
			return err
		}, beyond: true},
		"CreateOAuthClient": {do: func() error {
			_, err := c.CreateOAuthClient(ctx, OAuthClientRequest{Tags: []string{"tag:x"}})
			return err
		}, beyond: true},
		"SetOAuthClient":      {do: func() error { return c.SetOAuthClient(ctx, "k", OAuthClientRequest{}) }, beyond: true},
		"CreateIdentity":      {do: func() error { _, err := c.CreateFederatedIdentity(ctx, FederatedIdentityRequest{}); return err }, beyond: true},
		"SetIdentity":         {do: func() error { return c.SetFederatedIdentity(ctx, "k", FederatedIdentityRequest{}) }, beyond: true},
		"RevokeAuthKeyOurs":   {do: func() error { return c.RevokeAuthKey(ctx, "kOurs") }},
		"RevokeAuthKey":       {do: func() error { return c.RevokeAuthKey(ctx, "kTheirs") }, beyond: true},
		"RevokeClient":        {do: func() error { return c.RevokeAuthKey(ctx, "kClient") }, beyond: true},
		"PatchSplitDNS":       {do: func() error { return c.PatchSplitDNS(ctx, map[string][]string{"example.com": nil}) }, beyond: true},
		"PatchSplitDNSOurs":   {do: func() error { return c.PatchSplitDNS(ctx, map[string][]string{"shop.example.com": nil}) }},
		"SetNameservers":      {do: func() error { return c.SetNameservers(ctx, nil) }, beyond: true},
		"SetSearchPaths":      {do: func() error { return c.SetSearchPaths(ctx, []string{"example.com"}) }, beyond: true},
		"SetMagicDNS":         {do: func() error { return c.SetMagicDNS(ctx, false) }, beyond: true},
		"SetOverrideLocalDNS": {do: func() error { return c.SetOverrideLocalDNS(ctx, true) }, beyond: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			writes = nil
			err := tc.do()
			if (err != nil) != tc.beyond || (len(writes) > 0) == tc.beyond {
				t.Errorf("want a refusal: %t, got %v and the writes %v", tc.beyond, err, writes)
			}
		})
	}
	writes = nil
	for _, id := range []string{"kClient", "kFederated", "kToken"} {
		if err := whole.RevokeAuthKey(ctx, id); err == nil || len(writes) > 0 {
			t.Errorf("RevokeAuthKey(%q) without a guard: want a refusal, got %v and the writes %v", id, err, writes)
		}
	}
	if err := whole.RevokeAuthKey(ctx, "kTheirs"); err != nil || len(writes) != 1 {
		t.Errorf("RevokeAuthKey(...) without a guard: want the key to be deleted, got %v and the writes %v", err, writes)
	}
	if whole.guard != nil || whole.Guarded(nil) != whole {
		t.Error("A guard must apply to one client only")
	}
}
