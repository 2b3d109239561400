// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

var run = Names{Prefix: "tsgw-acc-test", Tags: []v1alpha1.Tag{"tag:k8s", "tag:web"}}

// outside matches what an object may have without the prefix: tags of the run, ports, and addresses for
// documentation.
var outside = regexp.MustCompile(`^(tag:(k8s|web)|tcp:\d+|192\.0\.2\.\d+|2001:db8::\d+)$`)

// names matches texts that name something in a tailnet: a domain, a URL, a tag, a service, a port or an address.
var names = regexp.MustCompile(`[.:]`)

func TestCases(t *testing.T) {
	t.Run(v1alpha1.AuthKeyKind, func(t *testing.T) { testCase(t, AuthKey(run)) })
	t.Run(v1alpha1.PolicyFragmentKind, func(t *testing.T) { testCase(t, PolicyFragment(run)) })
	t.Run(v1alpha1.SplitDNSKind, func(t *testing.T) { testCase(t, SplitDNS(run)) })
	t.Run(v1alpha1.VIPServiceKind, func(t *testing.T) { testCase(t, VIPService(run)) })
	t.Run(v1alpha1.WebhookKind, func(t *testing.T) { testCase(t, Webhook(run)) })
}

// testCase checks that a case finds that its object is missing, that Update changes it, and that it names
// nothing of others.
func testCase[T resource.ModernManaged](t *testing.T, c Case[T]) {
	t.Helper()
	u, err := url.Parse(simtest.StartAPI(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	tailnet := &tsclient.Client{BaseURL: u, APIKey: simtest.APIKey}
	mg := c.New()
	for _, step := range []string{"New", "Update"} {
		if step == "Update" {
			c.Update(mg)
			if cmp.Equal(c.New(), mg) {
				t.Error("Update changes nothing")
			}
		}
		if err := c.Check(t.Context(), tailnet, mg); err == nil {
			t.Errorf("%s: the empty tailnet has the object", step)
		}
		for _, text := range texts(t, mg) {
			if names.MatchString(text) && !strings.Contains(text, run.Prefix) && !outside.MatchString(text) {
				t.Errorf("%s: the object names %q, which has no prefix", step, text)
			}
		}
	}
	if err := c.Drift(t.Context(), tailnet, mg); err == nil {
		t.Error("Drift changed what does not exist")
	}
}

// texts returns all texts in an object, including the names of fields.
func texts(t *testing.T, o any) []string {
	t.Helper()
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return textsIn(v)
}

func textsIn(v any) []string {
	var out []string
	switch v := v.(type) {
	case string:
		out = append(out, v)
	case []any:
		for _, e := range v {
			out = append(out, textsIn(e)...)
		}
	case map[string]any:
		for k, e := range v {
			out = append(append(out, k), textsIn(e)...)
		}
	}
	return out
}
