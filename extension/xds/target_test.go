// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestDialTarget(t *testing.T) {
	type want struct {
		target string
		err    error
	}
	cases := map[string]struct {
		reason  string
		address string
		want    want
	}{
		"IPv4":          {reason: "gRPC requires the family of an address.", address: "10.96.0.7:5006", want: want{target: "ipv4:10.96.0.7:5006"}},
		"IPv4Brackets":  {reason: "A manifest cannot know the family, so it always has brackets.", address: "[10.96.0.7]:5006", want: want{target: "ipv4:10.96.0.7:5006"}},
		"IPv6Brackets":  {reason: "Only the other family needs brackets.", address: "[fd00::7]:5006", want: want{target: "ipv6:[fd00::7]:5006"}},
		"Target":        {reason: "A value with a scheme is a target.", address: "ipv4:10.96.0.7:5006", want: want{target: "ipv4:10.96.0.7:5006"}},
		"DNS":           {reason: "A value with a scheme is a target.", address: "dns:///eds.example.svc:5006", want: want{target: "dns:///eds.example.svc:5006"}},
		"Name":          {reason: "gRPC resolves a name by itself.", address: "eds.example.svc:5006", want: want{target: "eds.example.svc:5006"}},
		"Socket":        {reason: "Envoys of the same machine dial a socket.", address: "unix:/run/eds.sock", want: want{target: "unix:/run/eds.sock"}},
		"ErrNoVariable": {reason: "Kubernetes keeps a variable that it does not know.", address: "[$(EDS_SERVICE_HOST)]:$(EDS_SERVICE_PORT)", want: want{err: cmpopts.AnyError}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := DialTarget(tc.address)
			if diff := cmp.Diff(tc.want.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("%s\nDialTarget(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want.target, got); diff != "" {
				t.Errorf("%s\nDialTarget(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
