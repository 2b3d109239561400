// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A canned API answers requests with fixed responses, by method and path below /api/v2.
type canned map[string]struct {
	status int
	body   string
}

// client returns a client of a server with these responses, and the requests' bodies.
func (c canned) client(t *testing.T) (*Client, map[string]string) {
	t.Helper()
	requests := map[string]string{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Method + " " + strings.TrimPrefix(r.URL.Path, "/api/v2")
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("cannot read the body of %s: %v", key, err)
		}
		requests[key] = string(b)
		a, ok := c[key]
		if !ok {
			a.status, a.body = http.StatusNotFound, `{"message":"not found"}`
		}
		if a.status != 0 {
			w.WriteHeader(a.status)
		}
		if _, err := io.WriteString(w, a.body); err != nil {
			t.Errorf("cannot answer %s: %v", key, err)
		}
	}))
	t.Cleanup(srv.Close)
	cl, err := NewClient(Config{URL: srv.URL, APIKey: "key"}, Options{Rate: 1000, Burst: 1000, ListMaxAge: time.Minute, Metrics: NewMetrics()})
	if err != nil {
		t.Fatal(err)
	}
	return cl, requests
}

func TestHosts(t *testing.T) {
	const path = "GET /tailnet/-/services/svc:web/devices"
	cases := map[string]struct {
		reason string
		body   string
		want   []Host
	}{
		"Ready": {
			reason: "The response of a real tailnet, as the official client reads it.",
			body:   `{"hosts":[{"nodeId":"n1CNTRL","approvalLevel":"approved:manual","configured":"ready"}]}`,
			want:   []Host{{NodeID: "n1CNTRL", State: HostReady, Approval: "approved:manual"}},
		},
		"Documented": {
			reason: "The response that the OpenAPI document describes.",
			body:   `{"hosts":[{"stableNodeID":"n1CNTRL","approvalLevel":"approved:auto","configured":"ready"}]}`,
			want:   []Host{{NodeID: "n1CNTRL", State: HostReady, Approval: "approved:auto"}},
		},
		"OtherStates": {
			reason: "An unknown state is kept unchanged and is not ready.",
			body:   `{"hosts":[{"nodeId":"a","configured":"needs-configuration"},{"nodeId":"b","configured":"configured"},{"nodeId":"c"},{"nodeId":"d","configured":7}]}`,
			want:   []Host{{NodeID: "a", State: "needs-configuration"}, {NodeID: "b", State: "configured"}, {NodeID: "c"}, {NodeID: "d"}},
		},
		"Boolean": {
			reason: "A boolean is read as well.",
			body:   `{"hosts":[{"nodeId":"a","configured":true},{"nodeId":"b","configured":false}]}`,
			want:   []Host{{NodeID: "a", State: HostReady}, {NodeID: "b"}},
		},
		"None": {reason: "The response for a service without hosts has no list.", body: `{}`, want: []Host{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, _ := canned{path: {body: tc.body}}.client(t)
			got, err := c.Services().Hosts(t.Context(), "svc:web")
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("\n%s\nHosts(...): %v: -want, +got:\n%s", tc.reason, err, diff)
			}
			for _, h := range got {
				if h.Ready() != (h.State == "ready") {
					t.Errorf("\n%s\nReady() of state %q: %t", tc.reason, h.State, h.Ready())
				}
			}
		})
	}
}

func TestClassOf(t *testing.T) {
	cases := map[string]struct {
		reason  string
		status  int
		message string
		want    Class
		text    string
	}{
		"MachineOnGet": {reason: "tailscale/tailscale#19922.", status: 400, message: "name exists but is not a service", want: ClassNameTaken, text: "rename the machine"},
		"MachineOnPut": {reason: "tailscale/tailscale#17693.", status: 409, message: "name is in use but is not a service", want: ClassNameTaken, text: "rename the machine"},
		"Plan":         {reason: "A plan's limit can have the status of a missing scope.", status: 403, message: "feature not available on current billing plan", want: ClassPlanRequired, text: "change the plan"},
		"PlanBadRequest": {
			reason: "A plan's limit can have the status of a bad request.", status: 400, message: "this feature is not available on your plan", want: ClassPlanRequired, text: "change the plan",
		},
		"Payment":   {reason: "A plan's limit can have the status 402.", status: 402, message: "no", want: ClassPlanRequired, text: "change the plan"},
		"Scope":     {reason: "A missing scope has class Forbidden.", status: 403, message: "calling actor does not have enough permissions to perform this function", want: ClassForbidden, text: "OAuth scope"},
		"Quota":     {reason: "A quota has class QuotaExceeded.", status: 403, message: "service quota of 10 exceeded", want: ClassQuotaExceeded, text: "ask Tailscale for a higher limit"},
		"RateLimit": {reason: "Status 429 is not a quota of objects.", status: 429, message: "quota exceeded", want: ClassRateLimited},
		"Revoked":   {reason: "A revoked key has class NotFound.", status: 410, message: "key was revoked", want: ClassNotFound},
		"Conflict":  {reason: "Other conflicts have class Conflict.", status: 409, message: "taken", want: ClassConflict},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			body, err := json.Marshal(map[string]string{"message": tc.message})
			if err != nil {
				t.Fatal(err)
			}
			c, _ := canned{"GET /tailnet/-/vip-services/svc:web": {status: tc.status, body: string(body)}}.client(t)
			c.login.limited.paused = time.Time{}
			_, err = c.Services().Service(t.Context(), "svc:web")
			if ClassOf(err) != tc.want || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("\n%s\nService(...): want class %s and %q, got %s: %v", tc.reason, tc.want, tc.text, ClassOf(err), err)
			}
		})
	}
}

func TestPolicyWarnings(t *testing.T) {
	cases := map[string]struct {
		reason   string
		verdict  string
		warnings []string
		class    Class
	}{
		"Empty": {reason: "An empty response is a success."},
		"Object": {
			reason:  "An empty object is a success.",
			verdict: `{}`,
		},
		"Warnings": {
			reason:   "Warnings alone are a success.",
			verdict:  `{"message":"warning(s) found","data":[{"user":"group:sec@example.com","warnings":["group is not syncing from SCIM and will be ignored by rules in the policy file"]}]}`,
			warnings: []string{"group:sec@example.com: group is not syncing from SCIM and will be ignored by rules in the policy file"},
		},
		"WarningsWithoutUser": {
			reason:   "The subject of a warning may be missing.",
			verdict:  `{"message":"warning(s) found","data":[{"warnings":["one","two"]}]}`,
			warnings: []string{"one, two"},
		},
		"Errors": {
			reason:  "Errors together with warnings are a refusal.",
			verdict: `{"message":"test(s) failed","data":[{"user":"ann@example.com","errors":["want: Drop, got: Accept"],"warnings":["w"]}]}`,
			class:   ClassInvalid,
		},
		"Message": {reason: "A message alone is a refusal.", verdict: `{"message":"line 1: no"}`, class: ClassInvalid},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, requests := canned{
				"GET /tailnet/-/acl":           {body: "{}"},
				"POST /tailnet/-/acl/validate": {body: tc.verdict},
				"POST /tailnet/-/acl":          {body: "{}"},
			}.client(t)
			got, err := c.PolicyFile().EditPolicyFile(t.Context(), func(string) (string, error) { return "{// new\n}", nil })
			if diff := cmp.Diff(tc.warnings, got); ClassOf(err) != tc.class || diff != "" {
				t.Errorf("\n%s\nEditPolicyFile(...): want class %q, got %v; warnings: -want, +got:\n%s", tc.reason, tc.class, err, diff)
			}
			if _, written := requests["POST /tailnet/-/acl"]; written != (tc.class == "") {
				t.Errorf("\n%s\nEditPolicyFile(...): written: %t", tc.reason, written)
			}
		})
	}
}

func TestPutServiceReadsBack(t *testing.T) {
	const path = "/tailnet/-/vip-services/svc:web"
	stored := `{"name":"svc:web","addrs":["100.64.0.1","fd7a::1"],"annotations":{"a":"b"}}`
	bare := `{"name":"svc:web","addrs":["100.64.0.1","fd7a::1"]}`
	cases := map[string]struct {
		reason       string
		putBody, get string
		annotations  map[string]string
	}{
		"Complete":   {reason: "A response with the annotations is used.", putBody: stored, get: bare, annotations: map[string]string{"a": "b"}},
		"NotInReply": {reason: "After a response without annotations the service is read again.", putBody: bare, get: stored, annotations: map[string]string{"a": "b"}},
		"Lost":       {reason: "The result lacks annotations that the tailnet dropped.", putBody: bare, get: bare},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, _ := canned{"PUT " + path: {body: tc.putBody}, "GET " + path: {body: tc.get}}.client(t)
			got, err := c.Services().PutService(t.Context(), Service{Name: "svc:web", Annotations: map[string]string{"a": "b"}})
			if err != nil {
				t.Fatalf("\n%s\nPutService(...): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.annotations, got.Annotations); diff != "" {
				t.Errorf("\n%s\nPutService(...): annotations: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFreshClient(t *testing.T) {
	const object, list = "GET /tailnet/-/vip-services/svc:web", "GET /tailnet/-/vip-services"
	cases := map[string]struct {
		reason string
		api    canned
		want   Class
	}{
		"Fresh":  {reason: "A credential without access cannot prove that an object is missing.", api: canned{}, want: ClassUnavailable},
		"Proven": {reason: "A working credential proves that an object is missing.", api: canned{list: {body: `{"vipServices":[]}`}}, want: ClassNotFound},
		"Scope":  {reason: "A refused list proves that the API knows the credential.", api: canned{list: {status: 403, body: `{"message":"no"}`}}, want: ClassNotFound},
		"Exists": {reason: "An object that exists is found.", api: canned{object: {body: `{"name":"svc:web"}`}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, _ := tc.api.client(t)
			if _, err := c.Services().Service(t.Context(), "svc:web"); ClassOf(err) != tc.want {
				t.Errorf("\n%s\nService(...): want class %q, got: %v", tc.reason, tc.want, err)
			}
			if err := c.Services().DeleteService(t.Context(), "svc:other"); (ClassOf(err) == ClassUnavailable) != (tc.want == ClassUnavailable) {
				t.Errorf("\n%s\nDeleteService(...): %v", tc.reason, err)
			}
		})
	}
}
