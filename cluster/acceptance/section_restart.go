// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"os"
	"slices"

	"tailscale.com/ipn"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// refusalsBefore is the number of connections that control refuses before it answers again.
const refusalsBefore = 3

// restartWithoutControl restarts a proxy while control refuses its connections, as happens when a
// pod starts before its network permits egress. The proxy must keep its identity.
func restartWithoutControl(ctx context.Context, t *turn) (err error) {
	if isProxied(os.Environ()) {
		return skipf(skipMissing, "this machine reaches control through HTTPS_PROXY")
	}
	g, err := newGate(ctx, t.run.opts.ControlURL)
	if err != nil {
		return err
	}
	defer g.close()
	endpoint, env := g.control(t.run.opts.ControlURL)
	p, err := t.startProxy(ctx, "restart-proxy", proxyOptions{control: endpoint, env: env})
	if err != nil {
		return err
	}
	defer func() {
		_, stopErr := p.stop()
		err = errors.Join(err, stopErr)
	}()
	if err := p.joined(ctx, t); err != nil {
		return err
	}
	previous, err := p.status(ctx)
	if err != nil {
		return err
	}
	if _, err := p.stop(); err != nil {
		return err
	}
	// As in a pod, a used key is removed.
	if err := p.forgetKey(); err != nil {
		return err
	}
	g.set(true)
	if err := p.launch(); err != nil {
		return err
	}
	if _, err := t.until(ctx, "control refuses", func(context.Context) (string, error) {
		if g.turned() < refusalsBefore {
			return "no connection of the proxy yet", p.relaunched(t)
		}
		return "", nil
	}); err != nil {
		return err
	}
	g.set(false)
	took, err := t.until(ctx, "the proxy is back", func(ctx context.Context) (string, error) {
		if err := p.relaunched(t); err != nil {
			return "", err
		}
		return p.unhealthy(ctx), nil
	})
	if err != nil {
		return errors.Wrapf(err, "containerboot: %s", p.output.last())
	}
	t.measure("healthy after control is back", took)
	t.observe("containerboot ended meanwhile", p.restarts > 0)
	current, err := p.status(ctx)
	switch {
	case err != nil:
		return err
	case current.Self.ID != previous.Self.ID:
		return errors.Errorf("the proxy is another device: it was %s and is %s", previous.Self.ID, current.Self.ID)
	case !slices.Equal(current.TailscaleIPs, previous.TailscaleIPs):
		return errors.Errorf("the proxy has other addresses: it had %v and has %v", previous.TailscaleIPs, current.TailscaleIPs)
	}
	return nil
}

// relaunched starts containerboot again if it has ended, as kubelet does.
func (p *proxy) relaunched(t *turn) error {
	select {
	case err := <-p.done:
		p.restarts++
		t.note("containerboot ended, and is started again: %v", err)
		return p.launch()
	default:
		return nil
	}
}

// forgetKey writes the config without the auth key.
func (p *proxy) forgetKey() error {
	var cfg ipn.ConfigVAlpha
	if err := json.Unmarshal(p.base, &cfg); err != nil {
		return errors.Wrap(err, "cannot decode tailscaled's config")
	}
	cfg.AuthKey = nil
	var err error
	if p.base, err = json.Marshal(cfg); err != nil { //nolint:gosec // It has no key.
		return errors.Wrap(err, "cannot encode tailscaled's config")
	}
	return p.offer()
}
