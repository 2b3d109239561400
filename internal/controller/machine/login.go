// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"tailscale.com/kube/kubetypes"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/nodestate"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Containerboot asks for a new key as soon as tailscaled has a login error, whatever the cause: a
// control server that is away for a second suffices, also if the state is whole (tailscale.com
// 1.102.5 and 1.104.5, cmd/containerboot/main.go, authLoop; control/controlclient/auto.go,
// authRoutine). A new key costs the machine its device, with its addresses, approvals and
// signatures. So a request is honoured only if the device is gone, expired or not authorized.
// Otherwise the node needs another attempt: containerboot disconnects from control, waits ten
// minutes for another key and then exits (kube/authkey, WaitForAuthKeyReissue). The provider
// withdraws the request and asks the pod's agent, by an annotation of the config Secret, to have
// the container restarted. Pods cannot write that Secret. Its users can, so the record of the
// attempts is in the Machine.

// restartDelays are the times between a request for a key in vain and the restart that follows, for
// the first restart, the second and so on. Later ones have the last delay.
var restartDelays = []time.Duration{30 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute}

// connectedLag is how long the API may show a device as connected after its node has disconnected.
const connectedLag = time.Minute

// A loginRecord is what the provider remembers of a node that cannot log in.
type loginRecord struct {
	// FirstRequest is when the node asked for a key in vain for the first time. Zero means that the node
	// has not asked since it last logged in.
	FirstRequest time.Time `json:"since,omitzero"`

	// LastRequest is when the node asked for a key since the last restart. Zero if it did not.
	LastRequest time.Time `json:"asked,omitzero"`

	// Restarts counts the restarts since then, and Restarted is the time of the last one.
	Restarts  int       `json:"restarts,omitempty"`
	Restarted time.Time `json:"restarted,omitzero"`

	// LoggedIn is when the node last logged in after it could not.
	LoggedIn time.Time `json:"loggedIn,omitzero"`
}

// A loginStep is what a node that cannot log in needs next.
type loginStep int

const (
	// stepNone means that the node needs nothing, or has to wait.
	stepNone loginStep = iota

	// stepRestart means that the node's container needs a restart.
	stepRestart

	// stepReplace means that restarts do not help, and another machine can log in: the node gets
	// a new key, and becomes another device.
	stepReplace
)

// or returns the record that r points to, or another one if it is nil.
func (r *loginRecord) or(other loginRecord) loginRecord {
	if r == nil {
		return other
	}
	return *r
}

// request asks the pod's agent for the last restart of the record.
func (r loginRecord) request(config *corev1.Secret) {
	if !r.Restarted.IsZero() {
		metav1.SetMetaDataAnnotation(&config.ObjectMeta, meta.AnnotationRestart, r.Restarted.UTC().Format(time.RFC3339))
	}
}

// requested reports whether the pod's agent was asked for the last restart of the record.
func (r loginRecord) requested(config *corev1.Secret) bool {
	return r.Restarted.IsZero() || config.GetAnnotations()[meta.AnnotationRestart] == r.Restarted.UTC().Format(time.RFC3339)
}

// open reports whether the node has not logged in since it asked for a key in vain.
func (r loginRecord) open() bool { return !r.FirstRequest.IsZero() }

// waits reports whether the node waits for a key, also after its request was withdrawn.
func (r loginRecord) waits() bool { return !r.LastRequest.IsZero() }

// exhausted reports whether the node had all restarts.
func (r loginRecord) exhausted() bool { return r.Restarts >= len(restartDelays) }

// delay returns how long the next restart waits.
func (r loginRecord) delay() time.Duration {
	return restartDelays[min(r.Restarts, len(restartDelays)-1)]
}

// due reports whether the next restart is due. A request in the future comes from another clock.
func (r loginRecord) due(at time.Time) bool {
	age := at.Sub(r.LastRequest)
	return r.waits() && (age < 0 || age >= r.delay())
}

// next returns the record of a node with a usable device after an observation, and what the node
// needs. asks reports whether the node asks for a key, connected whether its device is connected to
// control, and other whether another machine logged in between the node's first request and its
// last restart. Only then the node itself is at fault: when control is back after an outage, those
// that are restarted last are healthy.
func (r loginRecord) next(asks, connected, other bool, at time.Time) (loginRecord, loginStep) {
	switch {
	case asks && !r.open():
		return loginRecord{FirstRequest: at, LastRequest: at, LoggedIn: r.LoggedIn}, stepNone
	case asks && !r.waits():
		r.LastRequest = at
		if r.exhausted() && other {
			return r, stepReplace
		}
	case asks:
	case !r.open():
		return r, stepNone
	case connected && (!r.waits() || at.Sub(r.LastRequest) >= connectedLag):
		return loginRecord{LoggedIn: at}, stepNone
	}
	if !r.due(at) {
		return r, stepNone
	}
	r.Restarts++
	r.LastRequest, r.Restarted = time.Time{}, at
	return r, stepRestart
}

// usable reports whether a node with the device's state can log in, as far as the API knows.
func usable(d *tailscale.Device, at time.Time) bool {
	if d == nil || !d.Authorized {
		return false
	}
	return d.KeyExpiryDisabled || d.Expires.IsZero() || at.Before(d.Expires.Time)
}

// asksForKey reports whether the node asks for a key other than the one in its config.
func asksForKey(state *corev1.Secret, key string) bool {
	broken, ok := state.Data[kubetypes.KeyReissueAuthkey]
	return ok && (key == "" || string(broken) == key)
}

// planLogin decides about the login of a node that may be unable to log in. It reports whether the
// node keeps its device.
func (p *plan) planLogin(f facts, asks bool) bool {
	existing := f.record.Login
	if nodestate.Of(f.state.Data) != nodestate.Whole || p.nodeID == "" || !usable(f.device, f.at) {
		return false
	}
	want, step := existing.next(asks, f.device.ConnectedToControl, f.otherLogin, f.at)
	p.lastResort = step == stepReplace
	if p.lastResort {
		return false
	}
	p.failing, p.restart, p.withdraw = want.open(), step == stepRestart, asks
	if want != existing {
		p.login = &want
	}
	return true
}

// otherLogin reports whether another machine of the tailnet is known to have logged in between the
// node's first request and its last restart: a device was added, or a node of this cluster that
// could not log in did.
func (e *external) otherLogin(ctx context.Context, mg *v1alpha1.Machine, login loginRecord) (bool, error) {
	concurrent := func(t time.Time) bool {
		return t.After(login.FirstRequest.Add(clockSkew)) && t.Before(login.Restarted.Add(-clockSkew))
	}
	devices, err := e.api.devices.Devices(ctx, tailscale.Cached)
	if err != nil {
		return false, errors.Wrap(err, "cannot list devices")
	}
	for _, d := range devices {
		if d.NodeID != meta.NodeIDOf(mg) && concurrent(d.Created.Time) {
			return true, nil
		}
	}
	l := &v1alpha1.MachineList{}
	if err := e.kube.List(ctx, l, client.UnsafeDisableDeepCopy); err != nil {
		return false, errors.Wrap(err, "cannot list Machines")
	}
	for i := range l.Items {
		o := &l.Items[i]
		if o.GetUID() == mg.GetUID() || o.GetAnnotations()[annotationTailnet] != mg.GetAnnotations()[annotationTailnet] {
			continue
		}
		// A record that cannot be read proves no login.
		if r, err := recordOf(o); err == nil && concurrent(r.Login.LoggedIn) {
			return true, nil
		}
	}
	return false, nil
}

// withdrawRequest removes the node's request for a key from its state Secret. The node may make
// another one at any time.
func withdrawRequest(ctx context.Context, kube client.Client, state *corev1.Secret) error {
	original := state.DeepCopy()
	delete(state.Data, kubetypes.KeyReissueAuthkey)
	return errors.Wrap(kube.Patch(ctx, state, client.MergeFrom(original)), "cannot withdraw the node's request for an auth key")
}
