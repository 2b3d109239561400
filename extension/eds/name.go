// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package eds

import (
	"net/url"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

const (
	// TypeURL of the one type of resource that is served here.
	TypeURL = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"

	xdstpScheme = "xdstp:"
	wildcard    = "*"
)

// listName returns which endpoint list a subscription is for. A wildcard is refused:
// no Envoy needs the lists of all others.
func listName(name string) (string, error) {
	if name == wildcard || strings.HasSuffix(name, "/"+wildcard) {
		return "", errors.New("endpoints are served by name only, never all by a wildcard")
	}
	if !strings.HasPrefix(name, xdstpScheme) {
		return name, nil
	}
	list, ok := strings.CutPrefix(name, xds.XDSTPPrefix)
	if !ok {
		return "", errors.Errorf("%q is not of the authority and type that are served here: %q", name, xds.XDSTPPrefix)
	}
	// Envoy may add parameters of its node, and directives.
	list, _, _ = strings.Cut(list, "#")
	list, _, _ = strings.Cut(list, "?")
	list, err := url.PathUnescape(list)
	return list, errors.Wrapf(err, "cannot decode %q", name)
}
