// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

var testTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func machine(change ...func(*v1alpha1.Machine)) *v1alpha1.Machine {
	m := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "edge-ingress-0", UID: "uid", CreationTimestamp: metav1.NewTime(testTime)},
		Spec: v1alpha1.MachineSpec{ForProvider: v1alpha1.MachineParameters{
			Hostname: "default-edge-ingress-0", Tags: []v1alpha1.Tag{"tag:k8s"},
		}},
	}
	for _, f := range change {
		f(m)
	}
	return m
}

func config(t *testing.T, key string) *corev1.Secret {
	t.Helper()
	b, err := nodeConfig(machine(), "", key)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{Data: map[string][]byte{meta.ConfigKey: b}}
}

func state(kv ...string) *corev1.Secret {
	s := &corev1.Secret{Data: map[string][]byte{}}
	for i := 0; i < len(kv); i += 2 {
		s.Data[kv[i]] = []byte(kv[i+1])
	}
	return s
}

func issuedAgo(d time.Duration) record { return record{Key: keyRecord{Issued: testTime.Add(-d)}} }

func TestMakePlan(t *testing.T) {
	device := &tailscale.Device{NodeID: "n1", Tags: []string{"tag:k8s"}, Authorized: true}
	unauthorized := &tailscale.Device{NodeID: "n1", Tags: []string{"tag:k8s"}}
	expired := &tailscale.Device{NodeID: "n1", Tags: []string{"tag:k8s"}, Authorized: true, Expires: tsclient.Time{Time: testTime.Add(-time.Minute)}}
	whole := func(kv ...string) *corev1.Secret {
		return state(append(kv, "device_id", "n1", "_machinekey", "k", "_profiles", "{}", "_current-profile", "profile-1", "profile-1", `{"Config":{"NodeID":"n1"}}`)...)
	}
	failed := func(r loginRecord) record { return record{Login: r} }
	login := loginRecord{FirstRequest: testTime, LastRequest: testTime}
	retired := issuedAgo(time.Minute)
	retired.Retired = "n1"
	cases := map[string]struct {
		reason   string
		mod      func(*v1alpha1.Machine)
		recorded string
		strange  string
		state    *corev1.Secret
		config   *corev1.Secret
		record   record
		device   *tailscale.Device
		tags     []string
		other    bool
		silent   bool
		want     plan
		key      string // The wanted key in the config.
	}{
		"New": {
			reason: "A machine without key and device gets a key.",
			state:  state(),
			config: &corev1.Secret{},
			want:   plan{issueKey: true},
		},
		"IssuedInFuture": {
			reason: "A time in the future comes from another clock, and does not make a machine wait.",
			state:  state(),
			config: &corev1.Secret{},
			record: issuedAgo(-24 * time.Hour),
			want:   plan{issueKey: true},
		},
		"Joined": {
			reason: "The machine's device is recorded.",
			state:  state("device_id", "n1"),
			config: config(t, "k1"),
			record: issuedAgo(time.Minute),
			device: device,
			want:   plan{nodeID: "n1", adopt: true, writeConfig: true},
		},
		"Strange": {
			reason:   "Another device is neither recorded nor tagged, and replaces no device.",
			recorded: "n0",
			strange:  "it is another's",
			state:    state("device_id", "n1"),
			config:   config(t, ""),
			record:   issuedAgo(time.Minute),
			device:   device,
			tags:     []string{"tag:other"},
			want:     plan{refused: "it is another's"},
		},
		"StrangeAsked": {
			reason:   "When a node requests a key, its recorded device is deleted, and not the device that it names.",
			recorded: "n0",
			strange:  "it is another's",
			state:    state("device_id", "n1", "reissue_authkey", ""),
			config:   config(t, ""),
			record:   issuedAgo(time.Minute),
			device:   device,
			want:     plan{refused: "it is another's", keyRequested: true, issueKey: true, retire: "n0"},
		},
		"StrangePath": {
			reason:   "An invalid node ID is ignored.",
			recorded: "n0",
			state:    state("device_id", "../keys/k1", "reissue_authkey", ""),
			config:   config(t, ""),
			record:   issuedAgo(time.Minute),
			want:     plan{keyRequested: true, issueKey: true, retire: "n0"},
		},
		"WaitsForNode": {
			reason: "A key that waits is kept.",
			state:  state(),
			config: config(t, "k1"),
			record: issuedAgo(keyExpiry / 2),
			key:    "k1",
		},
		"KeyExpires": {
			reason: "A key that is about to expire is replaced.",
			state:  state(),
			config: config(t, "k1"),
			record: issuedAgo(keyExpiry),
			want:   plan{issueKey: true},
		},
		"LoggedIn": {
			reason:   "A used key leaves the config.",
			recorded: "n1",
			state:    state("device_id", "n1"),
			config:   config(t, "k1"),
			record:   issuedAgo(time.Minute),
			device:   device,
			want:     plan{nodeID: "n1", writeConfig: true},
		},
		"AtRest": {
			reason:   "A logged-in node needs no step.",
			recorded: "n1",
			state:    state("device_id", "n1"),
			config:   config(t, ""),
			record:   issuedAgo(time.Minute),
			device:   device,
			want:     plan{nodeID: "n1"},
		},
		"AcceptRoutesChanged": {
			reason:   "A changed config is written without a new key.",
			mod:      func(m *v1alpha1.Machine) { m.Spec.ForProvider.AcceptRoutes = true },
			recorded: "n1",
			state:    state("device_id", "n1"),
			config:   config(t, ""),
			record:   issuedAgo(time.Minute),
			device:   device,
			want:     plan{nodeID: "n1", writeConfig: true},
		},
		"AcceptRoutesChangedBeforeLogin": {
			reason: "A key that waits stays in the config that is written.",
			mod:    func(m *v1alpha1.Machine) { m.Spec.ForProvider.AcceptRoutes = true },
			state:  state(),
			config: config(t, "k1"),
			record: issuedAgo(keyExpiry / 2),
			want:   plan{writeConfig: true},
			key:    "k1",
		},
		"SilentGone": {
			reason:   "A node whose version does not ask for keys gets one when its device is gone.",
			recorded: "n1", silent: true,
			state: whole(), config: config(t, ""), record: issuedAgo(time.Hour),
			want: plan{nodeID: "n1", keyRequested: true, issueKey: true, retire: "n1"},
		},
		"SilentExpired": {
			reason:   "So does one whose device has expired.",
			recorded: "n1", silent: true,
			state: whole(), config: config(t, ""), record: issuedAgo(time.Hour), device: expired,
			want: plan{nodeID: "n1", keyRequested: true, issueKey: true, retire: "n1"},
		},
		"SilentKey": {
			reason:   "One that has a key waits for its next start.",
			recorded: "n1", silent: true,
			state: whole(), config: config(t, "k1"), record: retired,
			want: plan{nodeID: "n1"}, key: "k1",
		},
		"SilentKeyExpires": {
			reason:   "A key that it has not used is replaced before it expires.",
			recorded: "n1", silent: true,
			state: whole(), config: config(t, "k1"), record: issuedAgo(keyExpiry),
			want: plan{nodeID: "n1", keyRequested: true, issueKey: true, retire: "n1"},
		},
		"SilentUnauthorized": {
			reason:   "An admin decides about a device that is not authorized.",
			recorded: "n1", silent: true,
			state: whole(), config: config(t, ""), record: issuedAgo(time.Hour), device: unauthorized,
			want: plan{nodeID: "n1"},
		},
		"SilentStrange": {
			reason:   "A device of another machine says nothing about this one.",
			recorded: "n0", silent: true, strange: "it is another's",
			state: whole(), config: config(t, ""), record: issuedAgo(time.Hour), device: device,
			want: plan{refused: "it is another's"},
		},
		"SilentJoins": {
			reason: "A node that has not joined keeps its key.", silent: true,
			state: state(), config: config(t, "k1"), record: issuedAgo(time.Minute), key: "k1",
		},
		"NodeIDFromProfile": {
			reason:   "tailscaled writes its node ID down before containerboot does.",
			recorded: "n1",
			state:    state("_machinekey", "k", "_profiles", "{}", "_current-profile", "profile-1", "profile-1", `{"Config":{"NodeID":"n1"}}`),
			config:   config(t, ""),
			record:   issuedAgo(time.Minute),
			device:   device,
			want:     plan{nodeID: "n1"},
		},
		"PartialState": {
			reason:   "A node that lacks a part of its identity needs a key: it would start as another one, or as none.",
			recorded: "n1",
			state:    state("device_id", "n1", "_profiles", "{}", "_current-profile", "profile-1", "profile-1", `{"Config":{"NodeID":"n1"}}`),
			config:   config(t, ""),
			record:   issuedAgo(time.Hour),
			device:   device,
			want:     plan{issueKey: true},
		},
		"PartialStateWithKey": {
			reason:   "A joining node has such a state briefly, and keeps its key.",
			recorded: "n1",
			state:    state("device_id", "n1", "_machinekey", "k"),
			config:   config(t, "k1"),
			record:   issuedAgo(time.Minute),
			device:   device,
			key:      "k1",
		},
		"WrongTags": {
			reason:   "A device gets the tags that are wanted now.",
			recorded: "n1",
			state:    state("device_id", "n1"),
			config:   config(t, ""),
			record:   issuedAgo(time.Minute),
			device:   device,
			tags:     []string{"tag:k8s", "tag:more"},
			want:     plan{nodeID: "n1", setTags: true},
		},
		"DeviceDeleted": {
			reason: "A node whose device was deleted requests a key by itself.",
			state:  state("device_id", "n1"),
			config: config(t, ""),
			record: issuedAgo(time.Minute),
			want:   plan{nodeID: "n1"},
		},
		"AskedWithWholeState": {
			reason:   "A node that could not log in for a moment keeps its device, and gets no key: its request is withdrawn.",
			recorded: "n1",
			state:    whole("reissue_authkey", ""),
			config:   config(t, ""),
			record:   issuedAgo(time.Hour),
			device:   device,
			want:     plan{nodeID: "n1", login: &login, failing: true, withdraw: true},
		},
		"AskedWithUsedKey": {
			reason:   "The key that a node has used does not help it, and leaves the config.",
			recorded: "n1",
			state:    whole("reissue_authkey", "k1"),
			config:   config(t, "k1"),
			record:   issuedAgo(time.Hour),
			device:   device,
			want:     plan{nodeID: "n1", login: &login, failing: true, withdraw: true, writeConfig: true},
		},
		"AskedAndExpired": {
			reason:   "A node whose key has expired gets a key at once.",
			recorded: "n1",
			state:    whole("reissue_authkey", ""),
			config:   config(t, ""),
			record:   issuedAgo(time.Hour),
			device:   expired,
			want:     plan{nodeID: "n1", keyRequested: true, issueKey: true, retire: "n1"},
		},
		"AskedAndNotAuthorized": {
			reason:   "A node whose device is not authorized gets a key at once.",
			recorded: "n1",
			state:    whole("reissue_authkey", ""),
			config:   config(t, ""),
			record:   issuedAgo(time.Hour),
			device:   unauthorized,
			want:     plan{nodeID: "n1", keyRequested: true, issueKey: true, retire: "n1"},
		},
		"AskedAndGone": {
			reason:   "A node whose device is gone gets a key at once.",
			recorded: "n1",
			state:    whole("reissue_authkey", ""),
			config:   config(t, ""),
			record:   issuedAgo(time.Hour),
			want:     plan{nodeID: "n1", keyRequested: true, issueKey: true, retire: "n1"},
		},
		"GoneWhileItWaits": {
			reason:   "A node whose request was withdrawn still waits for a key, and gets one when its device is gone.",
			recorded: "n1",
			state:    whole(),
			config:   config(t, ""),
			record:   failed(login),
			want:     plan{nodeID: "n1", keyRequested: true, issueKey: true, retire: "n1"},
		},
		"RestartDue": {
			reason:   "The container is restarted after a while.",
			recorded: "n1",
			state:    whole(),
			config:   config(t, ""),
			record:   failed(loginRecord{FirstRequest: testTime.Add(-time.Minute), LastRequest: testTime.Add(-30 * time.Second)}),
			device:   device,
			want:     plan{nodeID: "n1", failing: true, restart: true, writeConfig: true, login: &loginRecord{FirstRequest: testTime.Add(-time.Minute), Restarts: 1, Restarted: testTime}},
		},
		"LastResort": {
			reason:   "A node that cannot log in after all restarts, while another machine can, becomes another device.",
			recorded: "n1",
			state:    whole("reissue_authkey", ""),
			config:   config(t, ""),
			record:   failed(loginRecord{FirstRequest: testTime.Add(-time.Hour), Restarts: 4, Restarted: testTime.Add(-time.Minute)}),
			device:   device,
			other:    true,
			want:     plan{nodeID: "n1", keyRequested: true, issueKey: true, retire: "n1", lastResort: true},
		},
		"AskedWithoutKey": {
			reason: "A node that requests a key, has no state and never had a key gets one, and its device is deleted.",
			state:  state("device_id", "n1", "reissue_authkey", ""),
			config: config(t, ""),
			record: issuedAgo(time.Minute),
			device: device,
			want:   plan{nodeID: "n1", keyRequested: true, issueKey: true, retire: "n1"},
		},
		"AskedAboutThisKey": {
			reason: "A node that could not use the key in its config gets another.",
			state:  state("reissue_authkey", "k1"),
			config: config(t, "k1"),
			record: issuedAgo(time.Minute),
			want:   plan{keyRequested: true, issueKey: true},
		},
		"AskedLostState": {
			reason:   "The device of a node that lost its state is deleted too.",
			recorded: "n0",
			state:    state("reissue_authkey", "k1"),
			config:   config(t, "k1"),
			record:   issuedAgo(time.Minute),
			want:     plan{keyRequested: true, issueKey: true, retire: "n0"},
		},
		"AskedAgainTooSoon": {
			reason: "Keys are not minted faster than allowed.",
			state:  state("reissue_authkey", "k1"),
			config: config(t, "k1"),
			record: issuedAgo(time.Second),
			want:   plan{keyRequested: true},
			key:    "k1",
		},
		"Answered": {
			reason: "A request about an older key was answered: the newer key stays until it is used.",
			state:  state("device_id", "n1", "reissue_authkey", "k1"),
			config: config(t, "k2"),
			record: retired,
			device: device,
			want:   plan{nodeID: "n1"},
			key:    "k2",
		},
		"RetiredDeviceStillWrittenDown": {
			reason: "The key stays while the state names the retired device.",
			state:  state("device_id", "n1"),
			config: config(t, "k2"),
			record: retired,
			device: device,
			want:   plan{nodeID: "n1"},
			key:    "k2",
		},
		"Replaced": {
			reason:   "A node that joined again leaves a device behind.",
			recorded: "n0",
			state:    state("device_id", "n1"),
			config:   config(t, ""),
			record:   issuedAgo(time.Minute),
			device:   device,
			want:     plan{nodeID: "n1", adopt: true, replaced: "n0"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tags := tc.tags
			if tags == nil {
				tags = []string{"tag:k8s"}
			}
			mg := machine(func(m *v1alpha1.Machine) {
				m.SetAnnotations(map[string]string{meta.AnnotationNodeID: tc.recorded})
				// The pod can write this field, so it must not decide anything.
				m.Status.AtProvider.NodeID = "victim"
			})
			if tc.mod != nil {
				tc.mod(mg)
			}
			got, err := makePlan(mg, facts{state: tc.state, config: tc.config, record: tc.record, device: tc.device, strange: tc.strange, tags: tags, otherLogin: tc.other, silent: tc.silent, at: testTime})
			if err != nil {
				t.Fatalf("\n%s\nmakePlan(...): %v", tc.reason, err)
			}
			if got.config != nil && authKeyOf(got.config) != tc.key {
				t.Errorf("\n%s\nmakePlan(...): want key %q in the config, got %q", tc.reason, tc.key, authKeyOf(got.config))
			}
			got.config = nil
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(plan{})); diff != "" {
				t.Errorf("\n%s\nmakePlan(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNodeConfig(t *testing.T) {
	cases := map[string]struct {
		reason     string
		mod        func(*v1alpha1.Machine)
		controlURL string
		key        string
		want       string
	}{
		"AcceptRoutes": {
			reason: "An egress machine uses subnet routers.",
			mod:    func(m *v1alpha1.Machine) { m.Spec.ForProvider.AcceptRoutes = true },
			want:   `{"Version":"alpha0","Locked":false,"Hostname":"default-edge-ingress-0","acceptDNS":false,"acceptRoutes":true}`,
		},
		"Minimal": {
			reason: "Booleans are bare, and unset fields are absent.",
			want:   `{"Version":"alpha0","Locked":false,"Hostname":"default-edge-ingress-0","acceptDNS":false,"acceptRoutes":false}`,
		},
		"Static": {
			reason: "Peers learn of the nodes' addresses (ipn/conf.go, StaticEndpoints).",
			mod: func(m *v1alpha1.Machine) {
				m.Spec.ForProvider.StaticEndpoints = []string{"198.51.100.1:31000", "[2001:db8::1]:31000"}
			},
			want: `{"Version":"alpha0","Locked":false,"Hostname":"default-edge-ingress-0","acceptDNS":false,"acceptRoutes":false,"StaticEndpoints":["198.51.100.1:31000","[2001:db8::1]:31000"]}`,
		},
		"Full": {
			reason:     "Key and control server are present if known.",
			controlURL: "http://control",
			key:        "k1",
			want:       `{"Version":"alpha0","Locked":false,"ServerURL":"http://control","AuthKey":"k1","Hostname":"default-edge-ingress-0","acceptDNS":false,"acceptRoutes":false}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := machine()
			if tc.mod != nil {
				tc.mod(m)
			}
			got, err := nodeConfig(m, tc.controlURL, tc.key)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("\n%s\nnodeConfig(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestKeyDescription(t *testing.T) {
	long := machine(func(m *v1alpha1.Machine) { m.Name = strings.Repeat("x", 60) + ".0" })
	got := keyDescription("cluster", long)
	if len(got) > maxDescription || notAllowed.MatchString(strings.ReplaceAll(got, " ", "")) {
		t.Errorf("keyDescription(...): the API rejects %q", got)
	}
	other := long.DeepCopy()
	other.Name = strings.Repeat("x", 60) + ".1"
	if keyDescription("cluster", other) == got || keyDescription("other", long) == got {
		t.Error("keyDescription(...): want another one for another machine or cluster")
	}
}

// TestKeyLife shows that a key which a pod reads is of little use to others: it expires within
// minutes, and is removed from the Secret once it is used.
func TestKeyLife(t *testing.T) {
	if keyExpiry > time.Hour || keyRenewal >= keyExpiry/2 {
		t.Errorf("want an expiry of minutes, got %s, renewed %s before", keyExpiry, keyRenewal)
	}
}
