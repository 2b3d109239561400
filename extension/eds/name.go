// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package eds

import (
	"net/url"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

const (
	// TypeURL is the only type that this package serves.
	TypeURL = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"

	xdstpScheme = "xdstp:"
	wildcard    = "*"
)

// listName returns the endpoint list for a subscription, and its tuning. A wildcard is an error: no
// Envoy needs the lists of all others.
func listName(name string) (string, ir.Tuning, error) {
	if name == wildcard || strings.HasSuffix(name, "/"+wildcard) {
		return "", ir.Tuning{}, errors.New("endpoints are served by name only, not by a wildcard")
	}
	list := name
	if strings.HasPrefix(name, xdstpScheme) {
		path, ok := strings.CutPrefix(name, xds.XDSTPPrefix)
		if !ok {
			return "", ir.Tuning{}, errors.Errorf("%q does not have the authority and type %q", name, xds.XDSTPPrefix)
		}
		// Envoy may add parameters of its node, and directives.
		path, _, _ = strings.Cut(path, "#")
		path, _, _ = strings.Cut(path, "?")
		var err error
		if list, err = url.PathUnescape(path); err != nil {
			return "", ir.Tuning{}, errors.Wrapf(err, "cannot decode %q", name)
		}
	}
	if base, tuning, ok := ir.ParseTuning(list); ok {
		return base, tuning, nil
	}
	// A newer replica may know its meaning. To this one it is an unknown list.
	return list, ir.Tuning{}, nil
}
