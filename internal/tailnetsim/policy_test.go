// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

// testedPolicy has rules to test, and a comment.
const testedPolicy = `{
	// Kept.
	"groups": {"group:ops": ["ann@example.com"]},
	"hosts": {"db": "10.1.2.3"},
	"tagOwners": {"tag:k8s-operator": [], "tag:web": ["tag:k8s-operator"]},
	"grants": [
		{"src": ["group:ops"], "dst": ["tag:web", "svc:web"], "ip": ["tcp:443", "udp:53"]},
		{"src": ["tag:web"], "dst": ["10.1.0.0/16"], "ip": ["5432-5433"]},
	],
	"acls": [{"action": "accept", "src": ["autogroup:member"], "dst": ["db:22,80"]}],
`

func TestPolicyTests(t *testing.T) {
	r := simtest.StartAPI(t)
	c := r.Client(t).PolicyFile()
	cases := map[string]struct {
		reason string
		tests  string
		want   []tailscale.APIErrorData
	}{
		"Pass": {
			reason: "Rules allow and refuse by name, group, range and protocol.",
			tests: `[{"src": "ann@example.com", "accept": ["tag:web:443", "svc:web:443", "db:80"], "deny": ["tag:web:80", "tag:web:53", "10.9.9.9:22"]},
				{"src": "ann@example.com", "proto": "udp", "accept": ["tag:web:53"]},
				{"user": "tag:web", "allow": ["db:5432", "10.1.9.9:5433"], "deny": ["db:22", "tag:web:443"]}]`,
		},
		"WantAccept": {
			reason: "A test that wants more than rules give fails.",
			tests:  `[{"src": "bob@example.com", "accept": ["tag:web:443"]}]`,
			want:   []tailscale.APIErrorData{{User: "bob@example.com", Errors: []string{`address "tag:web:443": want: Accept, got: Drop`}}},
		},
		"WantDeny": {
			reason: "A test that wants less than rules give fails.",
			tests:  `[{"src": "tag:web", "deny": ["db:5432", "db:1"]}]`,
			want:   []tailscale.APIErrorData{{User: "tag:web", Errors: []string{`address "db:5432": want: Drop, got: Accept`}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text := testedPolicy + `"tests": ` + tc.tests + "}\n"
			invalid := c.Validate(t.Context(), text)
			if (invalid == nil) != (tc.want == nil) {
				t.Errorf("%s\nValidate(...): %v", tc.reason, invalid)
			}
			original, err := c.Raw(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			err = c.Set(t.Context(), text, original.ETag)
			var refusal tailscale.APIError
			if errors.As(err, &refusal) != (tc.want != nil) {
				t.Fatalf("%s\nSet(...): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, refusal.Data); diff != "" {
				t.Errorf("%s\nSet(...): -want, +got:\n%s", tc.reason, diff)
			}
			want := text
			if tc.want != nil {
				want = original.HuJSON
			}
			updated, err := c.Raw(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, updated.HuJSON); diff != "" {
				t.Errorf("%s\nRaw(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestValidateTestsAlone(t *testing.T) {
	c := simtest.StartAPI(t).Client(t).PolicyFile()
	// The default policy lets everyone reach everyone.
	if err := c.Validate(t.Context(), []tailscale.ACLTest{{Source: "ann@example.com", Accept: []string{"100.64.9.9:1"}}}); err != nil {
		t.Errorf("Validate(good tests): %v", err)
	}
	if err := c.Validate(t.Context(), []tailscale.ACLTest{{Source: "ann@example.com", Deny: []string{"100.64.9.9:1"}}}); err == nil {
		t.Error("Validate(bad tests): no error")
	}
}

func TestPolicyRefers(t *testing.T) {
	c := simtest.StartAPI(t).Client(t).PolicyFile()
	for name, bad := range map[string]string{
		"Group":        `{"grants": [{"src": ["group:x"], "dst": ["*"], "ip": ["*"]}]}`,
		"TestTag":      `{"tests": [{"src": "tag:x", "deny": ["1.1.1.1:1"]}]}`,
		"EmptyTest":    `{"tests": [{"src": "a@b.c"}]}`,
		"NoDst":        `{"grants": [{"src": ["*"]}]}`,
		"RouteTag":     `{"autoApprovers": {"routes": {"10.0.0.0/8": ["tag:x"]}}}`,
		"ExitNodeTag":  `{"autoApprovers": {"exitNode": ["tag:x"]}}`,
		"TestsNoArray": `{"tests": {}}`,
	} {
		if err := c.Validate(t.Context(), bad); err == nil {
			t.Errorf("%s: a bad policy is valid", name)
		}
		if err := c.Set(t.Context(), bad, ""); err == nil {
			t.Errorf("%s: a bad policy was set", name)
		}
	}
}

func TestPolicyDetails(t *testing.T) {
	r := simtest.StartAPI(t)
	req, err := http.NewRequest(http.MethodGet, r.URL+"/api/v2/tailnet/-/acl?details=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(simtest.APIKey, "")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	var got struct {
		ACL string `json:"acl"`
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	text, err := base64.StdEncoding.DecodeString(got.ACL)
	raw, rerr := r.Client(t).PolicyFile().Raw(t.Context())
	if err != nil || rerr != nil || string(text) != raw.HuJSON || resp.Header.Get("ETag") != raw.ETag {
		t.Errorf("details: %v, %v, %q", err, rerr, text)
	}
}
