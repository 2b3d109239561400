// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

var errBoom = errors.New("boom")

func TestProgress(t *testing.T) {
	at := time.Unix(100, 0)
	p := &progress{clock: func() time.Time { at = at.Add(time.Second); return at }}
	if err := p.run("good", func(say func(string)) error {
		say("waiting")
		if got := p.list()[0]; got.State != StateRunning || got.Detail != "waiting" {
			t.Errorf("list(): a running step should show what it waits for, got %+v", got)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := p.run("bad", func(func(string)) error { return errBoom }); !errors.Is(err, errBoom) {
		t.Errorf("run(...): want the step's error, got %v", err)
	}
	want := []Step{
		{Name: "good", State: StateDone, Took: time.Second},
		{Name: "bad", State: StateFailed, Detail: "boom", Took: time.Second},
	}
	if diff := cmp.Diff(want, p.list(), cmpopts.IgnoreFields(Step{}, "Started")); diff != "" {
		t.Errorf("list(): -want, +got:\n%s", diff)
	}
}

func TestUntil(t *testing.T) {
	calls := 0
	var messages []string
	err := until(t.Context(), time.Minute, func(s string) { messages = append(messages, s) }, func(context.Context) error {
		calls++
		if calls < 3 {
			return errBoom
		}
		return nil
	})
	if err != nil || calls != 3 || len(messages) != 2 {
		t.Errorf("until(...): got %v after %d calls, reported %q", err, calls, messages)
	}
	err = until(t.Context(), time.Millisecond, func(string) {}, func(context.Context) error { return errBoom })
	if err == nil || !errors.Is(err, errBoom) || !strings.Contains(err.Error(), "gave up") {
		t.Errorf("until(...): want the last error after the limit, got %v", err)
	}
}
