// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package errors

import (
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	xperrors "github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// TestLikeCrossplane checks that errors have the texts of crossplane-runtime's, and are found in the
// same way.
func TestLikeCrossplane(t *testing.T) {
	boom, missing := New("boom"), &fs.PathError{Op: "open", Path: "/file", Err: fs.ErrNotExist}
	cases := map[string]struct {
		reason    string
		got, want error
	}{
		"WrapNil": {
			reason: "The result of a step that succeeded must be no error.",
			got:    Wrap(nil, "cannot step"),
			want:   xperrors.Wrap(nil, "cannot step"),
		},
		"WrapfNil": {
			reason: "The same is true for a formatted message.",
			got:    Wrapf(nil, "cannot step %d", 1),
			want:   xperrors.Wrapf(nil, "cannot step %d", 1),
		},
		"Wrap": {
			reason: "The message must come before that of the cause, and the cause must be found.",
			got:    Wrap(missing, "cannot read"),
			want:   xperrors.Wrap(missing, "cannot read"),
		},
		"Wrapf": {
			reason: "A message that contains a verb after its formatting must stay as it is.",
			got:    Wrapf(missing, "cannot read %q", "100%d"),
			want:   xperrors.Wrapf(missing, "cannot read %q", "100%d"),
		},
		"Errorf": {
			reason: "An error that is formatted must wrap its operand.",
			got:    Errorf("two: %w", missing),
			want:   xperrors.Errorf("two: %w", missing),
		},
		"JoinNothing": {
			reason: "Without an error the result must be none.",
			got:    Join(nil, nil),
			want:   nil,
		},
		"Join": {
			reason: "Each of several errors must be in the text once, and be found.",
			got:    Join(boom, nil, Wrap(missing, "cannot read"), boom),
			want:   xperrors.Join(boom, nil, xperrors.Wrap(missing, "cannot read"), boom),
		},
	}
	type seen struct {
		Nil           bool
		Text, Path    string
		Boom, Missing bool
	}
	see := func(err error) seen {
		if err == nil {
			return seen{Nil: true}
		}
		s := seen{Text: err.Error(), Boom: Is(err, boom), Missing: Is(err, fs.ErrNotExist)}
		var pe *fs.PathError
		if As(err, &pe) {
			s.Path = pe.Path
		}
		return s
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(see(tc.want), see(tc.got)); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
