// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"time"

	"k8s.io/utils/clock"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A value is a single object of a tailnet, such as its settings. Callers share one response, like
// that of a list.
type value[T any] struct {
	list[outcome[T]]
}

// An outcome is a response or a refusal. Refusals are cached like responses, so that a credential
// without access does not send more requests.
type outcome[T any] struct {
	value T
	err   error
}

func newValue[T any](clk clock.PassiveClock, load func(ctx context.Context) (T, error)) *value[T] {
	return &value[T]{list[outcome[T]]{clock: clk, load: func(ctx context.Context) ([]outcome[T], time.Time, error) {
		v, err := load(ctx)
		if ClassOf(err) == ClassForbidden {
			return []outcome[T]{{err: err}}, time.Time{}, nil
		}
		return []outcome[T]{{value: v}}, time.Time{}, err
	}}}
}

// get returns the value if it is no older than maxAge, and otherwise requests it. Callers must not
// modify it.
func (v *value[T]) get(ctx context.Context, maxAge time.Duration) (T, error) {
	var none T
	all, _, err := v.list.get(ctx, maxAge)
	if err != nil {
		return none, err
	}
	if len(all) != 1 {
		return none, errors.New("a value has no answer")
	}
	return all[0].value, all[0].err
}

// known returns the last value, of any age, without a request. It is the zero value if there is none.
func (v *value[T]) known() T {
	var none T
	if all := v.list.known(); len(all) == 1 {
		return all[0].value
	}
	return none
}

// tailnetValues are the values of a whole tailnet.
type tailnetValues struct {
	settings      *value[Settings]
	magicDNS      *value[bool]
	dns           *value[DNS]
	configuration *value[dnsConfiguration]
	contacts      *value[Contacts]
	tailnets      *value[[]orgTailnet]
	domain        *value[string] // See TailnetResource.TailnetIdentity.
	policy        *value[PolicyFile]
	expires       *value[time.Time] // The expiry of the credential.

	// policyEdits holds one token while the policy file is being edited.
	policyEdits chan struct{}
}

func newTailnetValues(c *core, clk clock.PassiveClock) *tailnetValues {
	return &tailnetValues{
		settings:      newValue(clk, TailnetResource{c}.loadSettings),
		magicDNS:      newValue(clk, DNSResource{c}.loadMagicDNS),
		dns:           newValue(clk, DNSResource{c}.loadDNS),
		configuration: newValue(clk, DNSResource{c}.loadConfiguration),
		contacts:      newValue(clk, TailnetResource{c}.loadContacts),
		tailnets:      newValue(clk, TailnetResource{c}.loadTailnets),
		domain:        newValue(clk, TailnetResource{c}.Domain),
		policy:        newValue(clk, PolicyFileResource{c}.loadPolicy),
		expires:       newValue(clk, TailnetResource{c}.loadExpires),
		policyEdits:   make(chan struct{}, 1),
	}
}
