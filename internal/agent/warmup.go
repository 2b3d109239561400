// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"tailscale.com/ipn/ipnstate"
	"tailscale.com/tailcfg"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

const (
	// maxPings bounds the number of devices that are pinged at a time.
	maxPings = 16

	// pingTimeout is how long one ping waits for its answer, and pingPause is the pause after a
	// ping that failed.
	pingTimeout = 2 * time.Second
	pingPause   = 500 * time.Millisecond
)

// A warmup connects a new egress pod to the devices of its targets before clients use the pod.
// Without it, the first connections of a restarted pod can hang for 5 s: a device sends its
// answer to the address of the previous pod for a while (tailscale.com wgengine/magicsock,
// trustUDPAddrDuration), and WireGuard repeats a lost handshake only after 5 s
// (golang.zx2c4.com/wireguard device/constants.go, RekeyTimeout).
//
// A ping of type TSMP opens the WireGuard session and announces the pod's new discovery key. Every
// device answers it, whatever the policy file allows, and no program on the device sees it
// (tailscale.com net/tstun, wgengine/filter).
type warmup struct {
	// ping sends one ping.
	ping func(ctx context.Context, addr netip.Addr, t tailcfg.PingType) (*ipnstate.PingResult, error)

	// run runs a function in the goroutine of the loop.
	run func(context.Context, func())

	// begun reports whether the devices are known. waiting holds the names of the devices without
	// an answer, by address.
	begun   bool
	waiting map[netip.Addr]string
}

// begin pings the devices, each until it answers, and gives up after patience. Offline devices are
// left out.
func (w *warmup) begin(ctx context.Context, devices []localapi.Device, patience time.Duration) {
	w.begun, w.waiting = true, make(map[netip.Addr]string)
	for _, d := range devices {
		if d.Addr.IsValid() && !d.Offline {
			w.waiting[d.Addr] = d.Name
		}
	}
	addrs := slices.Collect(maps.Keys(w.waiting))
	deadline := time.Now().Add(patience)
	go func() {
		pings, cancel := context.WithDeadline(ctx, deadline)
		defer cancel()
		g := &errgroup.Group{}
		g.SetLimit(maxPings)
		for _, addr := range addrs {
			g.Go(func() error {
				w.reach(pings, addr)
				w.run(ctx, func() { delete(w.waiting, addr) })
				return nil
			})
		}
		// The functions return no errors.
		_ = g.Wait()
	}()
}

// reach pings a device until it answers or ctx is done.
func (w *warmup) reach(ctx context.Context, addr netip.Addr) {
	for w.try(ctx, addr) != nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pingPause):
		}
	}
}

func (w *warmup) try(ctx context.Context, addr netip.Addr) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	r, err := w.ping(ctx, addr, tailcfg.PingTSMP)
	if err != nil {
		return err
	}
	if r.Err != "" {
		return errors.New(r.Err)
	}
	return nil
}

// unready returns the device that the warmup waits for, or "".
func (w *warmup) unready() string {
	if len(w.waiting) == 0 {
		return ""
	}
	return "Waiting for a connection to device " + slices.Min(slices.Collect(maps.Values(w.waiting)))
}
