// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"tailscale.com/net/tsaddr"
)

// redacted replaces a secret.
const redacted = "REDACTED"

// maxKept bounds a recorded string, in characters: rows that find limits send long ones.
const maxKept = 16 << 10

var (
	// secretKeys are names of fields whose values are secrets, or name a machine: its public keys and
	// its serial numbers. "state" is the state of tailscaled, or that of a login.
	secretKeys = regexp.MustCompile(`(?i)^(access_?token|refresh_?token|id_?token|token|jwt|key|([a-z0-9]+_?)?(auth|node|machine|disco|lock|signing|public|private|secret|host)_?keys?|secret|client_?secret|webhook_?secret|password|state|s3SecretAccessKey|gcsCredentials|cookie|authorization|_machinekey)$|serial_?numbers?$|hardware_?addr`)

	// secretTexts matches keys in any text: those of Tailscale and of Headscale, with the signature of
	// a tailnet lock (tailscale.com/tka, WrapAuthKey), keys of machines, private and public
	// (tailscale.com/types/key), private keys in PEM, JWTs.
	secretTexts = regexp.MustCompile(`[th]skey-[A-Za-z0-9_-]+([+/=][A-Za-z0-9+/=_-]*)?|\b(privkey|nodekey|mkey|discokey|chalpub|nlpriv|nlpub|tlpriv|tlpub):[0-9a-f]+|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*-----END [A-Z ]*PRIVATE KEY-----`)

	// people matches email addresses. They are not secrets, but a shared recording must not reveal
	// them.
	people = regexp.MustCompile(`[A-Za-z0-9._%+-]+@[A-Za-z0-9][A-Za-z0-9.-]*[A-Za-z0-9]`)

	// addressTexts matches texts that look like IPv6 and IPv4 addresses.
	addressTexts = regexp.MustCompile(`[0-9A-Fa-f]*:[0-9A-Fa-f:.]*[0-9A-Fa-f:]|[0-9]+(\.[0-9]+){3}`)

	// documented are the networks for documentation (RFC 5737, RFC 3849) and that of tailnets.
	documented = []netip.Prefix{
		netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"),
		netip.MustParsePrefix("2001:db8::/32"), tsaddr.CGNATRange(),
	}

	// keptHeaders are the headers that are recorded.
	keptHeaders = []string{"Accept", "Content-Type", "Date", "Etag", "If-Match", "Retry-After", "User-Agent", "Warning"}
)

// publicAddress replaces an address of the Internet, which reveals a location.
const publicAddress = "PUBLIC-ADDRESS"

// withoutPublic returns a text that looks like an address, without a public address in it.
func withoutPublic(s string) string {
	a, err := netip.ParseAddr(s)
	if err != nil {
		if t := strings.TrimRight(s, ".:"); t != s {
			return withoutPublic(t) + s[len(t):]
		}
		// The text before a colon may be another word.
		if prefix, behind, ok := strings.Cut(s, ":"); ok {
			return prefix + ":" + withoutPublic(behind)
		}
		return s
	}
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() || slices.ContainsFunc(documented, func(p netip.Prefix) bool { return p.Contains(a) }) {
		return s
	}
	return publicAddress
}

// A redactor removes secrets: the ones that it knows, and all texts that look like secrets.
type redactor struct {
	mu      sync.Mutex
	secrets []string
}

// know adds a secret. Short secrets are ignored, because they would redact harmless text.
func (r *redactor) know(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range secrets {
		if len(s) < 8 || slices.Contains(r.secrets, s) {
			continue
		}
		r.secrets = append(r.secrets, s)
		if e := url.QueryEscape(s); e != s {
			r.secrets = append(r.secrets, e)
		}
	}
	// A secret may be part of another.
	slices.SortFunc(r.secrets, func(a, b string) int { return len(b) - len(a) })
}

// text returns s without secrets.
func (r *redactor) text(s string) string {
	r.mu.Lock()
	for _, k := range r.secrets {
		s = strings.ReplaceAll(s, k, redacted)
	}
	r.mu.Unlock()
	s = secretTexts.ReplaceAllString(s, redacted)
	s = people.ReplaceAllString(s, "someone@example.com")
	s = addressTexts.ReplaceAllStringFunc(s, withoutPublic)
	if n := utf8.RuneCountInString(s); n > maxKept {
		cut := []rune(s)[:maxKept]
		s = string(cut) + "... (" + jsonNumber(n) + " characters)"
	}
	return s
}

func jsonNumber(n int) string { return string(mustJSON(n)) }

// body returns a request's or a reply's body without secrets: JSON as a value, a form as an object,
// anything else as text. An empty body is nil.
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

// value returns a decoded JSON value without secrets. key is the name of its field.
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

// header returns the headers that are recorded, without secrets.
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

// mustJSON encodes values whose encoding cannot fail, such as strings and numbers.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte("null")
	}
	return b
}
