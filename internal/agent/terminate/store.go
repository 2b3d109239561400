// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package terminate

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// A stored holds what a Server needs to serve as before a restart.
type stored struct {
	Terminations map[string][]plan.Termination `json:"terminations"`

	// Authorities that backends trust, by the keys that the terminations have instead: many backends
	// may trust the same.
	Authorities map[string]string `json:"authorities,omitempty"`

	// Pairs are the certificates in use.
	Pairs map[plan.CertificateRef]pair `json:"pairs"`
}

// store writes what is served. The caller holds the lock.
func (s *Server) store() error {
	if s.opts.Store == nil {
		return nil
	}
	st := stored{Authorities: map[string]string{}, Pairs: map[plan.CertificateRef]pair{}}
	keys := map[string]string{}
	st.Terminations = withAuthorities(s.wanted, func(pem string) string {
		if keys[pem] == "" {
			keys[pem] = strconv.Itoa(len(keys) + 1)
			st.Authorities[keys[pem]] = pem
		}
		return keys[pem]
	})
	for ref, sec := range s.secrets {
		if sec.cert.Load() != nil {
			st.Pairs[ref] = sec.pair
		}
	}
	// Map keys are encoded in sorted order.
	b, err := json.Marshal(st)
	if err != nil {
		return errors.Wrap(err, "cannot encode TLS terminations")
	}
	_, err = s.opts.Store.Write(b)
	s.unstored = err != nil
	return errors.Wrap(err, "cannot store TLS terminations")
}

// Restore serves the terminations that an earlier run of the agent in this pod served, until
// ctx is done. Content that cannot be read is no error: the API server provides it again.
func (s *Server) Restore(ctx context.Context) error {
	if s.opts.Store == nil {
		return nil
	}
	b, err := s.opts.Store.Read()
	if err != nil || b == nil {
		return errors.Wrap(err, "cannot read what TLS was ended for")
	}
	st, ok := decode(b)
	if !ok {
		s.opts.Log.Info("Ignoring what TLS was ended for in an earlier run: it is not JSON")
		return nil
	}
	s.mu.Lock()
	for ref, p := range st.Pairs {
		c, err := p.parse(ref)
		if err != nil {
			s.opts.Log.Info("Ignoring a certificate of an earlier run", "secret", ref.String(), "error", err)
			continue
		}
		sec := newSecret(ref)
		sec.loaded, sec.pair = true, p
		sec.cert.Store(c)
		s.secrets[ref] = sec
	}
	s.mu.Unlock()
	return s.Set(ctx, withAuthorities(st.Terminations, func(key string) string {
		// Without its authorities a backend is not trusted: empty would mean those of the system.
		return cmp.Or(st.Authorities[key], key)
	}))
}

// withAuthorities returns copies of terminations whose backends have replaced authorities, if they name
// any.
func withAuthorities(terminations map[string][]plan.Termination, replaced func(string) string) map[string][]plan.Termination {
	out := make(map[string][]plan.Termination, len(terminations))
	// In the order of their names, what is stored differs only if it changes.
	for _, name := range slices.Sorted(maps.Keys(terminations)) {
		out[name] = slices.Clone(terminations[name])
		for i, t := range out[name] {
			if t.Balance == nil {
				continue
			}
			b := *t.Balance
			b.Backends = slices.Clone(b.Backends)
			for j := range b.Backends {
				if a := &b.Backends[j].TLS.Authorities; *a != "" {
					*a = replaced(*a)
				}
			}
			out[name][i].Balance = &b
		}
	}
	return out
}

// decode decodes a stored, and reports whether this succeeded. It returns no error, because an
// error of encoding/json could quote a key.
func decode(b []byte) (stored, bool) {
	var st stored
	ok := json.Unmarshal(b, &st) == nil
	return st, ok
}
