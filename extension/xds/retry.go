// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"strings"
	"sync"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	previoushostsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	previousprioritiesv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/priority/previous_priorities/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	// retryOn is what may be sent again whatever it is: no endpoint has seen it.
	retryOn = "connect-failure,refused-stream,reset-before-request"

	// retryOnSafe adds what an endpoint may have seen, and not answered.
	retryOnSafe = retryOn + ",reset"

	// retries of a request: to another endpoint, then to another priority.
	retries = 2

	// otherHosts is how often a host is chosen again if it was tried before. Envoy
	// Gateway has the same.
	otherHosts = 5

	// retryPause is the longest before the first retry. Envoy's default is 25 ms.
	retryPause = 5 * time.Millisecond
)

// safeMethods change nothing, by RFC 9110: they may be repeated.
var safeMethods = map[string]bool{"GET": true, "HEAD": true, "OPTIONS": true, "TRACE": true}

// policies by whether all of a route's requests are safe to repeat. They are made
// once, and shared by all routes: never change them.
var policies = sync.OnceValues(func() (map[bool]*routev3.RetryPolicy, error) {
	out := map[bool]*routev3.RetryPolicy{}
	for safe, on := range map[bool]string{false: retryOn, true: retryOnSafe} {
		hosts, err := packAny(&previoushostsv3.PreviousHostsPredicate{})
		if err != nil {
			return nil, errors.Wrap(err, "cannot marshal retry predicate")
		}
		priority, err := otherPriority()
		if err != nil {
			return nil, err
		}
		out[safe] = &routev3.RetryPolicy{
			RetryOn:       on,
			NumRetries:    wrapperspb.UInt32(retries),
			RetryPriority: priority,
			RetryHostPredicate: []*routev3.RetryPolicy_RetryHostPredicate{{
				Name:       "envoy.retry_host_predicates.previous_hosts",
				ConfigType: &routev3.RetryPolicy_RetryHostPredicate_TypedConfig{TypedConfig: hosts},
			}},
			HostSelectionRetryMaxAttempts: otherHosts,
			RetryBackOff:                  &routev3.RetryPolicy_RetryBackOff{BaseInterval: durationpb.New(retryPause)},
		}
	}
	return out, nil
})

// otherPriority sends each retry to a priority that was not tried yet: the one that
// failed still counts as healthy until Envoy's checks say otherwise.
func otherPriority() (*routev3.RetryPolicy_RetryPriority, error) {
	a, err := packAny(&previousprioritiesv3.PreviousPrioritiesConfig{UpdateFrequency: 1})
	return &routev3.RetryPolicy_RetryPriority{
		Name:       "envoy.retry_priorities.previous_priorities",
		ConfigType: &routev3.RetryPolicy_RetryPriority_TypedConfig{TypedConfig: a},
	}, errors.Wrap(err, "cannot marshal retry priority")
}

// Safe reports whether all requests of a match may be repeated, for it takes none but
// those of a method that changes nothing.
func Safe(m *routev3.RouteMatch) bool {
	for _, h := range m.GetHeaders() {
		if h.GetName() == ":method" && !h.GetInvertMatch() && safeMethods[strings.ToUpper(h.GetStringMatch().GetExact())] {
			return true
		}
	}
	return false
}

// Retry what no endpoint has seen, at another one. What else is repeated is for the
// user to say: what a policy of theirs has set stays, and only tries other priorities
// where it does not say which.
func Retry(a *routev3.RouteAction, safe bool) error {
	p := a.GetRetryPolicy()
	if p == nil {
		all, err := policies()
		a.RetryPolicy = all[safe]
		return err
	}
	if p.GetRetryPriority() != nil {
		return nil
	}
	var err error
	p.RetryPriority, err = otherPriority()
	return err
}

// retryUnsafe takes back what we retry for the requests of a route that are all safe to
// repeat, where another match is put in place of the route's.
func retryUnsafe(r *routev3.Route) error {
	all, err := policies()
	if a := r.GetRoute(); err == nil && !Safe(r.GetMatch()) && proto.Equal(a.GetRetryPolicy(), all[true]) {
		a.RetryPolicy = all[false]
	}
	return err
}
