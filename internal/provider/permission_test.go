// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

// messages keeps the messages of a log.
type messages struct {
	logging.Logger
	info []string
}

func (m *messages) Info(msg string, _ ...any) { m.info = append(m.info, msg) }

func TestStarter(t *testing.T) {
	type answer struct {
		ok  bool
		err error
	}
	errBoom := errors.New("boom")
	denial, grant, failure := answer{}, answer{ok: true}, answer{err: errBoom}
	type want struct {
		started  bool
		delay    time.Duration
		messages int
		err      error
	}
	cases := map[string]struct {
		reason  string
		answers []answer
		add     error
		want    want
	}{
		"AtOnce": {
			reason:  "With its permissions, the provider adds the controllers at once.",
			answers: []answer{grant},
			want:    want{started: true},
		},
		"Late": {
			reason:  "Permissions that come late are waited for, with one message at the beginning and one at the end.",
			answers: []answer{denial, denial, denial, grant},
			want:    want{started: true, delay: 3 * permissionInterval, messages: 2},
		},
		"Unknown": {
			reason:  "An API server that does not answer grants nothing, and refuses nothing.",
			answers: []answer{failure, failure, grant},
			want:    want{started: true, delay: 2 * permissionInterval, messages: 2},
		},
		"Never": {
			reason:  "Without permissions the provider waits until it is stopped, which is no failure.",
			answers: []answer{denial},
			want:    want{delay: time.Hour, messages: 1},
		},
		"Failure": {
			reason:  "Controllers that cannot be added end the provider.",
			answers: []answer{grant},
			add:     errBoom,
			want:    want{started: true, err: errBoom},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				began, calls, log := time.Now(), 0, &messages{Logger: logging.NewNopLogger()}
				got := want{}
				got.err = starter{
					log: log,
					allowed: func(context.Context) (bool, error) {
						a := tc.answers[min(calls, len(tc.answers)-1)]
						calls++
						return a.ok, a.err
					},
					add: func(context.Context) error {
						got.started = true
						return tc.add
					},
				}.Start(ctx)
				got.delay, got.messages = time.Since(began), len(log.info)
				if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{}), cmpopts.EquateErrors()); diff != "" {
					t.Errorf("\n%s\nStart(...): -want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}
