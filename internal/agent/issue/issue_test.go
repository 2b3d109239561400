// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package issue

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/client/local"
	"tailscale.com/ipn"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

// A tailscaled answers for certificates. Its bus is away, so nobody waits for names.
type tailscaled struct {
	mu    sync.Mutex
	fails error
	asked map[string]int
}

func (f *tailscaled) WatchIPNBus(context.Context, ipn.NotifyWatchOpt) (*local.IPNBusWatcher, error) {
	return nil, errors.New("away")
}

func (f *tailscaled) CertDomains(context.Context) ([]string, error) { return nil, nil }

func (f *tailscaled) CertPair(_ context.Context, domain string) ([]byte, []byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked[domain]++
	return nil, nil, f.fails
}

func (f *tailscaled) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails = err
}

func (f *tailscaled) count() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.asked
	f.asked = map[string]int{}
	return out
}

func TestIssuer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		f := &tailscaled{asked: map[string]int{}}
		changes := 0
		i := New(f, func() { changes++ }, logging.NewNopLogger())
		set := func(session int, domains ...string) {
			t.Helper()
			if err := i.Set(ctx, session, domains); err != nil {
				t.Fatalf("Set(...): %v", err)
			}
			synctest.Wait()
		}
		asked := func(reason string, want map[string]int) {
			t.Helper()
			if diff := cmp.Diff(want, f.count()); diff != "" {
				t.Errorf("\n%s\nasked for: -want, +got:\n%s", reason, diff)
			}
		}
		problems := func(reason string, want map[string]string) {
			t.Helper()
			if diff := cmp.Diff(want, i.Problems()); diff != "" {
				t.Errorf("\n%s\nProblems(): -want, +got:\n%s", reason, diff)
			}
		}

		set(1, "b.ts.net", "a.ts.net", "a.ts.net")
		asked("Each name is asked for, once.", map[string]int{"a.ts.net": 1, "b.ts.net": 1})
		set(1, "a.ts.net", "b.ts.net")
		asked("The same names are not asked for again.", map[string]int{})
		<-time.After(25 * time.Hour)
		synctest.Wait()
		asked("After a day they are, so that they are renewed.", map[string]int{"a.ts.net": 1, "b.ts.net": 1})
		set(2, "a.ts.net", "b.ts.net")
		asked("Another tailscaled may not have what the one before had.", map[string]int{"a.ts.net": 1, "b.ts.net": 1})
		problems("Nothing was wrong.", map[string]string{})

		f.set(errors.New("500 Internal Server Error:\n" + strings.Repeat("x", 1000)))
		set(2, "a.ts.net", "c.ts.net")
		asked("A new name is asked for.", map[string]int{"c.ts.net": 1})
		problems("What is wrong is told, in one line and not at length.",
			map[string]string{"c.ts.net": "500 Internal Server Error: " + strings.Repeat("x", maxProblem-27)})
		if changes != 1 {
			t.Errorf("Who uses it must be told once, was told %d times", changes)
		}
		f.set(nil)
		<-time.After(2 * time.Minute)
		synctest.Wait()
		asked("It is tried again soon.", map[string]int{"c.ts.net": 1})
		problems("And is well then.", map[string]string{})

		f.set(errors.New("boom"))
		set(2, "d.ts.net")
		set(2)
		problems("What nobody wants has no problem.", map[string]string{})
	})
}
