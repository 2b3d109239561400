// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clienttest

import (
	"net/http"
	"strings"

	"tailscale.com/client/tailscale/v2"
)

// twoTags is a policy file with comments and one more tag than the simulator's own.
const twoTags = `{
	// Both tags are owned by that of the credential.
	"tagOwners": {
		"tag:k8s-operator": [],
		"tag:k8s":          ["tag:k8s-operator"],
		"tag:web":          ["tag:k8s-operator"],
	},
	"grants": [{"src": ["tag:web"], "dst": ["tag:k8s"], "ip": ["tcp:443"]}],
	"autoApprovers": {"services": {"tag:k8s": ["tag:k8s"]}},
	"tests": [{"src": "tag:web", "accept": ["tag:k8s:443"]}],
}
`

// wantTwoTags is twoTags as the client decodes it.
func wantTwoTags() tailscale.ACL {
	return tailscale.ACL{
		TagOwners:     map[string][]string{"tag:k8s-operator": {}, "tag:k8s": {"tag:k8s-operator"}, "tag:web": {"tag:k8s-operator"}},
		Grants:        []tailscale.Grant{{Source: []string{"tag:web"}, Destination: []string{"tag:k8s"}, IP: []string{"tcp:443"}}},
		AutoApprovers: &tailscale.ACLAutoApprovers{Services: map[string][]string{"tag:k8s": {"tag:k8s"}}},
		Tests:         []tailscale.ACLTest{{Source: "tag:web", Accept: []string{"tag:k8s:443"}}},
	}
}

// raw returns the stored policy file.
func (w *world) raw() *tailscale.RawACL {
	w.Helper()
	r, err := w.c.PolicyFile().Raw(w.ctx)
	w.ok(err)
	if r.ETag == "" {
		w.Error("the policy file has no ETag")
	}
	return r
}

var policyDrivers = map[string]driver{
	"PolicyFile.Raw": func(w *world) {
		original := w.raw()
		w.ok(w.c.PolicyFile().Set(w.ctx, twoTags, ""))
		updated := w.raw()
		w.want(twoTags, updated.HuJSON, nil)
		if original.ETag == updated.ETag {
			w.Error("the ETag of a changed policy file is the old one")
		}
	},
	"PolicyFile.Get": func(w *world) {
		w.ok(w.c.PolicyFile().Set(w.ctx, twoTags, ""))
		want := wantTwoTags()
		want.ETag = w.raw().ETag
		got, err := w.c.PolicyFile().Get(w.ctx)
		w.want(&want, got, err)
	},
	"PolicyFile.Set": func(w *world) {
		old := w.raw().ETag
		w.ok(w.c.PolicyFile().Set(w.ctx, twoTags, old))
		w.want(twoTags, w.raw().HuJSON, nil)
		w.refused(w.c.PolicyFile().Set(w.ctx, twoTags, old), http.StatusPreconditionFailed)
		acl := wantTwoTags()
		acl.Hosts = map[string]string{"db": "100.80.0.1"}
		w.ok(w.c.PolicyFile().Set(w.ctx, acl, w.raw().ETag))
		got, err := w.c.PolicyFile().Get(w.ctx)
		w.ok(err)
		w.want(acl.Hosts, got.Hosts, nil)
	},
	"PolicyFile.SetAndGet": func(w *world) {
		acl := wantTwoTags()
		got, err := w.c.PolicyFile().SetAndGet(w.ctx, acl, w.raw().ETag)
		w.ok(err)
		acl.ETag = w.raw().ETag
		w.want(&acl, got, nil)
		_, err = w.c.PolicyFile().SetAndGet(w.ctx, acl, "stale")
		w.refused(err, http.StatusPreconditionFailed)
	},
	"PolicyFile.Validate": func(w *world) {
		w.ok(w.c.PolicyFile().Set(w.ctx, twoTags, ""))
		failing := wantTwoTags()
		failing.Tests[0].Accept = []string{"tag:k8s:80"}
		for _, c := range []struct {
			acl  any
			want string
		}{
			{acl: twoTags},
			{acl: wantTwoTags()},
			{acl: wantTwoTags().Tests},
			{acl: failing, want: "test(s) failed"},
			{acl: failing.Tests, want: "test(s) failed"},
			{acl: "{", want: "ACL validation failed"},
		} {
			err := w.c.PolicyFile().Validate(w.ctx, c.acl)
			if c.want == "" {
				w.ok(err)
				continue
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				w.Errorf("Validate(%v): want %q, got: %v", c.acl, c.want, err)
			}
		}
		w.want(twoTags, w.raw().HuJSON, nil)
	},
}
