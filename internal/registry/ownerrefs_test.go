// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOwnerRefs(t *testing.T) {
	type want struct {
		included, excluded string
		others             int
		exclusive          bool
	}
	cases := map[string]struct {
		reason string
		value  string
		want   want
		err    bool
	}{
		"None": {
			reason: "An empty value has no owners.",
			want:   want{included: `{"ownerRefs":[{"operatorID":"me"}]}`, excluded: `{"ownerRefs":[]}`},
		},
		"KeptToTheByte": {
			reason: "Fields, order, whitespace and escapes of other writers are kept.",
			value:  `{"ownerRefs":[{ "operatorID":"n<1>", "more":[1, 2] },{"operatorID":"me"}],"also": { "a":1 }}`,
			want: want{
				included: `{"also":{ "a":1 },"ownerRefs":[{ "operatorID":"n<1>", "more":[1, 2] },{"operatorID":"me"},{"operatorID":"me"}]}`,
				excluded: `{"also":{ "a":1 },"ownerRefs":[{ "operatorID":"n<1>", "more":[1, 2] }]}`,
				others:   1,
			},
		},
		"Exclusive": {
			reason: "A resource in the first reference means that the service is not shared.",
			value:  `{"ownerRefs":[{"operatorID":"n1","resource":{"kind":"ProxyGroup"}}]}`,
			want: want{
				included: `{"ownerRefs":[{"operatorID":"n1","resource":{"kind":"ProxyGroup"}},{"operatorID":"me"}]}`,
				excluded: `{"ownerRefs":[{"operatorID":"n1","resource":{"kind":"ProxyGroup"}}]}`,
				others:   1, exclusive: true,
			},
		},
		"UnknownShape": {
			reason: "A reference with an unknown structure belongs to another owner.",
			value:  `{"ownerRefs":["x"]}`,
			want:   want{included: `{"ownerRefs":["x",{"operatorID":"me"}]}`, excluded: `{"ownerRefs":["x"]}`, others: 1},
		},
		"NoObject": {reason: "A value that is not an object is an error.", value: `[]`, err: true},
		"NoList":   {reason: "A field that is not a list is an error.", value: `{"ownerRefs":1}`, err: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o, err := ParseOwnerRefs(tc.value)
			if (err != nil) != tc.err {
				t.Fatalf("\n%s\nParseOwnerRefs(...): want error %t, got %v", tc.reason, tc.err, err)
			}
			if tc.err {
				return
			}
			included, err := o.with("me")
			if err != nil {
				t.Fatal(err)
			}
			excluded, err := o.without("me")
			if err != nil {
				t.Fatal(err)
			}
			got := want{included: included, excluded: excluded, others: o.Others("me"), exclusive: o.Exclusive()}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
