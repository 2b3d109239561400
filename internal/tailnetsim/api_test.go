// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/oauth2"
	"tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

// status is the code and message of an API error, or zero.
func status(t *testing.T, err error) (int, string) {
	t.Helper()
	if err == nil {
		return 0, ""
	}
	var ae tailscale.APIError
	if !errors.As(err, &ae) {
		t.Fatalf("not an API error: %v", err)
	}
	return ae.Status, ae.Message
}

func must[T any](t *testing.T) func(v T, err error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
		return v
	}
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

func TestOAuth(t *testing.T) {
	r := simtest.StartAPI(t, func(o *tailnetsim.Options) {
		o.Clients = append(o.Clients,
			tailnetsim.OAuthClient{ID: "reader", Secret: "tskey-client-reader", Scopes: []string{"services:read"}},
			tailnetsim.OAuthClient{ID: "old", Secret: "tskey-client-old", Scopes: []string{"all"}},
		)
	})
	t.Run("WrongSecret", func(t *testing.T) {
		_, err := r.ClientWith(t, "tskey-client-wrong").Devices().List(t.Context())
		var re *oauth2.RetrieveError
		if !errors.As(err, &re) {
			t.Fatalf("want a retrieve error, got %v", err)
		}
		if diff := cmp.Diff(http.StatusUnauthorized, re.Response.StatusCode); diff != "" {
			t.Errorf("status: -want, +got:\n%s", diff)
		}
		if diff := cmp.Diff(`{"message":"API token invalid"}`, string(re.Body)); diff != "" {
			t.Errorf("body: -want, +got:\n%s", diff)
		}
	})
	t.Run("MissingScope", func(t *testing.T) {
		u := must[*url.URL](t)(url.Parse(r.URL))
		c := &tailscale.Client{BaseURL: u, Auth: &tailscale.OAuth{ClientID: "reader", ClientSecret: "tskey-client-reader"}}
		_, err := c.VIPServices().List(t.Context())
		mustDo(t, err)
		code, msg := status(t, c.VIPServices().Delete(t.Context(), "svc:x"))
		if code != http.StatusForbidden || !strings.Contains(msg, "not have enough permissions") {
			t.Errorf("writing with a read scope: %d %s", code, msg)
		}
		_, err = c.Keys().List(t.Context(), true)
		if code, _ := status(t, err); code != http.StatusForbidden {
			t.Errorf("listing keys without scope: %d", code)
		}
	})
	t.Run("APIKey", func(t *testing.T) {
		u := must[*url.URL](t)(url.Parse(r.URL))
		c := &tailscale.Client{BaseURL: u, APIKey: simtest.APIKey}
		_, err := c.Devices().List(t.Context())
		mustDo(t, err)
		c = &tailscale.Client{BaseURL: u, APIKey: "tskey-api-wrong"}
		_, err = c.Devices().List(t.Context())
		if code, _ := status(t, err); code != http.StatusUnauthorized {
			t.Errorf("a wrong API key: %d", code)
		}
	})
	t.Run("Tailnet", func(t *testing.T) {
		for name, want := range map[string]int{"-": 0, "example.com": 0, "tail1234.ts.net": 0, "other.com": http.StatusNotFound} {
			c := r.Client(t)
			c.Tailnet = name
			_, err := c.Devices().List(t.Context())
			if code, _ := status(t, err); code != want {
				t.Errorf("tailnet %q: want %d, got %d", name, want, code)
			}
		}
	})
}

func TestTokenExpires(t *testing.T) {
	r := simtest.StartAPI(t, func(o *tailnetsim.Options) { o.TokenLifetime = time.Nanosecond })
	form := strings.NewReader(url.Values{"client_id": {simtest.ClientID}, "client_secret": {simtest.ClientSecret}, "grant_type": {"client_credentials"}}.Encode())
	req := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodPost, r.URL+"/api/v2/oauth/token", form))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	var tok struct {
		AccessToken string `json:"access_token"`
	}
	decode(t, req, http.StatusOK, &tok)
	req = must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodGet, r.URL+"/api/v2/tailnet/-/devices", nil))
	req.Header.Set("Authorization", "Bearer "+tok.AccessToken)
	var msg map[string]string
	decode(t, req, http.StatusUnauthorized, &msg)
	if diff := cmp.Diff(map[string]string{"message": "API token invalid"}, msg); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestKeys(t *testing.T) {
	r := simtest.StartAPI(t)
	c := r.Client(t).Keys()
	k := r.NewKey(t, true, "tag:k8s")
	if !strings.HasPrefix(k.Key, "tskey-auth-"+k.ID) || k.Invalid || !k.Expires.After(time.Now()) {
		t.Errorf("a new key: id %s, invalid %t, expires %s", k.ID, k.Invalid, k.Expires)
	}
	got := must[*tailscale.Key](t)(c.Get(t.Context(), k.ID))
	if diff := cmp.Diff(k.Capabilities, got.Capabilities); diff != "" {
		t.Errorf("capabilities: -want, +got:\n%s", diff)
	}
	if got.Key != "" {
		t.Error("the API shows a key's secret again")
	}
	ks := must[[]tailscale.Key](t)(c.List(t.Context(), true))
	if len(ks) != 1 || ks[0].ID != k.ID {
		t.Errorf("list: %v", ks)
	}
	mustDo(t, c.Delete(t.Context(), k.ID))
	if code, _ := status(t, c.Delete(t.Context(), k.ID)); code != http.StatusNotFound {
		t.Errorf("deleting again: %d", code)
	}
	got = must[*tailscale.Key](t)(c.Get(t.Context(), k.ID))
	if !got.Invalid || got.Revoked.IsZero() {
		t.Errorf("a revoked key can be read for a while: invalid %t, revoked %s", got.Invalid, got.Revoked)
	}
	if ks = must[[]tailscale.Key](t)(c.List(t.Context(), true)); len(ks) != 0 {
		t.Errorf("list of valid keys: %v", ks)
	}
	if _, err := r.Join(tailnetsim.Puppet{Hostname: "late", AuthKey: k.Key}); err == nil {
		t.Error("a revoked key logged a node in")
	}

	cases := map[string]struct {
		reason      string
		tags        []string
		expiry      int64
		description string
		want        string
	}{
		"NoTags":         {reason: "A key of an OAuth client must have tags.", want: "tailnet-owned auth key must have tags set"},
		"ForeignTag":     {reason: "A tag that the client does not own is refused.", tags: []string{"tag:other"}, want: "requested tags [tag:other] are invalid or not permitted"},
		"TooLongALife":   {reason: "Keys live for 90 days at most.", tags: []string{"tag:k8s"}, expiry: 7776001, want: "expirySeconds"},
		"BadDescription": {reason: "Descriptions are plain.", tags: []string{"tag:k8s"}, description: "a/b", want: "keys: description had invalid characters"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := tailscale.CreateKeyRequest{ExpirySeconds: tc.expiry, Description: tc.description}
			req.Capabilities.Devices.Create.Tags = tc.tags
			_, err := c.CreateAuthKey(t.Context(), req)
			code, msg := status(t, err)
			if code != http.StatusBadRequest || !strings.Contains(msg, tc.want) {
				t.Errorf("%s\nwant 400 %q, got %d %q", tc.reason, tc.want, code, msg)
			}
		})
	}
}

func TestVIPServices(t *testing.T) {
	r := simtest.StartAPI(t)
	c := r.Client(t).VIPServices()
	ports := []string{"tcp:80"}
	want := tailscale.VIPService{
		Name: "svc:web", Comment: "hello", Annotations: map[string]string{"owner": "me"}, Ports: []string{"tcp:80"}, Tags: []string{"tag:k8s"},
	}
	mustDo(t, c.CreateOrUpdate(t.Context(), want))
	got := must[*tailscale.VIPService](t)(c.Get(t.Context(), "svc:web"))
	if len(got.Addrs) != 2 || !strings.HasPrefix(got.Addrs[0], "100.") || !strings.HasPrefix(got.Addrs[1], "fd7a:115c:a1e0:") {
		t.Errorf("addresses: %v", got.Addrs)
	}
	want.Addrs = got.Addrs
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Errorf("get: -want, +got:\n%s", diff)
	}
	want.Comment = "changed"
	mustDo(t, c.CreateOrUpdate(t.Context(), want))
	list := must[[]tailscale.VIPService](t)(c.List(t.Context()))
	if diff := cmp.Diff([]tailscale.VIPService{want}, list); diff != "" {
		t.Errorf("list: -want, +got:\n%s", diff)
	}

	cases := map[string]struct {
		reason string
		svc    tailscale.VIPService
		code   int
		want   string
	}{
		"OmittedAddrs":  {reason: "An update must carry the addresses.", svc: tailscale.VIPService{Name: "svc:web", Ports: ports}, code: 400, want: "addrs must contain 2 elements"},
		"BadName":       {reason: "A name is svc: and a DNS label.", svc: tailscale.VIPService{Name: "svc:no_label"}, code: 400, want: "invalid service name"},
		"NoPrefix":      {reason: "A name is svc: and a DNS label.", svc: tailscale.VIPService{Name: "web"}, code: 400, want: "invalid service name"},
		"BadPort":       {reason: "Ports are TCP.", svc: tailscale.VIPService{Name: "svc:a", Ports: []string{"udp:53"}}, code: 400, want: "invalid port"},
		"PortOutOf":     {reason: "Ports end at 65535.", svc: tailscale.VIPService{Name: "svc:a", Ports: []string{"tcp:65536"}}, code: 400, want: "invalid port"},
		"BadTag":        {reason: "Tags begin with tag:.", svc: tailscale.VIPService{Name: "svc:a", Ports: ports, Tags: []string{"k8s"}}, code: 400, want: "invalid tag"},
		"ForeignTag":    {reason: "The client must own the tags.", svc: tailscale.VIPService{Name: "svc:a", Ports: ports, Tags: []string{"tag:other"}}, code: 400, want: "not permitted"},
		"WrongRange":    {reason: "An address must be in 100.64.0.0/10.", svc: tailscale.VIPService{Name: "svc:a", Ports: ports, Addrs: []string{"10.0.0.1"}}, code: 400, want: "100.64.0.0/10"},
		"TakenAddr":     {reason: "An address belongs to one service.", svc: tailscale.VIPService{Name: "svc:a", Ports: ports, Addrs: want.Addrs[:1]}, code: 400, want: "in use"},
		"RequestedAddr": {reason: "A free IPv4 address may be asked for.", svc: tailscale.VIPService{Name: "svc:b", Addrs: []string{"100.99.0.9"}, Ports: []string{"do-not-validate"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			code, msg := status(t, c.CreateOrUpdate(t.Context(), tc.svc))
			if code != tc.code || !strings.Contains(msg, tc.want) {
				t.Errorf("%s\nwant %d %q, got %d %q", tc.reason, tc.code, tc.want, code, msg)
			}
		})
	}
	b := must[*tailscale.VIPService](t)(c.Get(t.Context(), "svc:b"))
	if diff := cmp.Diff("100.99.0.9", b.Addrs[0]); diff != "" {
		t.Errorf("requested address: -want, +got:\n%s", diff)
	}
	// The other spelling, which also renames.
	var renamed map[string]any
	call(t, r, http.MethodPut, "/api/v2/tailnet/-/services/svc:web", map[string]any{"name": "svc:web2", "addrs": want.Addrs, "displayName": "Web", "ports": ports}, &renamed)
	if diff := cmp.Diff([]any{"svc:web2", "Web"}, []any{renamed["name"], renamed["displayName"]}); diff != "" {
		t.Errorf("rename: -want, +got:\n%s", diff)
	}
	mustDo(t, c.Delete(t.Context(), "svc:web2"))
	_, err := c.Get(t.Context(), "svc:web2")
	if !tailscale.IsNotFound(err) {
		t.Errorf("a deleted service: %v", err)
	}
	var hosts map[string]any
	call(t, r, http.MethodGet, "/api/v2/tailnet/-/services/svc:b/devices", nil, &hosts)
	if diff := cmp.Diff(map[string]any{}, hosts); diff != "" {
		t.Errorf("hosts: -want, +got:\n%s", diff)
	}
}

func TestPolicyFile(t *testing.T) {
	r := simtest.StartAPI(t)
	c := r.Client(t).PolicyFile()
	raw := must[*tailscale.RawACL](t)(c.Raw(t.Context()))
	if diff := cmp.Diff(tailnetsim.DefaultPolicy, raw.HuJSON); diff != "" {
		t.Errorf("raw: -want, +got:\n%s", diff)
	}
	acl := must[*tailscale.ACL](t)(c.Get(t.Context()))
	if diff := cmp.Diff([]string{"tag:k8s-operator"}, acl.TagOwners["tag:k8s"]); diff != "" {
		t.Errorf("typed: -want, +got:\n%s", diff)
	}
	next := strings.Replace(raw.HuJSON, "// The", "// Still the", 1)
	mustDo(t, c.Validate(t.Context(), next))
	mustDo(t, c.Set(t.Context(), next, raw.ETag))
	if code, _ := status(t, c.Set(t.Context(), next, raw.ETag)); code != http.StatusPreconditionFailed {
		t.Errorf("a stale ETag: %d", code)
	}
	for name, bad := range map[string]string{"Syntax": "{", "Section": `{"aclz": []}`, "Tag": `{"autoApprovers": {"services": {"tag:none": ["tag:none"]}}}`} {
		if err := c.Validate(t.Context(), bad); err == nil {
			t.Errorf("%s: a bad policy is valid", name)
		}
		if code, _ := status(t, c.Set(t.Context(), bad, "")); code != http.StatusBadRequest {
			t.Errorf("%s: setting a bad policy: %d", name, code)
		}
	}
}

func TestDNSAndSettings(t *testing.T) {
	r := simtest.StartAPI(t)
	d, ctx := r.Client(t).DNS(), t.Context()
	mustDo(t, d.SetNameservers(ctx, []string{"1.1.1.1"}))
	mustDo(t, d.SetSearchPaths(ctx, []string{"a.example"}))
	mustDo(t, d.SetSplitDNS(ctx, tailscale.SplitDNSRequest{"b.example": {"9.9.9.9"}}))
	split := must[tailscale.SplitDNSResponse](t)(d.UpdateSplitDNS(ctx, tailscale.SplitDNSRequest{"b.example": nil, "c.example": {"8.8.8.8"}}))
	if diff := cmp.Diff(tailscale.SplitDNSResponse{"c.example": {"8.8.8.8"}}, split); diff != "" {
		t.Errorf("split DNS: -want, +got:\n%s", diff)
	}
	if p := must[*tailscale.DNSPreferences](t)(d.Preferences(ctx)); !p.MagicDNS {
		t.Error("MagicDNS is off at first")
	}
	conf := must[*tailscale.DNSConfiguration](t)(d.Configuration(ctx))
	want := &tailscale.DNSConfiguration{
		Nameservers: []tailscale.DNSConfigurationResolver{{Address: "1.1.1.1"}},
		SplitDNS:    map[string][]tailscale.DNSConfigurationResolver{"c.example": {{Address: "8.8.8.8"}}},
		SearchPaths: []string{"a.example"},
		Preferences: tailscale.DNSConfigurationPreferences{MagicDNS: true},
	}
	if diff := cmp.Diff(want, conf); diff != "" {
		t.Errorf("configuration: -want, +got:\n%s", diff)
	}
	want.Preferences.MagicDNS = false
	mustDo(t, d.SetConfiguration(ctx, *want))
	if p := must[*tailscale.DNSPreferences](t)(d.Preferences(ctx)); p.MagicDNS {
		t.Error("MagicDNS is still on")
	}
	mustDo(t, d.SetPreferences(ctx, tailscale.DNSPreferences{MagicDNS: true}))

	s := r.Client(t).TailnetSettings()
	mustDo(t, s.Update(ctx, tailscale.UpdateTailnetSettingsRequest{HTTPSEnabled: tailscale.PointerTo(true)}))
	got := must[*tailscale.TailnetSettings](t)(s.Get(ctx))
	if !got.HTTPSEnabled || got.DevicesKeyDurationDays != 180 {
		t.Errorf("settings: %+v", got)
	}
}

func TestFaultsAndCalls(t *testing.T) {
	r := simtest.StartAPI(t)
	c := r.Client(t)
	mustDo(t, r.SetFaults(tailnetsim.Fault{Method: "GET", Path: "/vip-services", Count: 1, Status: http.StatusTooManyRequests, RetryAfter: 7}))
	_, err := c.VIPServices().List(t.Context())
	if code, _ := status(t, err); code != http.StatusTooManyRequests {
		t.Errorf("throttled: %d", code)
	}
	_, err = c.VIPServices().List(t.Context())
	mustDo(t, err)

	mustDo(t, r.SetFaults(tailnetsim.Fault{Method: "PUT", Count: 1, DropReply: true}))
	if err := c.VIPServices().CreateOrUpdate(t.Context(), tailscale.VIPService{Name: "svc:a", Ports: []string{"tcp:80"}}); err == nil {
		t.Error("a lost reply is an error")
	}
	_, err = c.VIPServices().Get(t.Context(), "svc:a")
	mustDo(t, err)

	mustDo(t, r.SetFaults(tailnetsim.Fault{LatencyMS: 5000}))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.VIPServices().List(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a slow reply: %v", err)
	}
	mustDo(t, r.SetFaults())

	// The same over HTTP.
	var fs []tailnetsim.Fault
	call(t, r, http.MethodPost, "/sim/faults", []tailnetsim.Fault{{Path: "/nowhere", Status: 503}}, &fs)
	if len(fs) != 1 || len(r.Faults()) != 1 {
		t.Errorf("faults: %v", fs)
	}
	call(t, r, http.MethodDelete, "/sim/faults", nil, &fs)
	var st tailnetsim.StateView
	call(t, r, http.MethodGet, "/sim/state", nil, &st)
	if len(st.Services) != 1 || st.Calls["GET /api/v2/tailnet/{tailnet}/vip-services/{service}"] != 1 {
		t.Errorf("state: %+v", st)
	}

	for _, p := range []string{"/", "/api/v2/nothing", "/machine/map", "/c2n/x", "/api/v2/tailnet/-/devices"} {
		req := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodPut, r.URL+p, nil))
		var msg map[string]string
		decode(t, req, http.StatusNotFound, &msg)
	}
}
