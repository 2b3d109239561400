// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/testing/protocmp"
)

const (
	previousHosts = `"retryHostPredicate": [{"name": "envoy.retry_host_predicates.previous_hosts", "typedConfig":
		{"@type": "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"}}]`
	previousPriorities = `"retryPriority": {"name": "envoy.retry_priorities.previous_priorities", "typedConfig":
		{"@type": "type.googleapis.com/envoy.extensions.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig", "updateFrequency": 1}}`
)

func TestRetry(t *testing.T) {
	cases := map[string]struct {
		reason string
		policy string
		safe   bool
		want   string
	}{
		"None": {
			reason: "Only requests that no endpoint has received should be retried.",
			want: `{"retryOn": "connect-failure,refused-stream,reset-before-request", "numRetries": 2, "hostSelectionRetryMaxAttempts": "5",
				"retryBackOff": {"baseInterval": "0.005s"}, ` + previousHosts + "," + previousPriorities + "}",
		},
		"Safe": {
			reason: "Safe requests may be retried even if an endpoint has received them.",
			safe:   true,
			want: `{"retryOn": "connect-failure,refused-stream,reset-before-request,reset", "numRetries": 2, "hostSelectionRetryMaxAttempts": "5",
				"retryBackOff": {"baseInterval": "0.005s"}, ` + previousHosts + "," + previousPriorities + "}",
		},
		"Policy": {
			reason: "A user's policy should stay, and use other priorities.",
			policy: `{"retryOn": "5xx", "numRetries": 7, "perTryTimeout": "1s"}`,
			safe:   true,
			want:   `{"retryOn": "5xx", "numRetries": 7, "perTryTimeout": "1s", ` + previousPriorities + "}",
		},
		"PolicyWithPriority": {
			reason: "A policy with retry priorities should stay as it is.",
			policy: `{"retryOn": "5xx", "retryPriority": {"name": "mine"}}`,
			want:   `{"retryOn": "5xx", "retryPriority": {"name": "mine"}}`,
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			a := &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: "c"}}
			if tc.policy != "" {
				a.RetryPolicy = retryPolicy(t, tc.policy)
			}
			// The second run changes nothing.
			for range 2 {
				if err := Retry(a, tc.safe); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(retryPolicy(t, tc.want), a.GetRetryPolicy(), protocmp.Transform()); diff != "" {
					t.Errorf("%s\n-want, +got\n%s", tc.reason, diff)
				}
			}
			if err := a.ValidateAll(); err != nil {
				t.Errorf("%s\nEnvoy Gateway refuses it: %v", tc.reason, err)
			}
		})
	}
}

func retryPolicy(t *testing.T, j string) *routev3.RetryPolicy {
	t.Helper()
	p := &routev3.RetryPolicy{}
	if err := protojson.Unmarshal([]byte(j), p); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSafe(t *testing.T) {
	method := func(m string, invert bool) *routev3.RouteMatch {
		return &routev3.RouteMatch{Headers: []*routev3.HeaderMatcher{{
			Name: ":method", InvertMatch: invert,
			HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: m}}},
		}}}
	}
	cases := map[string]struct {
		reason string
		match  *routev3.RouteMatch
		want   bool
	}{
		"Any":    {reason: "Any method matches.", match: &routev3.RouteMatch{}},
		"GET":    {reason: "Only GET comes.", match: method("GET", false), want: true},
		"POST":   {reason: "POST may have side effects.", match: method("POST", false)},
		"NotGET": {reason: "All but GET come.", match: method("GET", true)},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			if got := Safe(tc.match); got != tc.want {
				t.Errorf("%s\nwant %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}
