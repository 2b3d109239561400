// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package localapi

import (
	"context"
	"time"

	"tailscale.com/client/local"
	"tailscale.com/ipn"
	"tailscale.com/types/netmap"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// busMask requests one whole status at first, and then changes of the node itself and of peers,
// which may be primary for services. Without NotifyPeerPatches tailscaled would send a whole node
// for each small change. A version that does not know a part of the mask ignores it. Every version
// answers NotifyInitialState, so that a first notification always arrives.
const busMask = ipn.NotifyInitialState | ipn.NotifyInitialStatus | ipn.NotifyInitialHealthState | ipn.NotifyNoNetMap | ipn.NotifyPeerChanges | ipn.NotifyPeerPatches

// peersMask also requests whether the node uses the routes of subnet routers.
const peersMask = busMask | ipn.NotifyInitialPrefs

// netmapMask requests whole netmaps, at most one every three seconds. Versions before 1.100 have
// nothing better: NotifyInitialStatus and NotifyPeerPatches are in 1.100.0, and before 1.98.0 the
// bus reports no change of the node itself (tailscale.com ipn/backend.go). Version 1.104 refuses
// this mask with 400 (ValidateNotifyWatchOpt).
const netmapMask = ipn.NotifyInitialState | ipn.NotifyInitialPrefs | ipn.NotifyInitialHealthState | ipn.NotifyInitialNetMap | ipn.NotifyRateLimit

const (
	// pollEvery is the pause between two requests of the status from a version whose notifications
	// the Watcher cannot read.
	pollEvery = 5 * time.Second

	// maxRefused is the number of failed attempts to read notifications from a tailscaled that answers
	// other requests, before the Watcher polls. One that has just started may fail once.
	maxRefused = 3

	// busAgain is the number of such requests after which the Watcher tries to read notifications again.
	busAgain = 12
)

// netMap returns the whole netmap of a notification, or nil.
func netMap(n ipn.Notify) *netmap.NetworkMap {
	return n.NetMap //nolint:staticcheck // Versions before 1.100 report nothing else.
}

// open returns the bus and its first notification, which shows what the version reports. The caller
// closes the bus.
func (w *Watcher) open(ctx context.Context) (*local.IPNBusWatcher, ipn.Notify, error) {
	bus, first, err := w.openWith(ctx, w.mask)
	if err != nil || first.InitialStatus != nil {
		return bus, first, err
	}
	// The error reports the end of the stream, which is not read any more.
	_ = bus.Close()
	bus, netmap, err := w.openWith(ctx, netmapMask)
	return bus, netmap, errors.Wrapf(err, "version %q reports no status", first.Version)
}

// openWith returns a bus with a mask and its first notification.
func (w *Watcher) openWith(ctx context.Context, mask ipn.NotifyWatchOpt) (*local.IPNBusWatcher, ipn.Notify, error) {
	bus, err := w.client.WatchIPNBus(ctx, mask)
	if err != nil {
		return nil, ipn.Notify{}, errors.Wrap(err, "cannot watch tailscaled's bus")
	}
	// Next has no timeout, but ends with the stream. The error of Close reports the same end.
	late := time.AfterFunc(requestTimeout, func() { _ = bus.Close() })
	first, err := bus.Next()
	late.Stop()
	if err != nil {
		return nil, ipn.Notify{}, errors.Join(errors.Wrap(err, "cannot read from tailscaled's bus"), bus.Close())
	}
	return bus, first, nil
}

// answers reports whether tailscaled answers a request of its status.
func (w *Watcher) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := w.client.StatusWithoutPeers(ctx)
	return err == nil
}

// poll requests the status every few seconds until tailscaled does not answer. From time to time
// it tries to read notifications instead.
func (w *Watcher) poll(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	running, stop := w.startReloading(ctx)
	defer stop()

	st := State{Session: w.state.Session + 1, Peers: w.state.Peers, Polled: true}
	table := newRouteTable()
	for i := 1; ; i++ {
		n, err := w.status(ctx)
		if err != nil {
			return err
		}
		changed, err := w.apply(ctx, &st, table, n)
		if err != nil {
			return err
		}
		if changed {
			w.publish(st)
			latest(running, st.Running)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(w.pollEvery):
		}
		if i%busAgain != 0 {
			continue
		}
		if bus, first, err := w.open(ctx); err == nil {
			stop()
			return w.follow(ctx, bus, first)
		}
	}
}

// status returns the status as a notification.
func (w *Watcher) status(ctx context.Context) (ipn.Notify, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	// A peer can be primary for a service of this machine.
	s, err := w.client.Status(ctx)
	if err != nil {
		return ipn.Notify{}, errors.Wrap(err, "cannot get tailscaled's status")
	}
	n := ipn.Notify{Version: s.Version, InitialStatus: s}
	if w.peers == nil {
		return n, nil
	}
	prefs, err := w.client.GetPrefs(ctx)
	if err != nil {
		return ipn.Notify{}, errors.Wrap(err, "cannot get tailscaled's settings")
	}
	view := prefs.View()
	n.Prefs = &view
	return n, nil
}
