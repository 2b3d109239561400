// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/daemon"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/images"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/tools"
)

type proxyImagesCmd struct {
	Versions []string `arg:"" optional:"" help:"Versions of tailscaled, such as v1.96.5. By default the oldest and the newest one."`
	List     bool     `help:"Print the available versions, oldest first."`
}

// Run builds and pushes the images, and prints their names, one per line.
func (c *proxyImagesCmd) Run(r runtime) error {
	all := tools.Proxies()
	if c.List {
		for _, t := range all {
			fmt.Println(t.Version)
		}
		return nil
	}
	wanted, err := selectProxies(all, c.Versions)
	if err != nil {
		return err
	}
	unlock, err := lock(r)
	if err != nil {
		return err
	}
	defer unlock()
	b := builder(r.paths)
	if err := b.Ensure(r, wanted...); err != nil {
		return err
	}
	bin, err := b.Binaries()
	if err != nil {
		return err
	}
	st, err := r.daemon().Status(r, false)
	if err != nil {
		return err
	}
	out := make([]images.Image, len(wanted))
	for i, t := range wanted {
		out[i] = images.Proxy(bin, t.Version, images.Outside{Roots: daemon.Trusted(r.paths), ACMEDirectory: st.IPFamily.Hub().ACMEDirectory()})
	}
	if err := pushAll(r, out...); err != nil {
		return err
	}
	for _, i := range out {
		fmt.Println(i.Name)
	}
	return nil
}

// selectProxies returns the tools of the versions, by default the oldest and the newest one.
func selectProxies(all []tools.Tool, versions []string) ([]tools.Tool, error) {
	if len(versions) == 0 {
		return []tools.Tool{all[0], all[len(all)-1]}, nil
	}
	var out []tools.Tool
	for _, v := range versions {
		i := slices.IndexFunc(all, func(t tools.Tool) bool { return t.Version == v })
		if i < 0 {
			available := make([]string, len(all))
			for n, t := range all {
				available[n] = t.Version
			}
			return nil, errors.Errorf("cannot find version %q: use one of %s", v, strings.Join(available, ", "))
		}
		out = append(out, all[i])
	}
	return out, nil
}
