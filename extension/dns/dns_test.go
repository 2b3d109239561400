// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/resolver/resolvertest"
)

// TestDNS looks up names with the system's resolver at a real DNS server.
func TestDNS(t *testing.T) {
	system := resolvertest.Serve(t, map[string][]string{
		"both.example.com.": {"192.0.2.1", "2001:db8::1"},
		"six.example.com.":  {"2001:db8::1"},
	})
	h := newHosts("both.example.com.", "six.example.com.", "none.example.com.")
	none := make(chan error, 1)
	run(t, h, address.Families{}, func(ctx context.Context, network, host string) ([]netip.Addr, error) {
		found, err := system.LookupNetIP(ctx, network, host)
		if host == "none.example.com." {
			select {
			case none <- err:
			default: // It is looked up again.
			}
		}
		return found, err
	})
	var dns *net.DNSError
	if err := <-none; !errors.As(err, &dns) || !dns.IsNotFound {
		t.Errorf("want an error that the name does not exist, got %v", err)
	}
	want := []string{"both.example.com. 192.0.2.1", "none.example.com.", "six.example.com. 2001:db8::1"}
	timeout := time.After(time.Minute)
	lines := func() []string { return slices.Sorted(slices.Values(h.said())) }
	for got := lines(); !slices.Equal(want, got); got = lines() {
		select {
		case <-h.written:
		case <-timeout:
			t.Fatalf("-want, +got\n%s", cmp.Diff(want, got))
		}
	}
}
