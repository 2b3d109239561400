// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

// A share says what of an object a write owns.
type share string

const (
	// A new object has no other owner.
	shareNew share = "creates a new object"

	// A single value is the whole request: no more of the object can be in it.
	shareOne share = "sends one value"

	// A patch names what changes, and the API keeps the rest.
	sharePatch share = "sends only what changes"

	// The object or list is read, and what others have in it is sent again.
	shareKeep share = "keeps what others have"

	// The list is the object's alone: the kind's reference page says so.
	shareWhole share = "owns the whole list"
)

// A writeRow describes a method of a resource of Client that writes.
type writeRow struct {
	share share

	// check writes to a tailnet where others have set something beside it, and fails the test unless
	// that stays. It is for shareKeep.
	check func(t *testing.T, w *keeper)
}

// A keeper is a simulated tailnet with a client of the product and the official one.
type keeper struct {
	*Client

	sim   *simtest.Running
	admin *tsclient.Client
	ctx   context.Context
}

func newKeeper(t *testing.T) *keeper {
	t.Helper()
	sim := simtest.StartAPI(t)
	return &keeper{Client: newClient(t, sim, nil), sim: sim, admin: sim.Client(t), ctx: t.Context()}
}

func (w *keeper) ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stays gives the object at a path of the API a field that the product does not know, and expects
// that a write keeps it, and also works if the API refuses such a field.
func (w *keeper) stays(t *testing.T, path string, write func() error) {
	t.Helper()
	path = "/api/v2" + path
	want := map[string]json.RawMessage{"ofOthers": json.RawMessage(`{"a":[1,"x"]}`)}
	w.sim.SetForeign(path, want)
	w.ok(t, write())
	if diff := cmp.Diff(want, w.sim.Foreign(path)); diff != "" {
		t.Errorf("%s: a field of others: -want, +got:\n%s", path, diff)
	}
	w.ok(t, w.sim.SetSwitches(func(s *tailnetsim.Switches) { s.RefuseForeignFields = true }))
	if err := write(); err != nil {
		t.Errorf("%s: a write to an API that refuses the field: %v", path, err)
	}
	w.ok(t, w.sim.SetSwitches(func(s *tailnetsim.Switches) { s.RefuseForeignFields = false }))
}

// richDNS is a configuration in which an admin has made choices for nameservers.
func richDNS() tsclient.DNSConfiguration {
	return tsclient.DNSConfiguration{
		Nameservers: []tsclient.DNSConfigurationResolver{{Address: "1.1.1.1", UseWithExitNode: true}, {Address: "8.8.8.8"}},
		SplitDNS: map[string][]tsclient.DNSConfigurationResolver{
			"a.example": {{Address: "fd7a::53", UseWithExitNode: true}},
			"b.example": {{Address: "10.0.0.2"}},
		},
		SearchPaths: []string{"example.com"},
		Preferences: tsclient.DNSConfigurationPreferences{MagicDNS: true},
	}
}

// dnsAfter writes to a tailnet with richDNS and compares the configuration afterwards.
func (w *keeper) dnsAfter(t *testing.T, write func() error, change func(c *tsclient.DNSConfiguration)) {
	t.Helper()
	want := richDNS()
	w.ok(t, w.admin.DNS().SetConfiguration(w.ctx, want))
	w.ok(t, write())
	change(&want)
	got, err := w.admin.DNS().Configuration(w.ctx)
	w.ok(t, err)
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("DNS: -want, +got:\n%s", diff)
	}
}

// writeRows has a row for each method of a resource of Client that sends a PUT, POST or PATCH.
var writeRows = map[string]writeRow{
	"DNS.PatchSplitDNS": {share: shareKeep, check: keepsSplitDNS},
	"DNS.SetMagicDNS": {share: shareKeep, check: func(t *testing.T, w *keeper) {
		w.dnsAfter(t, func() error { return w.DNS().SetMagicDNS(w.ctx, false) }, func(c *tsclient.DNSConfiguration) { c.Preferences.MagicDNS = false })
		w.stays(t, "/tailnet/-/dns/preferences", func() error { return w.DNS().SetMagicDNS(w.ctx, true) })
	}},
	"DNS.SetNameservers": {share: shareKeep, check: keepsNameservers},
	"DNS.SetOverrideLocalDNS": {share: shareKeep, check: func(t *testing.T, w *keeper) {
		w.dnsAfter(t, func() error { return w.DNS().SetOverrideLocalDNS(w.ctx, true) }, func(c *tsclient.DNSConfiguration) { c.Preferences.OverrideLocalDNS = true })
		enabled := true
		w.stays(t, "/tailnet/-/dns/configuration", func() error {
			enabled = !enabled
			return w.DNS().SetOverrideLocalDNS(w.ctx, enabled)
		})
	}},
	"DNS.SetSearchPaths": {share: shareKeep, check: func(t *testing.T, w *keeper) {
		w.dnsAfter(t, func() error { return w.DNS().SetSearchPaths(w.ctx, []string{"b.example"}) }, func(c *tsclient.DNSConfiguration) { c.SearchPaths = []string{"b.example"} })
		w.stays(t, "/tailnet/-/dns/searchpaths", func() error { return w.DNS().SetSearchPaths(w.ctx, []string{"c.example"}) })
	}},
	"Devices.EditDeviceRoutes":                 {share: shareKeep, check: keepsRoutes},
	"Devices.SetDeviceAttribute":               {share: shareOne},
	"Devices.SetDeviceAuthorized":              {share: shareOne},
	"Devices.SetDeviceKeyExpiryDisabled":       {share: shareOne},
	"Devices.SetDeviceName":                    {share: shareOne},
	"Devices.SetDeviceTags":                    {share: shareWhole},
	"Keys.CreateAuthKey":                       {share: shareNew},
	"Logging.SetLogstreamConfiguration":        {share: shareKeep, check: keepsLogstream},
	"PolicyFile.EditPolicyFile":                {share: shareKeep, check: keepsPolicy},
	"Posture.CreatePostureIntegration":         {share: shareNew},
	"Posture.UpdatePostureIntegration":         {share: sharePatch},
	"Services.ApproveHost":                     {share: shareOne},
	"Services.RefuseHost":                      {share: shareOne},
	"Services.PutService":                      {share: shareKeep, check: keepsService},
	"Tailnet.PatchSettings":                    {share: sharePatch},
	"Tailnet.SetContact":                       {share: sharePatch},
	"TrustCredentials.CreateFederatedIdentity": {share: shareNew},
	"TrustCredentials.CreateOAuthClient":       {share: shareNew},
	"TrustCredentials.SetFederatedIdentity":    {share: shareKeep, check: keepsFederatedIdentity},
	"TrustCredentials.SetOAuthClient":          {share: shareKeep, check: keepsOAuthClient},
	"Webhooks.CreateWebhook":                   {share: shareNew},
	"Webhooks.RotateWebhookSecret":             {share: shareOne},
	"Webhooks.SetWebhookSubscriptions":         {share: shareWhole},
}

// TestWriteRows compares the methods that write with the rows.
func TestWriteRows(t *testing.T) {
	writes := []string{http.MethodPut, http.MethodPost, http.MethodPatch}
	k := newChecker(t)
	var got []string
	for _, method := range clientMethods(t) {
		// A POST may also be a question.
		if slices.ContainsFunc(k.calls(method), func(c apiCall) bool { return slices.Contains(writes, c.method) }) {
			got = append(got, method)
		}
	}
	want := slices.Sorted(maps.Keys(writeRows))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Methods that write and rows differ: add a row that says what others may have set: -rows, +methods:\n%s", diff)
	}
	for name, row := range writeRows {
		if (row.share == shareKeep) != (row.check != nil) {
			t.Errorf("%s: a row with %q has a test, and no other one", name, shareKeep)
		}
	}
}

// TestKeptByWrites writes in tailnets where others have set something beside.
func TestKeptByWrites(t *testing.T) {
	for name, row := range writeRows {
		if row.check == nil {
			continue
		}
		t.Run(name, func(t *testing.T) { row.check(t, newKeeper(t)) })
	}
}

func keepsPolicy(t *testing.T, w *keeper) {
	original, err := w.PolicyFile().PolicyFile(w.ctx, Current)
	w.ok(t, err)
	_, err = w.PolicyFile().EditPolicyFile(w.ctx, func(text string) (string, error) { return "// Of an admin.\n" + text, nil })
	w.ok(t, err)
	updated, err := w.PolicyFile().PolicyFile(w.ctx, Current)
	w.ok(t, err)
	if diff := cmp.Diff("// Of an admin.\n"+original.Text, updated.Text); diff != "" {
		t.Errorf("the policy file: -want, +got:\n%s", diff)
	}
}

func keepsRoutes(t *testing.T, w *keeper) {
	id, err := w.sim.Join(tailnetsim.Puppet{Hostname: "router", Tags: []string{"tag:k8s"}, Routes: []string{"10.0.0.0/16"}})
	w.ok(t, err)
	// The product's list is older than the approval of the exit node.
	_, err = w.Devices().Devices(w.ctx, Cached)
	w.ok(t, err)
	w.ok(t, w.admin.Devices().SetSubnetRoutes(w.ctx, id, []string{"::/0", "0.0.0.0/0"}))
	w.ok(t, w.Devices().EditDeviceRoutes(w.ctx, id, []string{"10.0.0.0/16", "10.1.0.0/16"}, nil))
	w.ok(t, w.Devices().EditDeviceRoutes(w.ctx, id, nil, []string{"10.1.0.0/16"}))
	got, err := w.admin.Devices().SubnetRoutes(w.ctx, id)
	w.ok(t, err)
	if diff := cmp.Diff([]string{"0.0.0.0/0", "10.0.0.0/16", "::/0"}, got.Enabled); diff != "" {
		t.Errorf("approved routes: -want, +got:\n%s", diff)
	}
}

func keepsNameservers(t *testing.T, w *keeper) {
	// A spelling of an address that the API does not return.
	for _, keeps := range []bool{false, true} {
		w.ok(t, w.sim.SetSwitches(func(s *tailnetsim.Switches) { s.KeepResolverSettings = keeps }))
		w.dnsAfter(t, func() error { return w.DNS().SetNameservers(w.ctx, []string{"9.9.9.9", "1.1.1.1"}) }, func(c *tsclient.DNSConfiguration) {
			c.Nameservers = []tsclient.DNSConfigurationResolver{{Address: "9.9.9.9"}, {Address: "1.1.1.1", UseWithExitNode: true}}
		})
	}
	w.dnsAfter(t, func() error { return w.DNS().SetNameservers(w.ctx, []string{"8.8.8.8"}) }, func(c *tsclient.DNSConfiguration) {
		c.Nameservers = []tsclient.DNSConfigurationResolver{{Address: "8.8.8.8"}}
	})
	w.stays(t, "/tailnet/-/dns/nameservers", func() error { return w.DNS().SetNameservers(w.ctx, []string{"8.8.8.8"}) })
}

func keepsSplitDNS(t *testing.T, w *keeper) {
	for _, keeps := range []bool{false, true} {
		w.ok(t, w.sim.SetSwitches(func(s *tailnetsim.Switches) { s.KeepResolverSettings = keeps }))
		add := map[string][]string{"a.example": {"FD7A:0::53", "10.0.0.1"}, "b.example": nil}
		w.dnsAfter(t, func() error { return w.DNS().PatchSplitDNS(w.ctx, add) }, func(c *tsclient.DNSConfiguration) {
			c.SplitDNS["a.example"] = []tsclient.DNSConfigurationResolver{{Address: "fd7a::53", UseWithExitNode: true}, {Address: "10.0.0.1"}}
			delete(c.SplitDNS, "b.example")
		})
	}
	previous := w.sim.Calls()["POST /api/v2/tailnet/{tailnet}/dns/configuration"]
	w.ok(t, w.DNS().PatchSplitDNS(w.ctx, map[string][]string{"c.example": {"10.0.0.3"}}))
	if current := w.sim.Calls()["POST /api/v2/tailnet/{tailnet}/dns/configuration"]; current != previous {
		t.Error("a write of a domain without such settings replaces the configuration of the whole tailnet")
	}
}

func keepsService(t *testing.T, w *keeper) {
	s, err := w.Services().PutService(w.ctx, Service{Name: "svc:web", Ports: []string{"tcp:443"}, Tags: []string{"tag:k8s"}})
	w.ok(t, err)
	w.stays(t, "/tailnet/-/vip-services/svc:web", func() error {
		current, err := w.Services().Service(w.ctx, "svc:web")
		w.ok(t, err)
		current.Comment += "x"
		current.Addrs = s.Addrs
		_, err = w.Services().PutService(w.ctx, *current)
		return err
	})
	// The body of the reply may be anything.
	for _, body := range []string{"empty", "null", "{}", `"ok"`, "[]", `{"name":"svc:other"}`, "<html>"} {
		w.ok(t, w.sim.SetSwitches(func(sw *tailnetsim.Switches) { sw.Replies.PutService = body }))
		got, err := w.Services().PutService(w.ctx, Service{Name: "svc:web", Addrs: s.Addrs, Ports: []string{"tcp:80"}, Tags: []string{"tag:k8s"}, Comment: body})
		w.ok(t, err)
		want := &Service{Name: "svc:web", Addrs: s.Addrs, Ports: []string{"tcp:80"}, Tags: []string{"tag:k8s"}, Comment: body}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("PutService(...) with the reply %s: -want, +got:\n%s", body, diff)
		}
	}
}

func keepsOAuthClient(t *testing.T, w *keeper) {
	k, err := w.TrustCredentials().CreateOAuthClient(w.ctx, OAuthClientRequest{Description: "one", Scopes: []string{"dns"}})
	w.ok(t, err)
	w.stays(t, "/tailnet/-/keys/"+k.ID, func() error {
		return w.TrustCredentials().SetOAuthClient(w.ctx, k.ID, OAuthClientRequest{Description: "two", Scopes: []string{"services"}, Tags: []string{"tag:k8s"}})
	})
	got, err := w.TrustCredentials().TrustCredential(w.ctx, k.ID)
	w.ok(t, err)
	if got.Description != "two" || !slices.Equal(got.Scopes, []string{"services"}) {
		t.Errorf("the client is not replaced: %+v", got)
	}
}

func keepsFederatedIdentity(t *testing.T, w *keeper) {
	r := FederatedIdentityRequest{Description: "one", Scopes: []string{"dns"}, Issuer: "https://issuer.example", Subject: "a"}
	k, err := w.TrustCredentials().CreateFederatedIdentity(w.ctx, r)
	w.ok(t, err)
	r.Subject = "b"
	w.stays(t, "/tailnet/-/keys/"+k.ID, func() error { return w.TrustCredentials().SetFederatedIdentity(w.ctx, k.ID, r) })
	got, err := w.TrustCredentials().TrustCredential(w.ctx, k.ID)
	w.ok(t, err)
	if got.Subject != "b" {
		t.Errorf("the identity is not replaced: %+v", got)
	}
}

func keepsLogstream(t *testing.T, w *keeper) {
	r := LogstreamRequest{DestinationType: tsclient.LogstreamElasticEndpoint, URL: "https://logs.example.com", User: "user", Token: "notasecret"}
	w.ok(t, w.Logging().SetLogstreamConfiguration(w.ctx, "configuration", r))
	r.URL = "https://more.example.com"
	w.stays(t, "/tailnet/-/logging/configuration/stream", func() error { return w.Logging().SetLogstreamConfiguration(w.ctx, "configuration", r) })
	got, err := w.Logging().LogstreamConfiguration(w.ctx, "configuration")
	w.ok(t, err)
	if got == nil || got.URL != r.URL {
		t.Errorf("the configuration is not replaced: %+v", got)
	}
}

// TestPatchSplitDNSRemoves removes a domain of tailnets that differ in what removes one.
func TestPatchSplitDNSRemoves(t *testing.T) {
	for _, removal := range []tailnetsim.Removal{"", tailnetsim.RemovalNull, tailnetsim.RemovalEmpty} {
		t.Run("By"+string(removal), func(t *testing.T) {
			w := newKeeper(t)
			w.ok(t, w.sim.SetSwitches(func(s *tailnetsim.Switches) { s.SplitDNSRemoval = removal }))
			w.ok(t, w.DNS().PatchSplitDNS(w.ctx, map[string][]string{"a.example": {"1.1.1.1"}, "b.example": {"1.1.1.1"}, "c.example": {"1.1.1.1"}}))
			w.ok(t, w.DNS().PatchSplitDNS(w.ctx, map[string][]string{"a.example": {}, "b.example": nil, "c.example": {"8.8.8.8"}}))
			got, err := w.admin.DNS().SplitDNS(w.ctx)
			w.ok(t, err)
			if diff := cmp.Diff(tsclient.SplitDNSResponse{"c.example": {"8.8.8.8"}}, got); diff != "" {
				t.Errorf("split DNS: -want, +got:\n%s", diff)
			}
		})
	}
}

// TestPatchSplitDNSRefused has a tailnet refuse the write of the whole configuration: what an admin
// has chosen stays, and the error says what to do.
func TestPatchSplitDNSRefused(t *testing.T) {
	w := newKeeper(t)
	w.ok(t, w.admin.DNS().SetConfiguration(w.ctx, richDNS()))
	w.ok(t, w.sim.SetSwitches(func(s *tailnetsim.Switches) { s.KeepResolverSettings = true }))
	w.ok(t, w.admin.DNS().SetNameservers(w.ctx, []string{}))
	w.sim.TurnMagicDNSOn()
	original, err := w.admin.DNS().Configuration(w.ctx)
	w.ok(t, err)
	err = w.DNS().PatchSplitDNS(w.ctx, map[string][]string{"a.example": {"fd7a::53", "10.0.0.1"}})
	if ClassOf(err) != ClassInvalid || !strings.Contains(err.Error(), "add a global nameserver") {
		t.Errorf("PatchSplitDNS(...): want Invalid and advice, got: %v", err)
	}
	updated, err := w.admin.DNS().Configuration(w.ctx)
	w.ok(t, err)
	if diff := cmp.Diff(original, updated); diff != "" {
		t.Errorf("DNS: -before, +after:\n%s", diff)
	}
}

// TestWithoutDNSDocument writes to an API without the configuration: what could drop a choice of an
// admin is refused, and other writes work.
func TestWithoutDNSDocument(t *testing.T) {
	const split, servers = "/tailnet/-/dns/split-dns", "/tailnet/-/dns/nameservers"
	api := canned{
		"GET " + split: {body: `{"a.example":["fd7a::53"]}`}, "PATCH " + split: {body: "{}"},
		"GET " + servers: {body: `{"dns":["1.1.1.1"]}`}, "POST " + servers: {body: "{}"},
	}
	cases := map[string]struct {
		write func(c *Client, ctx context.Context) error
		want  string
	}{
		"Kept": {write: func(c *Client, ctx context.Context) error {
			return c.DNS().PatchSplitDNS(ctx, map[string][]string{"a.example": {"FD7A::53", "8.8.8.8"}})
		}},
		"Removed": {write: func(c *Client, ctx context.Context) error {
			return c.DNS().PatchSplitDNS(ctx, map[string][]string{"b.example": nil})
		}, want: "PATCH " + split},
		"KeptServer": {write: func(c *Client, ctx context.Context) error {
			return c.DNS().SetNameservers(ctx, []string{"9.9.9.9", "1.1.1.1"})
		}},
		"OtherServer": {write: func(c *Client, ctx context.Context) error { return c.DNS().SetNameservers(ctx, []string{"9.9.9.9"}) }, want: "POST " + servers},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, requests := api.client(t)
			err := tc.write(c, t.Context())
			if (err == nil) != (tc.want != "") || err != nil && ClassOf(err) != ClassTailnetNotFound {
				t.Errorf("want sent %q, got: %v", tc.want, err)
			}
			for call := range requests {
				if !strings.HasPrefix(call, "GET ") && call != tc.want {
					t.Errorf("want no %s", call)
				}
			}
		})
	}
}

// TestPatchSplitDNSIgnored expects an error from a tailnet that ignores a change of nameservers.
func TestPatchSplitDNSIgnored(t *testing.T) {
	const split, document = "/tailnet/-/dns/split-dns", "/tailnet/-/dns/configuration"
	rich := struct {
		status int
		body   string
	}{body: `{"splitDNS":{"a.example":[{"address":"1.1.1.1","useWithExitNode":true},{"address":"8.8.8.8"}]}}`}
	cases := map[string]struct {
		reason  string
		api     canned
		domains map[string][]string
		call    string // The last write.
		body    string
		ok      bool
	}{
		"Removal": {
			reason:  "The domain stays in any case.",
			api:     canned{"PATCH " + split: {body: `[]`}, "GET " + split: {body: `{"a.example":["1.1.1.1"]}`}},
			domains: map[string][]string{"a.example": nil}, call: "PATCH " + split, body: `{"a.example":[]}`,
		},
		"Nameserver": {
			reason:  "One of several nameservers stays, and others of the same domain are to stay.",
			api:     canned{"PATCH " + split: {body: `{}`}, "GET " + split: {body: `{"a.example":["1.1.1.1","8.8.8.8"]}`}, "GET " + document: {body: `{"splitDNS":{"a.example":[{"address":"1.1.1.1"},{"address":"8.8.8.8"}]}}`}},
			domains: map[string][]string{"a.example": {"8.8.8.8"}}, call: "PATCH " + split, body: `{"a.example":["8.8.8.8"]}`,
		},
		"Document": {
			reason:  "A write of the whole configuration is ignored, too.",
			api:     canned{"POST " + document: {body: `{}`}, "GET " + split: {body: `{"a.example":["1.1.1.1","8.8.8.8"]}`}, "GET " + document: rich},
			domains: map[string][]string{"a.example": {"1.1.1.1"}}, call: "POST " + document,
		},
		"Spelling": {
			reason:  "The tailnet spells the address in another way.",
			api:     canned{"PATCH " + split: {body: `{}`}, "GET " + split: {body: `{"a.example":["FD7A:0::53"]}`}, "GET " + document: {body: `{}`}},
			domains: map[string][]string{"a.example": {"fd7a::53"}}, call: "PATCH " + split, body: `{"a.example":["fd7a::53"]}`, ok: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, requests := tc.api.client(t)
			err := c.DNS().PatchSplitDNS(t.Context(), tc.domains)
			if (err == nil) != tc.ok || !tc.ok && (ClassOf(err) != ClassUnavailable || !strings.Contains(err.Error(), "a.example")) {
				t.Errorf("\n%s\nPatchSplitDNS(...): got: %v", tc.reason, err)
			}
			if body, ok := requests[tc.call]; !ok || tc.body != "" && body != tc.body {
				t.Errorf("\n%s\nPatchSplitDNS(...): want the write %s %s, got %q", tc.reason, tc.call, tc.body, body)
			}
		})
	}
}
