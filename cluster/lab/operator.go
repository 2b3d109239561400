// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/images"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/tools"
)

type operatorCmd struct{}

// Run builds Tailscale's operator, pushes its images, and prints shell exports for scripts.
func (c *operatorCmd) Run(r runtime) error {
	unlock, err := lock(r)
	if err != nil {
		return err
	}
	defer unlock()
	b := builder(r.paths)
	if err := ensure(r, b, tools.Operator); err != nil {
		return err
	}
	t, err := tools.Find(tools.Operator)
	if err != nil {
		return err
	}
	bin, err := b.Binaries()
	if err != nil {
		return err
	}
	mod, err := b.ModuleDir(r, t)
	if err != nil {
		return err
	}
	st, err := r.daemon().Status(r, false)
	if err != nil {
		return err
	}
	operator, proxy := images.Operator(bin, st.IPFamily.Hub().ACMEDirectory())
	if err := pushAll(r, operator, proxy); err != nil {
		return err
	}
	for _, kv := range [][2]string{
		{"OPERATOR_IMAGE", operator.Name},
		{"OPERATOR_PROXY_IMAGE", proxy.Name},
		{"OPERATOR_DEPLOY", filepath.Join(mod, "cmd", "k8s-operator", "deploy")},
	} {
		fmt.Printf("export %s=%q\n", kv[0], kv[1])
	}
	return nil
}
