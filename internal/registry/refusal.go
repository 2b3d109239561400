// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// A RefusalError is the reason why a cluster may not share a service.
type RefusalError struct {
	Reason  xpv2.ConditionReason
	Message string
}

// Error implements error.
func (r *RefusalError) Error() string { return r.Message }

// Refusal returns the refusal that err contains, and whether there is one.
func Refusal(err error) (*RefusalError, bool) {
	var r *RefusalError
	ok := errors.As(err, &r)
	return r, ok
}

// NameTaken returns the refusal of a service whose name a machine of the tailnet has.
func NameTaken(name string) *RefusalError {
	return &RefusalError{
		Reason:  meta.ReasonNameTaken,
		Message: fmt.Sprintf("a machine of the tailnet has the name %q; rename the machine, or choose another name for the service", strings.TrimPrefix(name, servicePrefix)),
	}
}
