// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// ModuleDir returns the folder of a module in the project's requirements.
func ModuleDir(ctx context.Context, path string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", path).Output()
	if err != nil {
		return "", errors.Wrapf(err, "cannot find module %s", path)
	}
	return strings.TrimSpace(string(out)), nil
}

// GatewayAPICRDs returns the folder with Gateway API's CRDs, of the version in go.mod.
func GatewayAPICRDs(ctx context.Context) (string, error) {
	dir, err := ModuleDir(ctx, "sigs.k8s.io/gateway-api")
	return filepath.Join(dir, "config", "crd", "standard"), err
}

// CrossplaneCRDs returns the folder with Crossplane's CRDs, of the version that the lab runs.
func CrossplaneCRDs(ctx context.Context, root string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/crossplane/crossplane/v2")
	cmd.Dir = filepath.Join(root, "cluster", "tools", "crossplane")
	out, err := cmd.Output()
	if err != nil {
		return "", errors.Wrap(err, "cannot find the module of Crossplane")
	}
	return filepath.Join(strings.TrimSpace(string(out)), "cluster", "crds"), nil
}
