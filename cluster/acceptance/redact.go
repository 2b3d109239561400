// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// redacted stands for a secret.
const redacted = "REDACTED"

// maxKept bounds a string that is kept, in characters: limits are found with long
// ones.
const maxKept = 16 << 10

var (
	// secretKeys are names of fields whose values are secrets. "state" is what
	// tailscaled keeps of itself, or what a login goes on with.
	secretKeys = regexp.MustCompile(`(?i)^(access_?token|refresh_?token|id_?token|token|jwt|key|auth_?key|secret|client_?secret|webhook_?secret|password|state|s3SecretAccessKey|gcsCredentials|cookie|authorization|private_?key|_machinekey)$`)

	// secretTexts are secrets wherever they are: keys of Tailscale's, private
	// keys, JWTs.
	secretTexts = regexp.MustCompile(`tskey-[A-Za-z0-9_-]*--TL[A-Za-z0-9+/-]+|tskey-[A-Za-z0-9_-]+|privkey:[0-9a-f]+|nlpriv:[0-9a-f]+|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*-----END [A-Z ]*PRIVATE KEY-----`)

	// people are addresses of people. They are no secrets, but nobody else's
	// business when a recording is shared.
	people = regexp.MustCompile(`[A-Za-z0-9._%+-]+@[A-Za-z0-9][A-Za-z0-9.-]*[A-Za-z0-9]`)

	// keptHeaders say something about the API.
	keptHeaders = []string{"Accept", "Content-Type", "Date", "Etag", "If-Match", "Retry-After", "User-Agent", "Warning"}
)

// A redactor removes secrets: those that it was given, and all that look like some.
type redactor struct {
	mu    sync.Mutex
	known []string
}

// know adds a secret. Short secrets are ignored, because they would redact harmless text.
func (r *redactor) know(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range secrets {
		if len(s) < 8 || slices.Contains(r.known, s) {
			continue
		}
		r.known = append(r.known, s)
		if e := url.QueryEscape(s); e != s {
			r.known = append(r.known, e)
		}
	}
	// A secret may be part of another.
	slices.SortFunc(r.known, func(a, b string) int { return len(b) - len(a) })
}

// text returns s without secrets.
func (r *redactor) text(s string) string {
	r.mu.Lock()
	for _, k := range r.known {
		s = strings.ReplaceAll(s, k, redacted)
	}
	r.mu.Unlock()
	s = secretTexts.ReplaceAllString(s, redacted)
	s = people.ReplaceAllString(s, "someone@example.com")
	if n := utf8.RuneCountInString(s); n > maxKept {
		cut := []rune(s)[:maxKept]
		s = string(cut) + "... (" + jsonNumber(n) + " characters)"
	}
	return s
}

func jsonNumber(n int) string { return string(mustJSON(n)) }

// body returns a request's or a reply's body without secrets: JSON as a value, a
// form as an object, anything else as text. Nothing is nil.
func (r *redactor) body(contentType string, b []byte) any {
	if len(bytes.TrimSpace(b)) == 0 {
		return nil
	}
	if strings.HasPrefix(contentType, "application/x-www-form-urlencoded") {
		f, err := url.ParseQuery(string(b))
		if err != nil {
			return redacted
		}
		out := map[string]any{}
		for k := range f {
			out[k] = f.Get(k)
		}
		return r.value("", out)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() {
		return r.text(string(b))
	}
	return r.value("", v)
}

// value returns a decoded JSON value, which is under key, without secrets.
func (r *redactor) value(key string, v any) any {
	switch v := v.(type) {
	case string:
		if v != "" && secretKeys.MatchString(key) {
			return redacted
		}
		return r.text(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = r.value(key, e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[r.text(k)] = r.value(k, e)
		}
		return out
	}
	return v
}

// header returns the headers that say something, without secrets.
func (r *redactor) header(h http.Header) map[string]string {
	out := map[string]string{}
	for k, v := range h {
		limits := strings.Contains(strings.ToLower(k), "ratelimit") || strings.Contains(strings.ToLower(k), "rate-limit")
		if slices.Contains(keptHeaders, k) || limits {
			out[k] = r.text(strings.Join(v, ", "))
		}
	}
	return out
}

// url returns path and query without secrets.
func (r *redactor) url(u *url.URL) string {
	c := url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}
	return r.text(c.String())
}

// mustJSON encodes what cannot fail: values made of strings, numbers and the like.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte("null")
	}
	return b
}
