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
	// TypeURL of the one type of resource that is served here.
	TypeURL = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"

	xdstpScheme = "xdstp:"
	wildcard    = "*"
)

// listName returns which endpoint list a subscription is for, and how it is tuned. A
// wildcard is refused: no Envoy needs the lists of all others.
func listName(name string) (string, ir.Tuning, error) {
	if name == wildcard || strings.HasSuffix(name, "/"+wildcard) {
		return "", ir.Tuning{}, errors.New("endpoints are served by name only, never all by a wildcard")
	}
	list := name
	if strings.HasPrefix(name, xdstpScheme) {
		path, ok := strings.CutPrefix(name, xds.XDSTPPrefix)
		if !ok {
			return "", ir.Tuning{}, errors.Errorf("%q is not of the authority and type that are served here: %q", name, xds.XDSTPPrefix)
		}
		// Envoy may add parameters of its node, and directives.
		path, _, _ = strings.Cut(path, "#")
		path, _, _ = strings.Cut(path, "?")
		var err error
		if list, err = url.PathUnescape(path); err != nil {
			return "", ir.Tuning{}, errors.Wrapf(err, "cannot decode %q", name)
		}
	}
	if of, tuning, ok := ir.ParseTuning(list); ok {
		return of, tuning, nil
	}
	// A newer replica may know what it means. Here it is a list that nobody knows.
	return list, ir.Tuning{}, nil
}
