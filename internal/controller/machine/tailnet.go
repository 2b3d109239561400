// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"strings"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// annotationTailnet is on a Machine: the DNS name of the tailnet of its device, taken from the device's
// name. The provider's own record of the tailnet (clients.Residence) is not in a backup.
const annotationTailnet = "gateway.tailscale.com/tailnet"

// tailnetOf returns the tailnet in a device's name, or "".
func tailnetOf(d *tailscale.Device) string {
	if d == nil {
		return ""
	}
	_, domain, _ := strings.Cut(strings.TrimSuffix(d.Name, "."), ".")
	return domain
}

// joinedTailnet returns the tailnet of a machine's device, as the Machine's annotation says. For a
// Machine of an earlier version it is in an annotation of the config Secret.
func joinedTailnet(ctx context.Context, env kinds.Env, mg *v1alpha1.Machine) (string, error) {
	if t := mg.GetAnnotations()[annotationTailnet]; t != "" {
		return t, nil
	}
	r, err := recordOf(mg)
	if err != nil || r.exists() {
		return "", err
	}
	s, err := getSecrets(ctx, env.Kube, mg)
	if err != nil || !hinted(r, s.config) {
		return "", err
	}
	return s.config.GetAnnotations()[hintTailnet], nil
}
