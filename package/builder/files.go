// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

// files are the files that pages have users download, by their names in a release. The sources are in the
// folder package.
var files = map[string]string{
	"argocd-cm.yaml":                 "argocd/argocd-cm.yaml",
	"envoy-gateway-team-values.yaml": "envoy-gateway/team-values.yaml",
	"envoy-gateway-values.yaml":      "envoy-gateway/values.yaml",
	"flux-healthcheckexprs.yaml":     "flux/healthcheckexprs.yaml",
	"install.yaml":                   "kustomization/install.yaml",
	"mirror.sh":                      "mirror.sh",
}

// writeFiles writes the files that pages name, with the version of the release in the place of the tree's.
func (c *releaseCmd) writeFiles() error {
	for name, source := range files {
		b, err := os.ReadFile(filepath.Join(c.Package, filepath.FromSlash(source)))
		if err != nil {
			return errors.Wrap(err, "cannot read a file to release")
		}
		b = bytes.ReplaceAll(b, []byte(strings.TrimPrefix(version.Version, "v")), []byte(strings.TrimPrefix(c.Version, "v")))
		if err := writeFile(filepath.Join(c.Out, "files", name), b); err != nil {
			return err
		}
	}
	return nil
}
