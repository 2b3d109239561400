// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"fmt"
	"slices"
	"strings"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/crossplane/function-sdk-go/response"

	"github.com/tailscale-gateway/tailscale-gateway/internal/text"
)

// A Condition is a condition of the object that the user wrote. It has no time, because Crossplane
// sets the time.
type Condition struct {
	Type   xpv2.ConditionType
	Status Status
	Reason xpv2.ConditionReason

	// Message says what to do next. It must not change between runs.
	Message string
}

// A Status is the status of a condition. The zero value is unknown.
type Status int

// Statuses of a condition.
const (
	Unknown Status = iota
	True
	False
)

// setCondition sets a condition on the composite and on its claim. Its message may contain what
// agents or users of the tailnet wrote, and is cleaned.
func (r *reply) setCondition(c Condition) {
	set := map[Status]func() *response.ConditionOption{
		Unknown: func() *response.ConditionOption {
			return response.ConditionUnknown(r.rsp, r.step.conditionType(c.Type), string(c.Reason))
		},
		True: func() *response.ConditionOption {
			return response.ConditionTrue(r.rsp, r.step.conditionType(c.Type), string(c.Reason))
		},
		False: func() *response.ConditionOption {
			return response.ConditionFalse(r.rsp, r.step.conditionType(c.Type), string(c.Reason))
		},
	}
	set[c.Status]().WithMessage(text.Clean(c.Message)).TargetCompositeAndClaim()
}

// listLimit is how many names a message lists.
const listLimit = 3

// List returns names for a message: at most three, sorted, and the number of the others.
func List(names ...string) string {
	s := slices.Clone(names)
	slices.Sort(s)
	if len(s) <= listLimit {
		return strings.Join(s, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(s[:listLimit], ", "), len(s)-listLimit)
}
