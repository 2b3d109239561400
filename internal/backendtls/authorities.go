// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package backendtls

import (
	"crypto/x509"
	"encoding/pem"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

const (
	// CAKey is the key of a ConfigMap's certificates.
	CAKey = "ca.crt"

	// MaxAuthorities is the maximum number of bytes of the certificates that one policy or object
	// trusts.
	MaxAuthorities = 64 << 10

	tlsKey = "tls.crt"
)

// authoritiesKey returns the key of a ConfigMap's certificates: ca.crt, otherwise tls.crt, otherwise
// the only one (getFirstMatchOrFirstFromData in Envoy Gateway's internal/gatewayapi/helpers.go).
func authoritiesKey(data map[string]string) (string, bool) {
	for _, k := range []string{CAKey, tlsKey} {
		if _, ok := data[k]; ok {
			return k, true
		}
	}
	if len(data) == 1 {
		for k := range data {
			return k, true
		}
	}
	return "", false
}

// maxText is the number of times by which a bundle may exceed the limit of its certificates, by
// comments and by duplicates.
const maxText = 4

// An Authorities are the certificates of a ConfigMap that Envoy or a proxy trusts.
type Authorities struct {
	// Certificates in PEM, each once, in their order.
	Certificates []string

	// Problem says why they cannot be used, and is empty if they can. It is shown to people.
	Problem string
}

// ParseAuthorities parses the certificates of a ConfigMap. A nil ConfigMap is one that does not exist.
// Envoy would refuse clusters of others together with one that has invalid certificates, and a copy
// goes to each Envoy or proxy: it gets nothing that was not parsed.
func ParseAuthorities(o *corev1.ConfigMap) Authorities {
	if o == nil {
		return Authorities{Problem: "does not exist; create it, with the key " + CAKey}
	}
	data := o.Data
	key, ok := authoritiesKey(data)
	if !ok || data[key] == "" {
		return Authorities{Problem: "has no key " + CAKey + "; add it"}
	}
	all, err := certificates(data[key])
	if err != nil {
		return Authorities{Problem: "cannot be used, under " + key + ": " + err.Error()}
	}
	return Authorities{Certificates: all}
}

func certificates(text string) ([]string, error) {
	if len(text) > maxText*MaxAuthorities {
		return nil, errTooLarge()
	}
	var out []string
	seen, size := map[string]bool{}, 0
	for b, rest := pem.Decode([]byte(text)); b != nil; b, rest = pem.Decode(rest) {
		if b.Type != "CERTIFICATE" {
			continue
		}
		if _, err := x509.ParseCertificate(b.Bytes); err != nil {
			return nil, errors.New("it has a certificate that cannot be parsed; correct or remove it")
		}
		c := string(pem.EncodeToMemory(&pem.Block{Type: b.Type, Bytes: b.Bytes}))
		if seen[c] {
			continue
		}
		seen[c] = true
		if size += len(c); size > MaxAuthorities {
			return nil, errTooLarge()
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, errors.New("it has no certificate in PEM; add one")
	}
	return out, nil
}

// errTooLarge returns the error for more certificates than the limit.
func errTooLarge() error {
	return errors.Errorf("it has more than %d KiB of certificates; leave only the authorities that sign the backends' certificates, or use wellKnownCACertificates System", MaxAuthorities>>10)
}

// JoinAuthorities returns the certificates of several ConfigMaps, each once, or the reason why they
// are too many.
func JoinAuthorities(all ...Authorities) (ca, problem string) {
	if len(all) == 1 && len(all[0].Certificates) == 1 {
		return all[0].Certificates[0], ""
	}
	var out strings.Builder
	seen := map[string]bool{}
	for _, a := range all {
		for _, c := range a.Certificates {
			if seen[c] {
				continue
			}
			seen[c] = true
			out.WriteString(c)
		}
	}
	if out.Len() > MaxAuthorities {
		return "", "together: " + errTooLarge().Error()
	}
	return out.String(), ""
}
