// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"crypto/subtle"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A token authenticates API requests. Tokens are stored by the hash of their secret.
type token struct {
	Client  string    `json:"client"`
	Scopes  []string  `json:"scopes"`
	Tags    []string  `json:"tags"`
	Expires time.Time `json:"expires"`
	// AnyTag is set for API keys, which act for an owner of the tailnet.
	AnyTag bool `json:"anyTag,omitempty"`
}

// actorLocked returns the actor of a request: by a bearer token or, as basic-auth user, a token
// or API key.
func (s *Server) actorLocked(r *http.Request) *token {
	secret, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		secret, _, ok = r.BasicAuth()
	}
	if !ok || secret == "" {
		return nil
	}
	for _, k := range s.opts.APIKeys {
		if subtle.ConstantTimeCompare([]byte(k), []byte(secret)) == 1 {
			return &token{Client: "api-key", Scopes: []string{"all"}, AnyTag: true}
		}
	}
	t := s.st.Tokens[hashSecret(secret)]
	if t == nil || t.Expires.Before(s.now()) {
		return nil
	}
	return t
}

// serveToken is the OAuth client credentials grant.
func (s *Server) serveToken(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if err := r.ParseForm(); err != nil {
		writeError(w, http.StatusBadRequest, "cannot parse form")
		return
	}
	id, secret, ok := r.BasicAuth()
	if !ok {
		id, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	if g := r.PostForm.Get("grant_type"); g != "" && g != "client_credentials" {
		writeError(w, http.StatusBadRequest, "unsupported grant_type")
		return
	}
	var client *OAuthClient
	for i := range s.opts.Clients {
		c := &s.opts.Clients[i]
		// The ID is part of a real secret, so it is optional.
		if subtle.ConstantTimeCompare([]byte(c.Secret), []byte(secret)) == 1 && (id == c.ID || id == "") {
			client = c
		}
	}
	if client == nil && secret != "" {
		s.mu.Lock()
		client = s.st.oauthClient(id, secret)
		s.mu.Unlock()
	}
	if client == nil || secret == "" {
		writeError(w, http.StatusUnauthorized, "API token invalid")
		return
	}
	t := &token{Client: client.ID, Scopes: client.Scopes, Tags: client.Tags}
	if want := strings.Fields(r.PostForm.Get("scope")); len(want) > 0 {
		// The reply to a scope that does not exist is an assumption, after RFC 6749.
		if sc := undefined(want); sc != "" {
			writeError(w, http.StatusBadRequest, "requested scope "+strconv.Quote(sc)+" is not valid")
			return
		}
		for _, sc := range want {
			if !t.allows(sc, false) {
				writeError(w, http.StatusForbidden, "requested scope "+sc+" is not granted to the client")
				return
			}
		}
		t.Scopes = want
	}
	s.issue(w, t)
}

// issue answers with a new token.
func (s *Server) issue(w http.ResponseWriter, t *token) {
	life := s.opts.TokenLifetime
	t.Expires = s.now().Add(life)
	access := "tskey-api-" + randomHex(6) + "CNTRL-" + randomHex(16)

	s.mu.Lock()
	for h, old := range s.st.Tokens {
		if old.Expires.Before(s.now()) {
			delete(s.st.Tokens, h)
		}
	}
	s.st.Tokens[hashSecret(access)] = t
	s.dirty()
	s.mu.Unlock()

	writeJSON(w, http.StatusOK, map[string]any{
		"access_token": access, "token_type": "Bearer",
		"expires_in": int(life.Seconds()), "scope": strings.Join(t.Scopes, " "),
	})
}
