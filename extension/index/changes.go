// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"k8s.io/utils/ptr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Changes that the filters of a reference make to the requests that its backend gets. Envoy
// Gateway passes over filters of references to our kinds.
type Changes struct {
	Request, Response HeaderChange

	// Hostname that requests carry. Empty leaves theirs.
	Hostname string

	// Refused are the filters that nothing is made of, for people.
	Refused []string
}

// httpChanges of the filters of a reference. Nil is none.
func httpChanges(filters []gwapiv1.HTTPRouteFilter) *Changes {
	if len(filters) == 0 {
		return nil
	}
	out := &Changes{}
	for _, f := range filters {
		switch f.Type {
		case gwapiv1.HTTPRouteFilterRequestHeaderModifier:
			changeHeaders(out, string(f.Type), &out.Request, f.RequestHeaderModifier)
		case gwapiv1.HTTPRouteFilterResponseHeaderModifier:
			changeHeaders(out, string(f.Type), &out.Response, f.ResponseHeaderModifier)
		case gwapiv1.HTTPRouteFilterURLRewrite:
			if f.URLRewrite == nil {
				continue
			}
			out.Hostname = string(ptr.Deref(f.URLRewrite.Hostname, ""))
			if f.URLRewrite.Path != nil {
				out.Refused = append(out.Refused, string(f.Type)+" of a path")
			}
		default:
			out.Refused = append(out.Refused, string(f.Type))
		}
	}
	return out
}

// grpcChanges of the filters of a reference. Nil is none.
func grpcChanges(filters []gwapiv1.GRPCRouteFilter) *Changes {
	if len(filters) == 0 {
		return nil
	}
	out := &Changes{}
	for _, f := range filters {
		switch f.Type {
		case gwapiv1.GRPCRouteFilterRequestHeaderModifier:
			changeHeaders(out, string(f.Type), &out.Request, f.RequestHeaderModifier)
		case gwapiv1.GRPCRouteFilterResponseHeaderModifier:
			changeHeaders(out, string(f.Type), &out.Response, f.ResponseHeaderModifier)
		default:
			out.Refused = append(out.Refused, string(f.Type))
		}
	}
	return out
}

// changeHeaders takes a filter's changes over.
func changeHeaders(c *Changes, filter string, to *HeaderChange, f *gwapiv1.HTTPHeaderFilter) {
	if f == nil {
		return
	}
	of, err := parseHeaders(f)
	if err != nil {
		c.Refused = append(c.Refused, filter+": "+err.Error())
		return
	}
	*to = of
}
