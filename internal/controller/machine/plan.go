// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"tailscale.com/kube/kubetypes"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/nodestate"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const (
	// keyExpiry is how long a key may wait for its node. Until then, any user who can read Secrets
	// of the namespace can use the key instead of the node.
	keyExpiry = 30 * time.Minute

	// keyRenewal is how long before its expiry a key is replaced.
	keyRenewal = 5 * time.Minute

	// reissueInterval is the minimum time between two keys for one machine.
	reissueInterval = 30 * time.Second
)

// facts are the input of a plan.
type facts struct {
	state      *corev1.Secret
	config     *corev1.Secret
	record     record
	device     *tailscale.Device // Nil if no device has the node ID.
	strange    string            // Why the device does not belong to the machine. Empty if it does.
	clusterID  string
	controlURL string
	tags       []string
	at         time.Time

	// otherLogin reports whether another machine logged in while this one could not.
	otherLogin bool

	// silent reports that the node's version does not ask for keys.
	silent bool
}

// A plan describes the steps for a machine whose Secrets exist.
type plan struct {
	// nodeID is the node ID of the machine's device, or "". Either the provider may act on the
	// device, or no device has the ID.
	nodeID string

	// refused describes why the device that the pod names does not belong to the machine. It is
	// empty if it does.
	refused string

	// adopt requests that the device is recorded as the machine's, with this cluster's ID.
	adopt bool

	// issueKey requests a new key.
	issueKey bool

	// retire is the node ID of the device to delete before that, or "".
	retire string

	// replaced is the node ID of a device that no pod runs any more, because the node lost its
	// state and joined again, or "".
	replaced string

	// keyRequested reports that the node waits for a key.
	keyRequested bool

	// login is what to record of the node's login. Nil means that the record is right.
	login *loginRecord

	// failing reports that the node cannot log in although its device is usable. restart requests
	// a restart of its container, and withdraw the removal of its request for a key.
	failing, restart, withdraw bool

	// lastResort reports that the new key replaces a usable device.
	lastResort bool

	// tailnet is the tailnet of the device, if known.
	tailnet string

	// config is the wanted config if no key is minted.
	config []byte

	// writeConfig reports that the config Secret differs from config, or lacks the request of a
	// restart.
	writeConfig bool

	// setTags reports that the device's tags differ from the wanted ones.
	setTags bool
}

// done reports whether there is nothing to do.
func (p plan) done() bool {
	return !p.issueKey && !p.writeConfig && !p.setTags && !p.adopt && p.replaced == "" && p.login == nil && !p.withdraw
}

// makePlan decides what a machine needs.
func makePlan(mg *v1alpha1.Machine, f facts) (plan, error) {
	key := authKeyOf(f.config.Data[meta.ConfigKey])
	trusted, named := meta.NodeIDOf(mg), nodeIDOfState(f.state)
	p := plan{nodeID: named, refused: f.strange}
	if p.refused != "" {
		// Treated as if there was no device: whatever the device is, it stays unchanged.
		p.nodeID, f.device = "", nil
	}

	// The node requests a key by writing the key that it could not use, if any. It removes the
	// request when it has read another key.
	_, keyRequested := f.state.Data[kubetypes.KeyReissueAuthkey]
	asks := asksForKey(f.state, key) || f.silent && named != "" && needsKey(f, key)
	retained := p.planLogin(f, asks)
	loggedIn := (!keyRequested || asks && retained) && p.nodeID != "" && p.nodeID != f.record.Retired && f.device != nil

	switch {
	case !retained && (asks || p.lastResort || key == "" && f.record.Login.waits()):
		p.keyRequested, p.issueKey, p.retire = true, true, trusted
		if f.device != nil {
			p.retire = p.nodeID
		}
	case loggedIn:
		// A used key cannot be used again.
		key = ""
		p.tailnet = tailnetOf(f.device)
		annotations := mg.GetAnnotations()
		p.adopt = trusted != p.nodeID || annotations[meta.AnnotationClusterID] != f.clusterID || p.tailnet != "" && p.tailnet != annotations[annotationTailnet]
		if trusted != "" && trusted != p.nodeID {
			p.replaced = trusted
		}
	case named == "" && (key == "" || f.record.expired(f.at)):
		p.issueKey = true
	}
	if p.issueKey && f.record.recentlyIssued(f.at) {
		p.issueKey, p.retire = false, ""
	}
	if p.issueKey {
		return p, nil
	}
	want, err := nodeConfig(mg, f.controlURL, key)
	if err != nil {
		return p, err
	}
	p.config = want
	p.writeConfig = !bytes.Equal(want, f.config.Data[meta.ConfigKey]) || !p.login.or(f.record.Login).requested(f.config)
	if loggedIn {
		tags := slices.Sorted(slices.Values(f.device.Tags))
		p.setTags = len(f.tags) > 0 && !slices.Equal(tags, f.tags)
	}
	return p, nil
}

// needsKey reports whether a node that does not ask for keys needs one: its device is gone or has
// expired, and its config has no key that it may still use. A node that reads the key when it starts
// again joins as another device, also if it has the state of the one that is gone.
func needsKey(f facts, key string) bool {
	unusable := f.strange == "" && (f.device == nil || f.device.Authorized && !usable(f.device, f.at))
	return unusable && (key == "" || f.record.expired(f.at))
}

// nodeIDOfState returns the node ID that a node with this state has after a restart. It is empty
// for a state without a complete identity, and for a node that never joined: such a node needs a
// key.
func nodeIDOfState(state *corev1.Secret) string {
	if nodestate.Of(state.Data) == nodestate.Partial {
		return ""
	}
	return nodestate.NodeID(state.Data)
}

// expired reports whether the last key is about to expire. A key of unknown age counts as valid: the
// node requests another one if it is not.
func (r record) expired(at time.Time) bool {
	t, ok := r.issued()
	return ok && at.After(t.Add(keyExpiry-keyRenewal))
}

// recentlyIssued reports whether the last key is too young for another one. A time in the future
// comes from another clock and is ignored.
func (r record) recentlyIssued(at time.Time) bool {
	t, ok := r.issued()
	age := at.Sub(t)
	return ok && age >= 0 && age < reissueInterval
}
