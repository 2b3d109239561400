// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	tsclient "tailscale.com/client/tailscale/v2"
)

// TestRefusedTags checks that an error about tags says what to add to the policy file.
func TestRefusedTags(t *testing.T) {
	const owner = "; a tag of the credential must own each of these: for a credential with tag:k8s-operator, the policy file needs "
	cases := map[string]struct {
		reason  string
		status  int
		message string
		want    string
	}{
		"One": {
			reason:  "The tag should be in the advice.",
			message: "requested tags [tag:web] are invalid or not permitted",
			want:    `Tailscale's API answered 400: requested tags [tag:web] are invalid or not permitted` + owner + `"tagOwners": {"tag:web": ["tag:k8s-operator"]}`,
		},
		"Several": {
			reason:  "All tags should be in the advice, in an order that does not change.",
			message: "requested tags [tag:web tag:db tag:web] are invalid or not permitted",
			want:    `Tailscale's API answered 400: requested tags [tag:web tag:db tag:web] are invalid or not permitted` + owner + `"tagOwners": {"tag:db": ["tag:k8s-operator"], "tag:web": ["tag:k8s-operator"]}`,
		},
		"Many": {
			reason:  "An advice has a limited length.",
			message: "requested tags [tag:d, tag:c, tag:b, tag:a] are invalid or not permitted",
			want:    `Tailscale's API answered 400: requested tags [tag:d, tag:c, tag:b, tag:a] are invalid or not permitted` + owner + `"tagOwners": {"tag:a": ["tag:k8s-operator"], "tag:b": ["tag:k8s-operator"], "tag:c": ["tag:k8s-operator"]}`,
		},
		"Wrapped": {
			reason:  "Other text of the message should stay.",
			message: "cannot create key: requested tags [tag:web] are invalid or not permitted.",
			want:    `Tailscale's API answered 400: cannot create key: requested tags [tag:web] are invalid or not permitted` + owner + `"tagOwners": {"tag:web": ["tag:k8s-operator"]}`,
		},
		"Hostile": {
			reason:  "Only tags should be in an advice.",
			message: "requested tags [tag:\x1b[31mweb \"tag:] are invalid or not permitted",
			want:    `Tailscale's API answered 400: requested tags [tag: [31mweb "tag:] are invalid or not permitted`,
		},
		"OtherTags": {
			reason:  "Another error about tags has another cause.",
			message: "tags must begin with tag:",
			want:    "Tailscale's API answered 400: tags must begin with tag:",
		},
		"OtherStatus": {
			reason:  "Where the credential lacks a scope, the advice is another one.",
			status:  http.StatusForbidden,
			message: "calling actor does not have enough permissions",
			want:    `the credential is not allowed to do this, it needs the OAuth scope "auth_keys" and must own the tags in use: calling actor does not have enough permissions`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := tc.status
			if status == 0 {
				status = http.StatusBadRequest
			}
			err := classify(tsclient.APIError{Message: tc.message, Status: status}, "auth_keys", false)
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("\n%s\nError(): -want, +got:\n%s", tc.reason, diff)
			}
			if strings.Contains(err.Error(), "\x1b") {
				t.Errorf("\n%s\nError(): %q has a control character", tc.reason, err.Error())
			}
		})
	}
}
