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
	// retryOn are the failures after which any request may be retried: no endpoint has received it.
	retryOn = "connect-failure,refused-stream,reset-before-request"

	// retryOnSafe adds failures after which an endpoint may have received the request.
	retryOnSafe = retryOn + ",reset"

	// retries of a request, each at another priority, or at another endpoint if none is left.
	retries = 2

	// otherHosts is the number of attempts to choose a host that was not tried before. Envoy
	// Gateway uses the same.
	otherHosts = 5

	// retryPause is the longest pause before the first retry. Envoy's default is 25 ms.
	retryPause = 5 * time.Millisecond
)

// safeMethods are the methods without side effects of RFC 9110, which may be retried.
var safeMethods = map[string]bool{"GET": true, "HEAD": true, "OPTIONS": true, "TRACE": true}

// policies are the retry policies, by whether all of a route's requests are safe to retry. All
// routes share them: never change them.
var policies = sync.OnceValues(func() (map[bool]*routev3.RetryPolicy, error) {
	out := map[bool]*routev3.RetryPolicy{}
	for safe, triggers := range map[bool]string{false: retryOn, true: retryOnSafe} {
		hosts, err := packAny(&previoushostsv3.PreviousHostsPredicate{})
		if err != nil {
			return nil, errors.Wrap(err, "cannot marshal retry predicate")
		}
		priority, err := otherPriority()
		if err != nil {
			return nil, err
		}
		out[safe] = &routev3.RetryPolicy{
			RetryOn:       triggers,
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

// otherPriority makes each retry use a priority that was not tried yet: until Envoy's checks detect
// the failure, the failed priority still counts as healthy. All routes share it: never change it.
var otherPriority = sync.OnceValues(func() (*routev3.RetryPolicy_RetryPriority, error) {
	a, err := packAny(&previousprioritiesv3.PreviousPrioritiesConfig{UpdateFrequency: 1})
	return &routev3.RetryPolicy_RetryPriority{
		Name:       "envoy.retry_priorities.previous_priorities",
		ConfigType: &routev3.RetryPolicy_RetryPriority_TypedConfig{TypedConfig: a},
	}, errors.Wrap(err, "cannot marshal retry priority")
})

// Safe reports whether all requests of a match may be retried, because it matches only methods
// without side effects.
func Safe(m *routev3.RouteMatch) bool {
	for _, h := range m.GetHeaders() {
		if h.GetName() == ":method" && !h.GetInvertMatch() && safeMethods[strings.ToUpper(h.GetStringMatch().GetExact())] {
			return true
		}
	}
	return false
}

// Retry adds retries of requests that no endpoint has received, at another endpoint. Users decide
// about other retries: a policy's retry settings stay, and only get other priorities if they set
// none.
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

// retryUnsafe removes the retries of safe requests from a route that gets another match.
func retryUnsafe(r *routev3.Route) error {
	all, err := policies()
	if a := r.GetRoute(); err == nil && a != nil && !Safe(r.GetMatch()) && proto.Equal(a.GetRetryPolicy(), all[true]) {
		OwnAction(r).RetryPolicy = all[false]
	}
	return err
}
