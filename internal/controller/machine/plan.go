// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"tailscale.com/ipn"
	"tailscale.com/kube/kubetypes"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/nodestate"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Annotations of a config Secret. They change in the same write as the key, so
// none of them can be lost alone.
const (
	annotationKeyID     = "gateway.tailscale.com/auth-key-id"
	annotationKeyIssued = "gateway.tailscale.com/auth-key-issued"

	// annotationKeyUnused is the ID of the key of which it is known that no node used it
	// before it was revoked.
	annotationKeyUnused = "gateway.tailscale.com/auth-key-unused"

	// annotationKeyTags are the tags of the key, after one another with spaces.
	annotationKeyTags = "gateway.tailscale.com/auth-key-tags"

	// annotationRetired is the node ID of the device that a newer key replaces.
	annotationRetired = "gateway.tailscale.com/retired-device-id"
)

const (
	// keyExpiry is how long a key may wait for its node. Whoever reads Secrets of the
	// namespace can use it until then, instead of the node.
	keyExpiry = 30 * time.Minute

	// keyRenewal before its expiry a key is replaced.
	keyRenewal = 5 * time.Minute

	// reissueInterval is the shortest time between two keys for one machine.
	reissueInterval = 30 * time.Second
)

// facts are what a plan is made of.
type facts struct {
	state      *corev1.Secret
	config     *corev1.Secret
	device     *tailscale.Device // Nil if there is none with the node ID.
	strange    string            // Why the device is not the machine's. Empty if it is.
	controlURL string
	tags       []string
	now        time.Time
}

// A plan is what is to be done for a machine whose Secrets exist.
type plan struct {
	// nodeID of the machine's device, or "". It is one that may be acted on, or that of
	// no device.
	nodeID string

	// refused says why the device that the pod names is not the machine's. Empty if it
	// is.
	refused string

	// adopt says that the device is to be remembered as the machine's.
	adopt bool

	// issueKey says that a key is to be minted.
	issueKey bool

	// retire is the node ID of the device to delete before that, or "".
	retire string

	// replaced is the node ID of a device that nothing runs any more: the node
	// lost its state and joined again. Or "".
	replaced string

	// asked says that the node waits for a key.
	asked bool

	// tailnet that the device is in, if that is known.
	tailnet string

	// config that is wanted if no key is minted.
	config []byte

	// writeConfig says that the config Secret holds something else.
	writeConfig bool

	// setTags says that the device has other tags than it should.
	setTags bool
}

// done reports whether there is nothing to do.
func (p plan) done() bool {
	return !p.issueKey && !p.writeConfig && !p.setTags && !p.adopt && p.replaced == ""
}

// makePlan decides what a machine needs.
func makePlan(mg *v1alpha1.Machine, f facts) (plan, error) {
	key := authKeyOf(f.config.Data[meta.ConfigKey])
	retired := f.config.GetAnnotations()[annotationRetired]
	trusted, named := meta.NodeIDOf(mg), nodeIDOfState(f.state)
	p := plan{nodeID: named, refused: f.strange}
	if p.refused != "" {
		// As if there was no device: whatever it is, it stays as it is.
		p.nodeID, f.device = "", nil
	}

	// The node asks by writing down the key that it could not use, if any. It
	// takes the request back when it has read another key.
	broken, asked := f.state.Data[kubetypes.KeyReissueAuthkey]
	answered := key != "" && string(broken) != key
	loggedIn := !asked && p.nodeID != "" && p.nodeID != retired && f.device != nil

	switch {
	case asked && !answered:
		p.asked, p.issueKey, p.retire = true, true, trusted
		if f.device != nil {
			p.retire = p.nodeID
		}
	case loggedIn:
		// A used key is of no use to anyone.
		key = ""
		p.adopt = trusted != p.nodeID
		if trusted != "" && p.adopt {
			p.replaced = trusted
		}
	case named == "" && (key == "" || expired(f.config, f.now)):
		p.issueKey = true
	}
	if p.issueKey && recentlyIssued(f.config, f.now) {
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
	p.writeConfig = !bytes.Equal(want, f.config.Data[meta.ConfigKey])
	if loggedIn {
		have := slices.Sorted(slices.Values(f.device.Tags))
		p.tailnet = tailnetOf(f.device)
		p.writeConfig = p.writeConfig || p.tailnet != "" && p.tailnet != f.config.GetAnnotations()[annotationTailnet]
		p.setTags = len(f.tags) > 0 && !slices.Equal(have, f.tags)
	}
	return p, nil
}

// nodeIDOfState is the node ID of the device that a node with this state is, also when it starts
// again. Of one that lacks a part of its identity it is empty, as of one that never joined: it
// needs a key.
func nodeIDOfState(state *corev1.Secret) string {
	if nodestate.Of(state.Data) == nodestate.Partial {
		return ""
	}
	return nodeID(state)
}

// nodeID of the device whose state a Secret holds. Containerboot writes it down
// some time after tailscaled did so in its profile.
func nodeID(state *corev1.Secret) string {
	if id := string(state.Data[kubetypes.KeyDeviceID]); validNodeID.MatchString(id) {
		return id
	}
	for k, v := range state.Data {
		if !strings.HasPrefix(k, "profile-") {
			continue
		}
		var prefs struct {
			Config struct{ NodeID string }
		}
		if json.Unmarshal(v, &prefs) == nil && validNodeID.MatchString(prefs.Config.NodeID) && k == string(state.Data[string(ipn.CurrentProfileStateKey)]) {
			return prefs.Config.NodeID
		}
	}
	return ""
}

func issued(config *corev1.Secret) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339, config.GetAnnotations()[annotationKeyIssued])
	return t, err == nil
}

// expired reports whether the key in a config Secret is about to expire. One of
// unknown age is taken for good: the node asks if it is not.
func expired(config *corev1.Secret, now time.Time) bool {
	t, ok := issued(config)
	return ok && now.After(t.Add(keyExpiry-keyRenewal))
}

// recentlyIssued reports whether the last key is too young for another one. Times from the future
// are another clock's.
func recentlyIssued(config *corev1.Secret, now time.Time) bool {
	t, ok := issued(config)
	age := now.Sub(t)
	return ok && age >= 0 && age < reissueInterval
}
