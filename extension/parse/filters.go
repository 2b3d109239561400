// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"k8s.io/utils/ptr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// httpChanges returns the changes that the filters of a backendRef make, or nil if there are
// no filters.
func httpChanges(filters []gwapiv1.HTTPRouteFilter) *ir.Changes {
	if len(filters) == 0 {
		return nil
	}
	out := &ir.Changes{}
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

// grpcChanges returns the changes that the filters of a backendRef make, or nil if there are
// no filters.
func grpcChanges(filters []gwapiv1.GRPCRouteFilter) *ir.Changes {
	if len(filters) == 0 {
		return nil
	}
	out := &ir.Changes{}
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

// changeHeaders sets the changes of a header filter, or records why the filter is refused.
func changeHeaders(c *ir.Changes, filter string, dst *ir.HeaderChange, f *gwapiv1.HTTPHeaderFilter) {
	if f == nil {
		return
	}
	change, err := parseHeaders(f)
	if err != nil {
		c.Refused = append(c.Refused, filter+": "+err.Error())
		return
	}
	*dst = change
}
