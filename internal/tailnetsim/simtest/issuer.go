// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package simtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// An Issuer signs tokens of workloads, as a Kubernetes API server does.
type Issuer struct {
	url string
	key *ecdsa.PrivateKey
}

// issuerKeyID names the one key of an Issuer.
const issuerKeyID = "simtest"

// NewIssuer returns an issuer with a new key.
func NewIssuer(t testing.TB, url string) *Issuer {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("cannot make a key: %v", err)
	}
	return &Issuer{url: url, key: k}
}

// Keys returns the keys that verify the issuer's tokens.
func (i *Issuer) Keys() jose.JSONWebKeySet {
	return jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: i.key.Public(), KeyID: issuerKeyID, Algorithm: string(jose.ES256), Use: "sig"}}}
}

// Token signs a token about subject for audience that is valid until expiry.
func (i *Issuer) Token(t testing.TB, subject, audience string, expiry time.Time) string {
	t.Helper()
	key := jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: i.key, KeyID: issuerKeyID}}
	s, err := jose.NewSigner(key, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		t.Fatalf("cannot make a signer: %v", err)
	}
	raw, err := jwt.Signed(s).Claims(jwt.Claims{
		Issuer: i.url, Subject: subject, Audience: jwt.Audience{audience},
		Expiry: jwt.NewNumericDate(expiry), IssuedAt: jwt.NewNumericDate(expiry.Add(-time.Hour)),
	}).Serialize()
	if err != nil {
		t.Fatalf("cannot sign a token: %v", err)
	}
	return raw
}
