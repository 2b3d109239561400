// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"tailscale.com/ipn"
	"tailscale.com/kube/kubetypes"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
)

// runPods acts as the pods of all Machines of a case while it runs: each logs in with the auth key
// in its config Secret and writes its state Secret, as containerboot does.
func runPods(e *env) {
	ctx := e.Context()
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			ss := &corev1.SecretList{}
			// The next tick retries failures.
			if err := shared.cache.List(ctx, ss, client.InNamespace(e.namespace), client.MatchingLabels{meta.LabelSecretType: meta.SecretTypeConfig}); err != nil {
				continue
			}
			for i := range ss.Items {
				runPod(ctx, e, &ss.Items[i])
			}
		}
	}()
	e.Cleanup(func() { <-done })
}

// runPod runs the next action of one pod. Errors are retried: the Secrets may change at the same
// time.
func runPod(ctx context.Context, e *env, config *corev1.Secret) {
	var c ipn.ConfigVAlpha
	if json.Unmarshal(config.Data[meta.ConfigKey], &c) != nil || c.Hostname == nil {
		return
	}
	state := &corev1.Secret{}
	name := strings.TrimSuffix(config.GetName(), meta.ConfigSecretSuffix)
	if shared.kube.Get(ctx, client.ObjectKey{Namespace: config.GetNamespace(), Name: name}, state) != nil {
		return
	}
	original := state.DeepCopy()
	if state.Data == nil {
		state.Data = map[string][]byte{}
	}
	broken, requested := state.Data[kubetypes.KeyReissueAuthkey]
	if requested && (c.AuthKey == nil || string(broken) == *c.AuthKey) {
		return // The pod waits for another key.
	}
	delete(state.Data, kubetypes.KeyReissueAuthkey)
	if id := string(state.Data[kubetypes.KeyDeviceID]); id != "" && !requested {
		if _, err := e.tailnet.Devices().Get(ctx, id); err == nil || !strings.Contains(err.Error(), "404") {
			return // The pod is logged in.
		}
		// The device was deleted, so the node is logged out.
		state.Data[kubetypes.KeyReissueAuthkey] = []byte(keyOf(c))
	} else {
		if c.AuthKey == nil {
			return
		}
		id, err := e.sim.Join(tailnetsim.Puppet{Hostname: *c.Hostname, AuthKey: *c.AuthKey})
		if err == nil {
			state.Data[kubetypes.KeyDeviceID] = []byte(id)
		} else {
			state.Data[kubetypes.KeyReissueAuthkey] = []byte(*c.AuthKey)
		}
	}
	if same(original.Data, state.Data) {
		return
	}
	// A patch, because the provider removes finalizers from the same Secret. The next tick reads
	// the result; a device without a state Secret is a lost state.
	_ = shared.kube.Patch(ctx, state, client.MergeFrom(original))
}

func keyOf(c ipn.ConfigVAlpha) string {
	if c.AuthKey == nil {
		return ""
	}
	return *c.AuthKey
}

func same(a, b map[string][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || !bytes.Equal(v, w) {
			return false
		}
	}
	return true
}
