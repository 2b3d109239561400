// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// A thing of a tailnet.
type thing struct{ ID, URL string }

func TestLookup(t *testing.T) {
	notFound := func(_ context.Context, id string) (*thing, error) {
		return nil, &tailscale.Error{Class: tailscale.ClassNotFound, Message: id}
	}
	like := func(t thing) bool { return t.URL == "u" }
	cases := map[string]struct {
		reason   string
		name     string
		tried    bool
		recorded string
		all      []thing
		get      func(context.Context, string) (*thing, error)
		match    func(thing) bool
		like     func(thing) bool
		want     *thing
		err      string
	}{
		"Listed":    {reason: "The object is found by its ID.", name: "a", all: []thing{{ID: "b", URL: "u"}, {ID: "a"}}, like: like, want: &thing{ID: "a"}},
		"NotListed": {reason: "The list may be older than the object.", name: "a", get: func(_ context.Context, id string) (*thing, error) { return &thing{ID: id}, nil }, want: &thing{ID: "a"}},
		"Like":      {reason: "Without an ID, an object that Like accepts is found.", all: []thing{{ID: "b", URL: "u"}}, like: like, want: &thing{ID: "b", URL: "u"}},
		"NotLike":   {reason: "An object that Like rejects belongs to somebody else.", all: []thing{{ID: "b"}}, like: like},
		"NoLike":    {reason: "Without an ID and without Like, nothing is found.", all: []thing{{ID: "b", URL: "u"}}},
		"Gone":      {reason: "A recorded object that is gone is made again.", name: "a", recorded: "a", get: notFound},
		"Lost":      {reason: "A create that was started may have made nothing.", name: "a", tried: true, get: notFound},
		"Missing":   {reason: "No object has the ID that a user set as external name.", name: "a", get: notFound, err: `there is no thing with the id "a"`},
		"OtherKind": {reason: "The object with the user's external name has another type.", name: "a", all: []thing{{ID: "a"}}, match: func(thing) bool { return false }, err: `there is no thing with the id "a"`},
		"ErrGet":    {reason: "A failed request does not show that an object is gone.", name: "a", get: func(context.Context, string) (*thing, error) { return nil, errors.New("boom") }, err: `cannot get thing "a": boom`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mg := object("hook", 0)
			xpmeta.SetExternalName(mg, tc.name)
			if tc.tried {
				xpmeta.SetExternalCreatePending(mg, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			}
			l := Lookup[thing]{Singular: "thing", List: func(context.Context, tailscale.Staleness) ([]thing, error) { return tc.all, nil }, ID: func(t thing) string { return t.ID }, Get: tc.get, Match: tc.match, Like: tc.like, Recorded: tc.recorded}
			got, err := l.Find(t.Context(), mg, tailscale.Cached)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("\n%s\nFind(...): want error %q, got %v", tc.reason, tc.err, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nFind(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
