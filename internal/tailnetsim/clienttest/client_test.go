// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clienttest

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

// A world is a simulated tailnet with a client of it.
type world struct {
	*testing.T

	sim *simtest.Running
	c   *tailscale.Client
	ctx context.Context
}

// ok fails the test on an error.
func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("unexpected error: %v", err)
	}
}

// want fails the test if a method returned something else, or an error.
func (w *world) want(want, got any, err error, opts ...cmp.Option) {
	w.Helper()
	w.ok(err)
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		w.Errorf("-want, +got:\n%s", diff)
	}
}

// gone fails the test unless an error says that something does not exist.
func (w *world) gone(err error) {
	w.Helper()
	if !tailscale.IsNotFound(err) {
		w.Errorf("want not found, got: %v", err)
	}
}

// refused fails the test unless the API answered with a status.
func (w *world) refused(err error, status int) {
	w.Helper()
	var api tailscale.APIError
	if !errors.As(err, &api) || api.Status != status {
		w.Errorf("want status %d, got: %v", status, err)
	}
}

// recent fails the test unless a time is about now.
func (w *world) recent(at time.Time) {
	w.Helper()
	if age := time.Since(at); age < -time.Minute || age > time.Minute {
		w.Errorf("want a time about now, got %v", at)
	}
}

// A driver drives one method, and checks its results and its effects.
type driver func(w *world)

// drivers by resource and method.
var drivers = merged(
	contactDrivers, deviceDrivers, dnsDrivers, keyDrivers, loggingDrivers, policyDrivers,
	postureDrivers, serviceDrivers, settingDrivers, tailnetDrivers, userDrivers, webhookDrivers,
)

// A brokenMethod of the client fails although the API succeeds.
type brokenMethod struct {
	reason string
	source string

	// drive returns the error that the method fails with.
	drive func(w *world) error
	// message is a part of it.
	message string
}

// brokenMethods by resource and method. One that works for other calls has a driver
// too.
var brokenMethods = map[string]brokenMethod{
	"PolicyFile.Validate": {
		reason:  "The API warns of groups that no directory syncs, and takes the policy file all the same. The client makes an error of every reply with a message.",
		source:  "Validate in policyfile.go of the client; the example validateSCIMGroupsNotSynced of the OpenAPI document",
		message: "ACL validation failed: warning(s) found",
		drive: func(w *world) error {
			const unsynced = `{"grants": [{"src": ["group:crew@example.com"], "dst": ["*"], "ip": ["*"]}]}`
			w.ok(w.sim.SetSwitches(func(s *tailnetsim.Switches) { s.UnsyncedGroups = []string{"group:crew@example.com"} }))
			w.ok(w.c.PolicyFile().Set(w.ctx, unsynced, ""))
			return w.c.PolicyFile().Validate(w.ctx, unsynced)
		},
	},
}

func merged(all ...map[string]driver) map[string]driver {
	out := map[string]driver{}
	for _, ds := range all {
		maps.Copy(out, ds)
	}
	return out
}

// methods returns all methods of all resources of the official client, sorted, as
// Resource.Method.
func methods() []string {
	var out []string
	client := reflect.TypeFor[*tailscale.Client]()
	for i := range client.NumMethod() {
		accessor := client.Method(i)
		// An accessor takes nothing but its receiver and returns a resource.
		if accessor.Type.NumIn() != 1 || accessor.Type.NumOut() != 1 {
			continue
		}
		resource := accessor.Type.Out(0)
		for j := range resource.NumMethod() {
			m := resource.Method(j)
			// Resources embed the client.
			if _, ok := client.MethodByName(m.Name); !ok {
				out = append(out, accessor.Name+"."+m.Name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// TestComplete compares the methods of the client with those that are driven.
func TestComplete(t *testing.T) {
	driven := slices.Collect(maps.Keys(drivers))
	for name := range brokenMethods {
		driven = append(driven, name)
	}
	slices.Sort(driven)
	if diff := cmp.Diff(methods(), slices.Compact(driven)); diff != "" {
		t.Errorf("the client's methods and those with a driver differ: -client, +drivers:\n%s", diff)
	}
}

const (
	identityID = "kSimTestIdentityCNTRL"
	issuerURL  = "https://issuer.example.com"
	subject    = "system:serviceaccount:default:test"
	audience   = "api.tailscale.com/" + identityID
)

// A login makes a client authenticate.
type login func(w *world, c *tailscale.Client, issuer *simtest.Issuer)

// logins are all ways that the client has.
var logins = map[string]login{
	"APIKey": func(_ *world, c *tailscale.Client, _ *simtest.Issuer) { c.APIKey = simtest.APIKey },
	"OAuth": func(_ *world, c *tailscale.Client, _ *simtest.Issuer) {
		c.Auth = &tailscale.OAuth{ClientID: simtest.ClientID, ClientSecret: simtest.ClientSecret}
	},
	"IdentityFederation": func(w *world, c *tailscale.Client, issuer *simtest.Issuer) {
		c.Auth = &tailscale.IdentityFederation{ClientID: identityID, IDTokenFunc: func() (string, error) {
			return issuer.Token(w, subject, audience, time.Now().Add(time.Hour)), nil
		}}
	},
}

// newWorld starts a simulator, and logs a client in. The recorder sees its calls.
func newWorld(t *testing.T, auth login, rec *recorder) *world {
	t.Helper()
	issuer := simtest.NewIssuer(t, issuerURL)
	sim := simtest.StartAPI(t, func(o *tailnetsim.Options) {
		o.WorkloadIdentities = []tailnetsim.WorkloadIdentity{{
			ClientID: identityID, Issuer: issuerURL, Audience: audience, Subject: subject, Keys: issuer.Keys(),
			Scopes: o.Clients[0].Scopes, Tags: o.Clients[0].Tags,
		}}
	})
	base, err := url.Parse(sim.URL)
	if err != nil {
		t.Fatalf("cannot parse the simulator's URL: %v", err)
	}
	w := &world{T: t, sim: sim, ctx: t.Context()}
	w.c = &tailscale.Client{BaseURL: base, HTTP: &http.Client{Timeout: simtest.Timeout, Transport: rec}}
	auth(w, w.c, issuer)
	return w
}

// TestMethods drives each method by each way to authenticate.
func TestMethods(t *testing.T) {
	rec := newRecorder(t)
	for way, auth := range logins {
		for name, drive := range drivers {
			t.Run(way+"/"+name, func(t *testing.T) {
				w := newWorld(t, auth, rec)
				drive(w)
				if len(rec.callsOf(w.c.BaseURL.Host)) == 0 {
					t.Error("the driver calls nothing")
				}
			})
		}
	}
	rec.check(t)
}

// TestBrokenMethods has methods fail as they are known to. One that works belongs
// into drivers.
func TestBrokenMethods(t *testing.T) {
	for name, b := range brokenMethods {
		t.Run(name, func(t *testing.T) {
			err := b.drive(newWorld(t, logins["OAuth"], newRecorder(t)))
			if err == nil || !strings.Contains(err.Error(), b.message) {
				t.Errorf("\n%s (%s)\nwant an error with %q, got: %v", b.reason, b.source, b.message, err)
			}
		})
	}
}

// TestRefusedLogins has each way to authenticate fail.
func TestRefusedLogins(t *testing.T) {
	cases := map[string]struct {
		reason string
		login  login
		status int
	}{
		"APIKey": {
			reason: "A key that the tailnet does not have is refused with each call.",
			login:  func(_ *world, c *tailscale.Client, _ *simtest.Issuer) { c.APIKey = "tskey-api-wrong" },
			status: http.StatusUnauthorized,
		},
		"OAuth": {
			reason: "A wrong secret gets no token, which is no error of the API.",
			login: func(_ *world, c *tailscale.Client, _ *simtest.Issuer) {
				c.Auth = &tailscale.OAuth{ClientID: simtest.ClientID, ClientSecret: "tskey-client-wrong"}
			},
		},
		"IdentityFederation": {
			reason: "A token about another workload gets no token of the API.",
			login: func(w *world, c *tailscale.Client, issuer *simtest.Issuer) {
				c.Auth = &tailscale.IdentityFederation{ClientID: identityID, IDTokenFunc: func() (string, error) {
					return issuer.Token(w, "system:serviceaccount:default:other", audience, time.Now().Add(time.Hour)), nil
				}}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.login, newRecorder(t))
			_, err := w.c.Devices().List(w.ctx)
			var api tailscale.APIError
			errors.As(err, &api)
			if err == nil || api.Status != tc.status {
				t.Errorf("\n%s\nList(...): want status %d, got: %v", tc.reason, tc.status, err)
			}
		})
	}
}
