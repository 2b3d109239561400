// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/images"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/tools"
)

// certManager is the manifest of cert-manager, whose chart cannot omit the webhook.
//
//go:embed certmanager.yaml
var certManager string

type certManagerCmd struct {
	Timeout time.Duration `default:"2m" help:"How long to wait until it is ready, after the build."`
}

// Run builds cert-manager and installs it on the cluster.
func (c *certManagerCmd) Run(r runtime) error {
	image, crds, err := c.prepare(r)
	if err != nil {
		return err
	}
	for _, step := range []struct {
		stdin string
		args  []string
	}{
		{args: []string{"apply", "--server-side", "-f", crds}},
		{args: []string{"wait", "-f", crds, "--for=condition=Established", "--timeout=" + c.Timeout.String()}},
		{args: []string{"apply", "--server-side", "-f", "-"}, stdin: strings.ReplaceAll(certManager, "${IMAGE}", image)},
		{args: []string{"rollout", "status", "deployment/cert-manager", "--namespace=cert-manager", "--timeout=" + c.Timeout.String()}},
	} {
		if err := quiet(r, step.stdin, "kubectl", step.args...); err != nil {
			return err
		}
	}
	fmt.Printf("%s runs in namespace cert-manager, and supports Issuers of the kinds CA and SelfSigned\n", image)
	return nil
}

// prepare pushes the image, and returns its name and the folder of the CRDs.
func (c *certManagerCmd) prepare(r runtime) (image, crds string, err error) {
	unlock, err := lock(r)
	if err != nil {
		return "", "", err
	}
	defer unlock()
	b := builder(r.paths)
	if err := ensure(r, b, tools.CertManager); err != nil {
		return "", "", err
	}
	t, err := tools.Find(tools.CertManager)
	if err != nil {
		return "", "", err
	}
	bin, err := b.Binaries()
	if err != nil {
		return "", "", err
	}
	mod, err := b.ModuleDir(r, t)
	if err != nil {
		return "", "", err
	}
	i := images.CertManager(bin)
	return i.Name, filepath.Join(mod, "deploy", "crds"), pushAll(r, i)
}
