// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"slices"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

// names in certificates.
type names struct {
	// authority is the name of the authority.
	authority string

	// server are the names by which clients may address the servers.
	server []string

	// client is Envoy Gateway, and envoy its Envoys.
	client, envoy string
}

// A set is all certificates of an extension.
type set struct {
	// ca are the trusted authorities, in PEM: the signing one, and previous ones that have not
	// expired.
	ca    []byte
	caKey []byte

	server, client, envoy Pair
}

// newSet returns a new set.
func newSet(n names, at time.Time) (set, error) { return set{}.signed(n, at) }

// signed returns the set with a new authority, and certificates that it signs.
func (s set) signed(n names, at time.Time) (set, error) {
	a, err := NewAuthority(n.authority, at)
	if err != nil {
		return set{}, err
	}
	out := set{ca: a.Cert, caKey: a.Key}
	earlier, _ := certutil.ParseCertsPEM(s.ca) // None, if there are none.
	for _, c := range earlier {
		if at.Before(c.NotAfter) {
			out.ca = append(slices.Clip(out.ca), encode(c)...)
		}
	}
	return out.issued(a, n, at)
}

// issued returns the set with new certificates by the authority.
func (s set) issued(a *Authority, n names, at time.Time) (set, error) {
	var err error
	if s.server, err = a.Server(n.server, at); err != nil {
		return set{}, err
	}
	if s.client, err = a.Client(n.client, at); err != nil {
		return set{}, err
	}
	s.envoy, err = a.Client(n.envoy, at)
	return s, err
}

// renewed returns the set with new certificates for those that are due or missing, and whether it
// changed. A new authority replaces one that is due, and the previous one stays trusted.
func (s set) renewed(n names, at time.Time) (set, bool, error) {
	a, err := readAuthority(Pair{Cert: s.ca, Key: s.caKey})
	if err != nil || due(a.cert, at) {
		out, err := s.signed(n, at)
		return out, true, err
	}
	if s.server.serves(a, at, n.server...) && s.client.serves(a, at, n.client) && s.envoy.serves(a, at, n.envoy) {
		return s, false, nil
	}
	out, err := s.issued(a, n, at)
	return out, true, err
}

// serves reports whether a pair has the names, is signed by the authority, and is not due.
func (p Pair) serves(a *Authority, at time.Time, names ...string) bool {
	c, err := p.leaf()
	if err != nil || due(c, at) || c.CheckSignatureFrom(a.cert) != nil {
		return false
	}
	return !slices.ContainsFunc(names, func(n string) bool { return c.VerifyHostname(n) != nil })
}
