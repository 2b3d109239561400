// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"net/http"
	"slices"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// signatures that tokens of workloads may have.
var signatures = []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.EdDSA}

// serveTokenExchange exchanges a workload's token for one of the API, as the client library's
// identityfederation.go requests it.
func (s *Server) serveTokenExchange(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if err := r.ParseForm(); err != nil {
		writeError(w, http.StatusBadRequest, "cannot parse form")
		return
	}
	id, raw := r.PostForm.Get("client_id"), r.PostForm.Get("jwt")
	if id == "" || raw == "" {
		writeError(w, http.StatusBadRequest, "client_id and jwt are required")
		return
	}
	i := slices.IndexFunc(s.opts.WorkloadIdentities, func(w WorkloadIdentity) bool { return w.ClientID == id })
	if i < 0 {
		writeError(w, http.StatusUnauthorized, "unknown client")
		return
	}
	identity := s.opts.WorkloadIdentities[i]
	if err := identity.verify(raw, s); err != nil {
		s.log.Info("Refused a workload's token", "client", id, "error", err)
		writeError(w, http.StatusUnauthorized, "token is not valid for this client")
		return
	}
	s.issue(w, &token{Client: id, Scopes: identity.Scopes, Tags: identity.Tags})
}

// verify checks the issuer, subject, audience and expiry of a token.
func (i WorkloadIdentity) verify(raw string, s *Server) error {
	t, err := jwt.ParseSigned(raw, signatures)
	if err != nil {
		return errors.Wrap(err, "cannot parse token")
	}
	var c jwt.Claims
	if err := t.Claims(i.Keys, &c); err != nil {
		return errors.Wrap(err, "cannot verify signature")
	}
	if c.Expiry == nil {
		return errors.New("token has no end")
	}
	want := jwt.Expected{Issuer: i.Issuer, Subject: i.Subject, AnyAudience: jwt.Audience{i.Audience}, Time: s.now()}
	return errors.Wrap(c.Validate(want), "claims are wrong")
}
