// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"tailscale.com/ipn/conffile"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

func TestTailscaledConfig(t *testing.T) {
	type want struct {
		config string
		err    error
	}
	cases := map[string]struct {
		reason   string
		base     string
		services []string
		want     want
	}{
		"Advertise": {
			reason:   "Services are sorted, and all other keys are kept.",
			base:     `{"Version":"alpha0","Locked":false,"Hostname":"h","AuthKey":"tskey-auth-x","acceptDNS":false,"acceptRoutes":false}`,
			services: []string{"svc:b", "svc:a", "svc:b"},
			want:     want{config: `{"AdvertiseServices":["svc:a","svc:b"],"AuthKey":"tskey-auth-x","Hostname":"h","Locked":false,"Version":"alpha0","acceptDNS":false,"acceptRoutes":false}`},
		},
		"Withdraw": {
			reason: "Without services the key is absent, even if base has it.",
			base:   `{"Version":"alpha0","advertiseServices":["svc:a"]}`,
			want:   want{config: `{"Version":"alpha0"}`},
		},
		"HuJSON": {
			reason: "Comments and trailing commas are allowed, as in tailscaled.",
			base:   "{\"Version\":\"alpha0\", // why\n}",
			want:   want{config: `{"Version":"alpha0"}`},
		},
		"UnknownKey": {
			reason: "An unknown key is refused, because tailscaled exits on it.",
			base:   `{"Version":"alpha0","tskey-auth-x":1}`,
			want:   want{err: cmpopts.AnyError},
		},
		"WrongType": {
			reason: "A value of the wrong type is refused.",
			base:   `{"Version":"alpha0","Locked":"tskey-auth-x"}`,
			want:   want{err: cmpopts.AnyError},
		},
		"OtherVersion": {
			reason: "A version that tailscaled does not support is refused.",
			base:   `{"Version":"tskey-auth-x"}`,
			want:   want{err: cmpopts.AnyError},
		},
		"Empty": {
			reason: "A missing key of the Secret is refused.",
			want:   want{err: cmpopts.AnyError},
		},
		"Garbage": {
			reason: "A config that is not JSON is refused.",
			base:   `tskey-auth-x`,
			want:   want{err: cmpopts.AnyError},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := TailscaledConfig([]byte(tc.base), tc.services)
			if diff := cmp.Diff(tc.want.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\nTailscaledConfig(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if err != nil && strings.Contains(err.Error(), "tskey") {
				t.Errorf("\nErrors must not hold a key\nTailscaledConfig(...): %v", err)
			}
			if diff := cmp.Diff(tc.want.config, string(got)); diff != "" {
				t.Errorf("\n%s\nTailscaledConfig(...): -want, +got:\n%s", tc.reason, diff)
			}
			if err != nil {
				return
			}
			if err := loads(t, got); err != nil {
				t.Errorf("\nTailscaled must accept the config\nconffile.Load(...): %v", err)
			}
		})
	}
}

// loads returns the error of tailscaled's own parser for a config.
func loads(t *testing.T, config []byte) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		return errors.Wrap(err, "cannot write config")
	}
	_, err := conffile.Load(path)
	return err
}

func TestAdvertisedIn(t *testing.T) {
	config, err := TailscaledConfig([]byte(`{"Version":"alpha0"}`), []string{"svc:b", "svc:a"})
	if err != nil {
		t.Fatalf("TailscaledConfig(...): %v", err)
	}
	got, err := AdvertisedIn(config)
	if err != nil {
		t.Fatalf("AdvertisedIn(...): %v", err)
	}
	if diff := cmp.Diff([]string{"svc:a", "svc:b"}, got); diff != "" {
		t.Errorf("AdvertisedIn(...): -want, +got:\n%s", diff)
	}
}

func TestServeConfig(t *testing.T) {
	handlers := map[string]Handlers{
		"svc:web": {
			8443: {Forward: "127.1.2.3:16827", ProxyProtocol: 2},
		},
		"svc:db": {
			5432: {Forward: "10.0.0.5:5432"},
			5433: {Forward: "[fd00::5]:5432", ProxyProtocol: 1},
		},
		"svc:all": {},
	}
	got, err := ServeConfig(handlers)
	if err != nil {
		t.Fatalf("ServeConfig(...): %v", err)
	}
	want := `{"Services":{"svc:all":{},` +
		`"svc:db":{"TCP":{"5432":{"TCPForward":"10.0.0.5:5432"},"5433":{"TCPForward":"[fd00::5]:5432","ProxyProtocol":1}}},` +
		`"svc:web":{"TCP":{"8443":{"TCPForward":"127.1.2.3:16827","ProxyProtocol":2}}}}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("ServeConfig(...): -want, +got:\n%s", diff)
	}

	back, err := HandlersIn(got)
	if err != nil {
		t.Fatalf("HandlersIn(...): %v", err)
	}
	if diff := cmp.Diff(handlers, back); diff != "" {
		t.Errorf("HandlersIn(ServeConfig(...)): -want, +got:\n%s", diff)
	}
}
