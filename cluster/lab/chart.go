// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/images"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/tools"
)

// chartFolders are the folders of charts in upstream modules, by tool.
var chartFolders = map[string]string{
	"crossplane":       filepath.Join("cluster", "charts", "crossplane"),
	tools.EnvoyGateway: filepath.Join("charts", "gateway-helm"),
}

type chartCmd struct {
	Name string `arg:"" enum:"crossplane,envoy-gateway" help:"Name of the chart: crossplane, envoy-gateway."`
}

// Run prints the folder of the chart.
func (c *chartCmd) Run(r runtime) error {
	dir, err := chart(r, c.Name)
	if err != nil {
		return err
	}
	fmt.Println(dir)
	return nil
}

// versionLine matches the placeholders of a chart in its source tree.
var versionLine = regexp.MustCompile(`(?m)^(appVersion|version): .*$`)

// chart returns the folder of a copy of the chart with the release's version, which
// upstream sets when it publishes the chart. The image's tag depends on it.
func chart(r runtime, name string) (string, error) {
	t, err := tools.Find(name)
	if err != nil {
		return "", err
	}
	mod, err := builder(r.paths).ModuleDir(r, t)
	if err != nil {
		return "", err
	}
	dst := filepath.Join(r.paths.Cache, "charts", t.Name+"-"+t.Version)
	if err := os.RemoveAll(dst); err != nil {
		return "", errors.Wrap(err, "cannot remove old copy of the chart")
	}
	if err := os.CopyFS(dst, os.DirFS(filepath.Join(mod, chartFolders[name]))); err != nil {
		return "", errors.Wrap(err, "cannot copy chart")
	}
	err = rewrite(dst, "Chart.yaml", "Chart.yaml", func(body string) string {
		return versionLine.ReplaceAllString(body, "$1: "+strings.TrimPrefix(t.Version, "v"))
	})
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dst, "values.tmpl.yaml")); err != nil {
		return dst, nil //nolint:nilerr // The chart has no template of its values.
	}
	// Envoy Gateway's release renders the values with envsubst.
	return dst, rewrite(dst, "values.tmpl.yaml", "values.yaml", strings.NewReplacer(
		"${GatewayImage}", images.EnvoyGatewayName(), "${GatewayImagePullPolicy}", "IfNotPresent").Replace)
}

// rewrite replaces a file of a copied chart by a changed one, whose name may be the same.
func rewrite(dir, from, to string, change func(string) string) error {
	body, err := os.ReadFile(filepath.Join(dir, from))
	if err != nil {
		return errors.Wrap(err, "cannot read chart")
	}
	// Files of the module cache are read-only, and so are their copies.
	if err := os.Remove(filepath.Join(dir, from)); err != nil {
		return errors.Wrap(err, "cannot replace file of the chart")
	}
	return errors.Wrap(os.WriteFile(filepath.Join(dir, to), []byte(change(string(body))), 0o644), "cannot write chart") // No secret.
}
