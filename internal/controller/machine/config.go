// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/json"
	"net/netip"
	"regexp"
	"slices"

	"tailscale.com/ipn"
	"tailscale.com/types/opt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/marks"
)

// maxDescription is the maximum length of a key's description, in bytes. The API accepts letters,
// digits, dashes and spaces.
const maxDescription = 50

// nodeConfig returns tailscaled's configuration of a machine, without the advertised services,
// which the agent adds. authKey may be empty. The same input gives the same bytes.
func nodeConfig(mg *v1alpha1.Machine, controlURL, authKey string) ([]byte, error) {
	hostname := mg.Spec.ForProvider.Hostname
	disabled := opt.NewBool(false)
	c := ipn.ConfigVAlpha{
		Version: "alpha0",
		// Locked and AcceptRoutes default to true.
		Locked:       disabled,
		AcceptDNS:    disabled,
		AcceptRoutes: opt.NewBool(mg.Spec.ForProvider.AcceptRoutes),
		Hostname:     &hostname,
	}
	if authKey != "" {
		c.AuthKey = &authKey
	}
	if controlURL != "" {
		c.ServerURL = &controlURL
	}
	for _, e := range mg.Spec.ForProvider.StaticEndpoints {
		a, err := netip.ParseAddrPort(e)
		if err != nil {
			return nil, errors.Wrapf(err, "cannot parse static endpoint %q", e)
		}
		c.StaticEndpoints = append(c.StaticEndpoints, a)
	}
	b, err := json.Marshal(c) //nolint:gosec // The key belongs in there: it goes into a Secret.
	return b, errors.Wrap(err, "cannot encode tailscaled's config")
}

// authKeyOf returns the auth key in tailscaled's configuration, or "". An unreadable configuration
// has none, and is written again.
func authKeyOf(config []byte) string {
	var c ipn.ConfigVAlpha
	if err := json.Unmarshal(config, &c); err != nil || c.AuthKey == nil {
		return ""
	}
	return *c.AuthKey
}

// notAllowed matches the characters that a key's description may not have.
var notAllowed = regexp.MustCompile(`[^A-Za-z0-9-]`)

// keyDescription returns the description of a machine's keys: a hash that no other machine of any
// cluster has, and, for readers, as much of its name as fits.
func keyDescription(clusterID string, mg *v1alpha1.Machine) string {
	d := marks.Machine(clusterID, mg.GetNamespace(), mg.GetName()) + " " + notAllowed.ReplaceAllString(mg.GetNamespace()+"-"+mg.GetName(), "-")
	if len(d) > maxDescription {
		d = d[:maxDescription]
	}
	return d
}

// wantedTags returns the tags of a machine's device, sorted.
func wantedTags(configTags []string, mg *v1alpha1.Machine) []string {
	out := slices.Clone(configTags)
	for _, t := range mg.Spec.ForProvider.Tags {
		out = append(out, string(t))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
