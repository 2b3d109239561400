// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

func TestTokenExchange(t *testing.T) {
	const issuer, audience, subject = "https://kubernetes.example", "api.tailscale.com/kWork", "system:serviceaccount:team:robot"
	ours, theirs := simtest.NewIssuer(t, issuer), simtest.NewIssuer(t, issuer)
	r := simtest.StartAPI(t, func(o *tailnetsim.Options) {
		o.WorkloadIdentities = []tailnetsim.WorkloadIdentity{{
			ClientID: "kWork", Issuer: issuer, Audience: audience, Subject: subject, Keys: ours.Keys(), Scopes: []string{"devices:core:read"},
		}}
	})
	at := time.Now()
	cases := map[string]struct {
		reason string
		client string
		token  string
		status int
	}{
		"Accepted":      {reason: "A token of the issuer about the subject is taken.", client: "kWork", token: ours.Token(t, subject, audience, at.Add(time.Hour)), status: http.StatusOK},
		"OtherKey":      {reason: "A token that another key signed is refused.", client: "kWork", token: theirs.Token(t, subject, audience, at.Add(time.Hour)), status: http.StatusUnauthorized},
		"OtherSubject":  {reason: "A token about somebody else is refused.", client: "kWork", token: ours.Token(t, subject+"2", audience, at.Add(time.Hour)), status: http.StatusUnauthorized},
		"OtherAudience": {reason: "A token for somebody else is refused.", client: "kWork", token: ours.Token(t, subject, "https://kubernetes.default.svc", at.Add(time.Hour)), status: http.StatusUnauthorized},
		"Expired":       {reason: "A token that has ended is refused.", client: "kWork", token: ours.Token(t, subject, audience, at.Add(-time.Minute)), status: http.StatusUnauthorized},
		"NoToken":       {reason: "An invalid token is refused.", client: "kWork", token: "hello", status: http.StatusUnauthorized},
		"OtherClient":   {reason: "An unknown client is refused.", client: "kOther", token: ours.Token(t, subject, audience, at.Add(time.Hour)), status: http.StatusUnauthorized},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			resp, err := http.PostForm(r.URL+"/api/v2/oauth/token-exchange", url.Values{"client_id": {tc.client}, "jwt": {tc.token}})
			if err != nil {
				t.Fatal(err)
			}
			if err := resp.Body.Close(); err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != tc.status {
				t.Errorf("\n%s\nwant status %d, got %d", tc.reason, tc.status, resp.StatusCode)
			}
		})
	}
	// The official client logs in with it, and has the identity's scopes.
	c := r.Client(t)
	c.Auth = &tailscale.IdentityFederation{ClientID: "kWork", IDTokenFunc: func() (string, error) {
		return ours.Token(t, subject, audience, at.Add(time.Hour)), nil
	}}
	if _, err := c.Devices().List(t.Context()); err != nil {
		t.Errorf("a scope that is given: %v", err)
	}
	if _, err := c.VIPServices().List(t.Context()); err == nil {
		t.Error("a scope that is not given: want an error")
	}
}
