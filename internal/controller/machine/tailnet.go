// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// annotationTailnet is on a Machine: the DNS name of the tailnet of its device, taken from the device's
// name. Another credential, spec.tailnet of the provider config, or another provider config may
// later lead to a different tailnet, where the device would be neither found nor deleted.
const annotationTailnet = "gateway.tailscale.com/tailnet"

// tailnetOf returns the tailnet in a device's name, or "".
func tailnetOf(d *tailscale.Device) string {
	if d == nil {
		return ""
	}
	_, domain, _ := strings.Cut(strings.TrimSuffix(d.Name, "."), ".")
	return domain
}

// elsewhere returns why a machine that joined one tailnet must not be managed in the tailnet of its
// current provider config. It is empty if both are the same tailnet, even if that was renamed: the
// device still exists there.
func (e *external) elsewhere(ctx context.Context, mg *v1alpha1.Machine, r record, config *corev1.Secret) (string, error) {
	joined, object := joinedTailnet(mg, r, config)
	if joined == "" {
		return "", nil
	}
	now, err := e.api.Domain(ctx)
	if err != nil {
		return "", errors.Wrap(err, "cannot learn the tailnet's domain")
	}
	if now == "" || now == joined {
		return "", nil
	}
	all, err := e.api.Devices(ctx, tailscale.Recent)
	if err != nil {
		return "", errors.Wrap(err, "cannot list devices")
	}
	if id := meta.NodeIDOf(mg); slices.ContainsFunc(all, func(d tailscale.Device) bool { return d.NodeID == id && id != "" }) {
		return "", nil
	}
	return fmt.Sprintf("the machine's device %s is in the tailnet %s, and the provider config now leads to %s; lead it back until the Machine is deleted, "+
		"or delete the device in the admin console and take the annotation %s off the %s", meta.NodeIDOf(mg), joined, now, annotationTailnet, object), nil
}

// tailnetChanged returns the condition of a machine whose provider config leads to another tailnet.
func tailnetChanged(why string) xpv2.Condition {
	c := xpv2.Unavailable().WithMessage(strings.ToUpper(why[:1]) + why[1:])
	c.Reason = meta.ReasonTailnetChanged
	return c
}
