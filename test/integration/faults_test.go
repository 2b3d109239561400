// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
)

// forever is a number of faults that no case exhausts.
const forever = 1 << 20

// A failure is a way for an API call to fail.
type failure struct {
	reason string
	fault  tailnetsim.Fault

	// message returns the text of the condition that ends the failure. Nil ends it after the fault's
	// count.
	message func(k anyCase, call string) string

	// applies reports whether a call can fail this way. Nil means all.
	applies func(k anyCase, call string) bool
}

// failures returns the failures by name.
func failures() map[string]failure {
	scopes := tailnetsim.Scopes()
	scope := func(k anyCase, call string) string {
		if s, ok := scopes[call]; !ok || s != "" {
			return s
		}
		return k.Scope
	}
	return map[string]failure{
		"ServerError":   {reason: "More 500s than the retries of one call", fault: tailnetsim.Fault{Status: http.StatusInternalServerError, Count: 5}},
		"HTML":          {reason: "A proxy in front of the API returns HTML", fault: tailnetsim.Fault{Status: http.StatusServiceUnavailable, HTML: true, Count: 2}},
		"RateLimited":   {reason: "The API limits the rate", fault: tailnetsim.Fault{Status: http.StatusTooManyRequests, RetryAfter: 1, Count: 2}},
		"Unauthorized":  {reason: "A token was revoked before its expiry", fault: tailnetsim.Fault{Status: http.StatusUnauthorized, Count: 1}},
		"LostReply":     {reason: "The API completed the call and the response was lost", fault: tailnetsim.Fault{LatencyMS: 200, DropReply: true, Count: 1}},
		"EmptyReply":    {reason: "The API completed the call and the response was empty", fault: tailnetsim.Fault{NoBody: true, Count: 1}},
		"NoSuchTailnet": {reason: "A call on a whole tailnet returns 404, which does not mean that an object is gone", fault: tailnetsim.Fault{Status: http.StatusNotFound, Count: 2}, applies: wholeTailnet},
		"Forbidden": {
			reason:  "A scope is missing until a condition names it",
			fault:   tailnetsim.Fault{Status: http.StatusForbidden, Count: forever},
			applies: func(k anyCase, call string) bool { return scope(k, call) != "" },
			message: scope,
		},
	}
}

// wholeTailnet reports whether a call reads a tailnet's list or settings instead of one object.
func wholeTailnet(_ anyCase, call string) bool {
	path, get := strings.CutPrefix(call, "GET /api/v2/tailnet/{tailnet}/")
	return get && !strings.Contains(path, "{")
}

// variable matches the parameters of a path template.
var variable = regexp.MustCompile(`\\\{[a-zA-Z_]+\\\}`)

// spoil returns the fault for one call, as env.sim.Calls() names it.
func (f failure) spoil(call string) tailnetsim.Fault {
	method, path, _ := strings.Cut(call, " ")
	out := f.fault
	out.Method = method
	out.Path = "^" + variable.ReplaceAllString(regexp.QuoteMeta(path), "[^/]+") + "$"
	return out
}

// TestFaults runs the life of an object of every kind while one of its API calls fails. The object
// must recover without help, create nothing twice, and change no objects of other owners.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, k := range kindCases() {
		t.Run(k.Kind, func(t *testing.T) {
			t.Parallel()
			calls := cleanCalls(t, k)
			for _, call := range calls {
				for name, f := range failures() {
					if f.applies != nil && !f.applies(k, call) {
						continue
					}
					t.Run(name+"/"+short(call), func(t *testing.T) {
						t.Parallel()
						t.Log(f.reason)
						testFault(t, k, call, f)
					})
				}
			}
		})
	}
}

// cleanCalls returns the API calls of a life without faults.
func cleanCalls(t *testing.T, k anyCase) []string {
	t.Helper()
	l := begin(newEnv(t), k)
	l.sim.ResetCalls()
	l.spoilt(nil)
	return slices.Sorted(maps.Keys(l.sim.Calls()))
}

// short returns a call as the name of a test.
func short(call string) string {
	return strings.NewReplacer("/api/v2/", "", "tailnet/{tailnet}/", "", " ", "_", "/", "_", "{", "", "}", "").Replace(call)
}

// optional reports whether an object works without the scope of a call. All kinds request devices and
// tailnets to learn which tailnet the credential leads to. These need the devices for themselves.
func optional(k anyCase, call string) bool {
	needsDevices := slices.Contains([]string{v1alpha1.DeviceKind, v1alpha1.DiscoveryKind, v1alpha1.MachineKind, v1alpha1.TailnetKind, v1alpha1.VIPServiceKind}, k.Kind)
	switch call {
	case "GET /api/v2/organizations/{organization}/tailnets":
		return true
	case "GET /api/v2/tailnet/{tailnet}/devices":
		return !needsDevices || k.Optional[call] != ""
	}
	return k.Optional[call] != ""
}

func testFault(t *testing.T, k anyCase, call string, f failure) {
	l := begin(newEnv(t), k)
	fault := f.spoil(call)
	l.must(l.sim.SetFaults(fault))
	var called bool
	stuck := func() error {
		remaining := l.sim.Faults()
		called = called || len(remaining) == 0 || remaining[0].Count < fault.Count
		if f.message == nil || optional(k, call) {
			return errors.New("the failure ends after its count")
		}
		if err := hasMessage(l.mg, f.message(k, call)); err != nil {
			return err
		}
		return l.sim.SetFaults()
	}
	l.spoilt(stuck)
	if !called {
		t.Logf("%s was not called this time", call)
		return
	}
	if f.message != nil && !optional(k, call) && len(l.sim.Faults()) > 0 {
		t.Errorf("%s was refused and no condition named the scope %q", call, f.message(k, call))
	}
}

// spoilt runs a life from create to delete, while calls may fail. It calls whenStuck while the
// state is not the desired one; whenStuck may end the failure.
func (l *life) spoilt(whenStuck func() error) {
	l.Helper()
	wait := func(description string, ok func() error) {
		l.Helper()
		l.eventually(description, func() error {
			err := ok()
			if whenStuck == nil {
				return err
			}
			if stuck := whenStuck(); err != nil {
				return errors.Wrapf(err, "%v, and", stuck)
			}
			return nil
		})
	}
	l.create(l.mg)
	wait("create", l.unsettled)
	l.single("create")
	if l.kind.Skip[stepUpdate] == "" {
		l.change(l.mg, func() { l.kind.Update(l.env, l.mg) })
		wait("update", l.unsettled)
		l.single("update")
	}
	l.must(shared.kube.Delete(l.Context(), l.mg))
	wait("the object is gone", func() error {
		// The object's conditions show why it still exists.
		_ = l.refresh(l.mg)
		return l.present()
	})
	l.gone()
}
