// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package issue

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Suffixes of the keys that hold a name's certificate and private key (tailscale.com
// ipn/store/kubestore, WriteTLSCertAndKey).
const (
	suffixCert = ".crt"
	suffixKey  = ".key"
)

const (
	// reserve is the space that certificates leave to everything else in the state Secret, in
	// bytes: tailscaled's state and the serve config, both of which tailscaled and containerboot
	// must be able to write (cmd/containerboot/serve.go exits when it cannot).
	reserve = 128 << 10

	// perName is the assumed space for a certificate and its key, in bytes. Those of Let's Encrypt
	// have about half of it.
	perName = 8 << 10
)

// Size returns the size of a Secret's data as the API server counts it (k8s.io/kubernetes
// pkg/apis/core/validation, ValidateSecret).
func Size(data map[string][]byte) int {
	size := 0
	for _, v := range data {
		size += len(v)
	}
	return size
}

// Fit returns the wanted names whose certificates the state Secret has, or has the space for, and
// the others. Names that were admitted before stay, so that the result depends on no order.
func Fit(data map[string][]byte, wanted []string, admitted map[string]bool) (fit, full []string) {
	pair := perName
	remaining := corev1.MaxSecretSize - reserve - Size(data)
	var waiting, newcomers []string
	for _, name := range slices.Sorted(slices.Values(wanted)) {
		cert, key := data[name+suffixCert], data[name+suffixKey]
		switch {
		case len(cert) > 0 && len(key) > 0:
			pair = max(pair, len(cert)+len(key))
			fit = append(fit, name)
		case admitted[name]:
			waiting = append(waiting, name)
		default:
			newcomers = append(newcomers, name)
		}
	}
	fit, remaining = append(fit, waiting...), remaining-len(waiting)*pair
	for _, name := range newcomers {
		if remaining < pair {
			full = append(full, name)
			continue
		}
		fit, remaining = append(fit, name), remaining-pair
	}
	slices.Sort(fit)
	return fit, full
}

// Expired returns the keys of the Secret with certificates that have expired, and their private
// keys, of names that are not wanted. Tailscaled would issue such a certificate again, so nothing
// needs them.
func Expired(data map[string][]byte, wanted []string, at time.Time) []string {
	var out []string
	for k, v := range data {
		name, ok := strings.CutSuffix(k, suffixCert)
		if !ok || len(data[name+suffixKey]) == 0 || slices.Contains(wanted, name) {
			continue
		}
		if c := leaf(v); c != nil && at.After(c.NotAfter) {
			out = append(out, k, name+suffixKey)
		}
	}
	slices.Sort(out)
	return out
}
