// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"tailscale.com/ipn"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
)

func TestRecoverState(t *testing.T) {
	withKey, keyless := []byte(`{"Version":"alpha0","AuthKey":"tskey-auth-1"}`), []byte(`{"Version":"alpha0"}`)
	whole := &corev1.Secret{Data: wholeState()}
	partial := &corev1.Secret{Data: wholeState()}
	delete(partial.Data, string(ipn.MachineKeyStateKey))
	cases := map[string]struct {
		reason  string
		state   *corev1.Secret
		unseen  bool
		base    []byte
		tail    localapi.State
		drain   *drain
		elapsed time.Duration
		want    int
	}{
		"Lost": {
			reason: "A node whose state is gone must join again once it has a key.",
			state:  &corev1.Secret{}, base: withKey, tail: localapi.State{Running: true}, elapsed: 30 * time.Second, want: 1,
		},
		"Deleted": {
			reason: "A deleted Secret counts as a lost state.",
			base:   withKey, tail: localapi.State{Running: true}, elapsed: 30 * time.Second, want: 1,
		},
		"Patience": {
			reason: "A node that has just logged in may take a moment to write its state.",
			state:  &corev1.Secret{}, base: withKey, tail: localapi.State{Running: true}, elapsed: 29 * time.Second,
		},
		"Whole": {
			reason: "A node with a state must be left alone.",
			state:  whole, base: withKey, tail: localapi.State{Running: true}, elapsed: time.Hour,
		},
		"Partial": {
			reason: "A node that would start without its machine's key must join again too.",
			state:  partial, base: withKey, tail: localapi.State{Running: true}, elapsed: 30 * time.Second, want: 1,
		},
		"NoKey": {
			reason: "Without a key the node stays, because it could not join again: the provider may be unavailable.",
			state:  &corev1.Secret{}, base: keyless, tail: localapi.State{Running: true}, elapsed: time.Hour,
		},
		"NotRunning": {
			reason: "A node that is logging in has no state yet.",
			state:  &corev1.Secret{}, base: withKey, elapsed: time.Hour,
		},
		"Draining": {
			reason: "A pod that is being stopped need not join again.",
			state:  &corev1.Secret{}, base: withKey, tail: localapi.State{Running: true}, drain: &drain{}, elapsed: time.Hour,
		},
		"Unseen": {
			reason: "While the API server is unavailable, the state is unknown.",
			unseen: true, base: withKey, tail: localapi.State{Running: true}, elapsed: time.Hour,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			at := time.Unix(1000, 0)
			l, _ := newLoop(t, t.TempDir())
			got := 0
			l.recovery.logout = func() { got++ }
			l.recovery.patience = 30 * time.Second
			l.base, l.tailnet, l.drains.current = tc.base, tc.tail, tc.drain
			if !tc.unseen {
				l.setState(tc.state)
			}
			l.recovery.step(t.Context(), at, l.facts(at, nil))
			l.recovery.step(t.Context(), at.Add(tc.elapsed), l.facts(at, nil))
			if got != tc.want {
				t.Errorf("\n%s\nstep(...): logged out %d times, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

// wholeState returns the complete state that tailscaled keeps.
func wholeState() map[string][]byte {
	return map[string][]byte{
		string(ipn.MachineKeyStateKey): []byte("k"), string(ipn.KnownProfilesStateKey): []byte("{}"),
		string(ipn.CurrentProfileStateKey): []byte("profile-1"), "profile-1": []byte("{}"),
	}
}

func TestLostState(t *testing.T) {
	t.Parallel()
	state := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "set-0"},
		Data:       wholeState(),
	}
	p := newPod(t, machine(), secret(), state)
	p.statePatience = 50 * time.Millisecond
	p.start()
	p.local.Set(ipn.Running)
	eventually(t, "The agent must write its files.", [2]string{configNone, serveNone}, p.files)
	if got := p.local.State(); got != ipn.Running {
		t.Errorf("A node with a state must stay in the tailnet, it is %s", got)
	}

	state.Data = nil
	if err := p.kube.Update(t.Context(), state); err != nil {
		t.Fatalf("Update(...): %v", err)
	}
	eventually(t, "A node whose state is lost must be logged out.", ipn.NeedsLogin, p.local.State)
}
