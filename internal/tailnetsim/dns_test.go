// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/client/tailscale/v2"
	"tailscale.com/tsnet"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

func setHTTPS(t *testing.T, r *simtest.Running, enabled bool) {
	t.Helper()
	if err := r.Client(t).TailnetSettings().Update(t.Context(), tailscale.UpdateTailnetSettingsRequest{HTTPSEnabled: &enabled}); err != nil {
		t.Fatalf("cannot change settings: %v", err)
	}
}

// certDomains returns the certificate domains that a node receives from the control server.
func certDomains(t *testing.T, n *tsnet.Server) []string {
	t.Helper()
	lc, err := n.LocalClient()
	if err != nil {
		t.Fatalf("cannot get a local client: %v", err)
	}
	st, err := lc.StatusWithoutPeers(t.Context())
	if err != nil {
		t.Fatalf("cannot get a node's status: %v", err)
	}
	return st.CertDomains
}

func TestCertDomains(t *testing.T) {
	r := simtest.Start(t, simtest.AutoApprove)
	createService(t, r)
	n := r.NewNode(t, "host", "tag:k8s")
	if diff := cmp.Diff([]string(nil), certDomains(t, n)); diff != "" {
		t.Errorf("A tailnet without HTTPS has no names for certificates: -want, +got:\n%s", diff)
	}

	setHTTPS(t, r, true)
	simtest.Eventually(t, "a node may have a certificate for its own name", func() bool {
		return slices.Equal(certDomains(t, n), []string{"host." + r.Domain()})
	})
	host(t, n)
	simtest.Eventually(t, "and for a service that it advertises", func() bool {
		return slices.Equal(certDomains(t, n), []string{"host." + r.Domain(), "web." + r.Domain()})
	})
	setHTTPS(t, r, false)
	simtest.Eventually(t, "until HTTPS is turned off", func() bool { return len(certDomains(t, n)) == 0 })
}

func TestSetDNS(t *testing.T) {
	r := simtest.Start(t)
	setHTTPS(t, r, true)
	at, err := r.StartDNS("127.0.0.1:0")
	if err != nil {
		t.Fatalf("cannot start DNS: %v", err)
	}
	resolver := func(network string) *net.Resolver {
		return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, at.String())
		}}
	}
	n := r.NewNode(t, "host", "tag:k8s")
	simtest.Eventually(t, "the node has a name for certificates", func() bool { return len(certDomains(t, n)) == 1 })
	lc, err := n.LocalClient()
	if err != nil {
		t.Fatalf("cannot get a local client: %v", err)
	}

	cases := map[string]struct {
		reason string
		name   string
		want   string
	}{
		"Own":       {reason: "A node shows that it has its own name.", name: "_acme-challenge.host." + r.Domain()},
		"Other":     {reason: "It has no name of others.", name: "_acme-challenge.other." + r.Domain(), want: "may not set records of this domain"},
		"NoPrefix":  {reason: "It can set nothing but challenges.", name: "host." + r.Domain(), want: "invalid record"},
		"Elsewhere": {reason: "It has nothing outside of the tailnet.", name: "_acme-challenge.example.com", want: "may not set records of this domain"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := lc.SetDNS(t.Context(), tc.name, "proof")
			got, lookupErr := resolver("tcp").LookupTXT(t.Context(), tc.name+".")
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("\n%s\nSetDNS(...): want an error with %q, got %v", tc.reason, tc.want, err)
				}
				if lookupErr == nil {
					t.Errorf("\n%s\nLookupTXT(...): want no such name, got %v", tc.reason, got)
				}
				return
			}
			if err != nil || lookupErr != nil {
				t.Fatalf("\n%s\nSetDNS(...): %v; LookupTXT(...): %v", tc.reason, err, lookupErr)
			}
			second, err := resolver("udp").LookupTXT(t.Context(), tc.name+".")
			if err != nil {
				t.Fatalf("\n%s\nLookupTXT(...) by UDP: %v", tc.reason, err)
			}
			if diff := cmp.Diff(got, second); diff != "" {
				t.Errorf("\n%s\nLookupTXT(...): -TCP, +UDP:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff([]string{"proof"}, got); diff != "" {
				t.Errorf("\n%s\nLookupTXT(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
