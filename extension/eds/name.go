// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package eds

import (
	"net/url"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	// TypeURL of the one type of resource that is served here.
	TypeURL = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"

	// xdstpPrefix is what names begin with when Envoy asks for all over one stream:
	// our authority, and the type.
	xdstpPrefix = "xdstp://tailscale/envoy.config.endpoint.v3.ClusterLoadAssignment/"

	xdstpScheme = "xdstp:"
	wildcard    = "*"
)

// XDSTPName is how an endpoint list is called in Envoy's bootstrap-wide
// configuration source.
func XDSTPName(list string) string { return xdstpPrefix + list }

// listName returns which endpoint list a subscription is for. A wildcard is refused:
// no Envoy needs the lists of all others.
func listName(name string) (string, error) {
	if name == wildcard || strings.HasSuffix(name, "/"+wildcard) {
		return "", errors.New("endpoints are served by name only, never all by a wildcard")
	}
	if !strings.HasPrefix(name, xdstpScheme) {
		return name, nil
	}
	list, ok := strings.CutPrefix(name, xdstpPrefix)
	if !ok {
		return "", errors.Errorf("%q is not of the authority and type that are served here: %q", name, xdstpPrefix)
	}
	// Envoy may add parameters of its node, and directives.
	list, _, _ = strings.Cut(list, "#")
	list, _, _ = strings.Cut(list, "?")
	list, err := url.PathUnescape(list)
	return list, errors.Wrapf(err, "cannot decode %q", name)
}
