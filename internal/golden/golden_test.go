// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"strings"
	"testing"
)

func role(verb string) map[string]any {
	return map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
		"metadata": map[string]any{"namespace": "shop", "name": "web"},
		"rules":    []any{map[string]any{"verbs": []any{verb}}},
	}
}

func TestDigests(t *testing.T) {
	d := &Digests{}
	get, ok := d.Of(t, role("get"))
	if !ok || !strings.HasPrefix(get, "Role shop/web sha256:") {
		t.Fatalf("Of(Role): want its kind, name and digest, got %q, %t", get, ok)
	}
	second, _ := d.Of(t, role("get"))
	if second != get {
		t.Errorf("the digest of the same object differs: %q, %q", get, second)
	}
	list, _ := d.Of(t, role("list"))
	if list == get {
		t.Error("another verb does not change the digest")
	}
	if _, ok := d.Of(t, map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}); ok {
		t.Error("a ConfigMap has a digest; want it in full")
	}
	if out := d.explain(get, get); out != "" {
		t.Errorf("explain(...) of a known digest: want nothing, got %s", out)
	}
	if out := d.explain(get, list); !strings.Contains(out, "- list") || strings.Contains(out, "- get") {
		t.Errorf("explain(...) of a new digest: want its object alone, got %s", out)
	}
}

func TestCondition(t *testing.T) {
	cases := map[string]struct {
		reason string
		c      map[string]any
		want   string
	}{
		"Message": {
			reason: "A message comes last, and a time not at all.",
			c:      map[string]any{"type": "Ready", "status": "False", "reason": "Creating", "message": "wait", "lastTransitionTime": "now"},
			want:   "Ready=False Creating: wait",
		},
		"NoMessage": {
			reason: "A condition need not have a message.",
			c:      map[string]any{"type": "Ready", "status": "True", "reason": "Available"},
			want:   "Ready=True Available",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Condition(tc.c); got != tc.want {
				t.Errorf("%s\nCondition(...): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
