// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hops

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"tailscale.com/client/local"
	"tailscale.com/ipn"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/harness"
)

// A Node is a tailscaled in userspace that joins a simulated tailnet.
type Node struct {
	// Program is the path of tailscaled.
	Program string

	// Dir is a folder for its state, its log and its socket.
	Dir string

	Hostname string

	// URL is the simulated control server, and AuthKey one of its keys.
	URL, AuthKey string

	// UpLimit is how long the node may take to join.
	UpLimit time.Duration
}

// Socket returns the socket of the node with the folder.
func Socket(dir string) string { return filepath.Join(dir, "tailscaled.sock") }

func client(socket string) *local.Client {
	return &local.Client{Socket: socket, UseSocketOnly: true}
}

// Join starts a node, and waits until it is in the tailnet. The caller stops the process, which may exist
// even with an error.
func Join(ctx context.Context, n Node) (*apiserver.Process, error) {
	// Fields of ipn.ConfigVAlpha.
	b, err := json.Marshal(map[string]any{
		"Version": "alpha0", "Locked": false, "ServerURL": n.URL, "AuthKey": n.AuthKey, "Hostname": n.Hostname, "acceptDNS": false,
	})
	if err != nil {
		return nil, errors.Wrap(err, "cannot encode tailscaled's config")
	}
	if err := os.MkdirAll(n.Dir, 0o700); err != nil {
		return nil, errors.Wrap(err, "cannot create tailscaled's folder")
	}
	config := filepath.Join(n.Dir, "config.json")
	if err := os.WriteFile(config, b, 0o600); err != nil {
		return nil, errors.Wrap(err, "cannot write tailscaled's config")
	}
	log, err := os.Create(filepath.Join(n.Dir, "log"))
	if err != nil {
		return nil, errors.Wrap(err, "cannot create tailscaled's log")
	}
	proc, err := apiserver.StartProcess(apiserver.ProcessOptions{
		// The simulator is its only server.
		Env: []string{"TS_DISABLE_PORTMAPPER=1", "TS_ASSUME_NETWORK_UP_FOR_TEST=1", "TS_PANIC_IF_HIT_MAIN_CONTROL=1"},
		Log: log,
	}, n.Program, "--config="+config, "--no-logs-no-support", "--port=0", "--socket="+Socket(n.Dir), "--statedir="+n.Dir, "--tun=userspace-networking")
	if err := errors.Join(err, log.Close()); err != nil {
		return proc, err
	}
	lc := client(Socket(n.Dir))
	return proc, harness.Eventually(ctx, n.UpLimit, "node "+n.Hostname, func(ctx context.Context) error {
		select {
		case <-proc.Exited():
			return errors.Errorf("tailscaled has ended: %v", proc.Err())
		default:
		}
		st, err := lc.StatusWithoutPeers(ctx)
		if err == nil && st.BackendState != ipn.Running.String() {
			err = errors.Errorf("tailscaled is in state %s", st.BackendState)
		}
		return err
	})
}
