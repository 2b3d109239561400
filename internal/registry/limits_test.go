// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestCopyIsBounded(t *testing.T) {
	c := registry{Consumers: map[string]copied{}}
	for i := range maxListed {
		c.Consumers[fmt.Sprintf("cluster-%d", i)] = copied{Operator: "default/web", Service: "svc:web-0a1b2c3d4e", Routes: []string{strings.Repeat("r", 200)}}
	}
	for _, n := range []int{maxListed, 4} {
		for i := range c.Consumers {
			if len(c.Consumers) > n {
				delete(c.Consumers, i)
			}
		}
		b, err := json.Marshal(c.bounded())
		if err != nil || len(b) > maxValue {
			t.Errorf("bounded() of %d clusters: %d bytes, %v", n, len(b), err)
		}
	}
}
