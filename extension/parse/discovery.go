// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// queryOf returns the device query of a match, or nil if the match has none.
func queryOf(match *gatewayv1alpha1.TailnetDeviceMatch) *ir.DeviceQuery {
	if match.Tailnet == "" {
		return nil
	}
	q := &ir.DeviceQuery{
		Tailnet:   match.Tailnet,
		Hostnames: slices.Sorted(slices.Values(match.Hostnames)),
		Users:     slices.Sorted(slices.Values(match.Users)),
	}
	for _, t := range match.Tags {
		q.Tags = append(q.Tags, string(t))
	}
	slices.Sort(q.Tags)
	return q
}

// Discovered is the result of a Discovery.
type Discovered struct {
	// Addresses of all devices, sorted.
	Addresses []netip.Prefix
	Devices   int32

	// Complete reports that no other device matches, as far as the tailnet was searched.
	Complete bool

	// Problem says why devices are missing in Addresses. It is shown to people.
	Problem string
}

// ParseDiscovery returns the result of the Discovery of a TailscaleRoutePolicy. It returns
// nil for any other Discovery.
func ParseDiscovery(o *tailnetv1alpha1.Discovery) *Discovered {
	if _, ok := o.Labels[ir.RoutePolicyLabel]; !ok {
		return nil
	}
	out := &Discovered{}
	at := o.Status.AtProvider
	for _, d := range at.Discovered {
		out.Devices++
		for _, s := range d.Addresses {
			// A string that is not an address belongs to no device.
			if a, err := netip.ParseAddr(s); err == nil {
				out.Addresses = append(out.Addresses, netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()))
			}
		}
	}
	slices.SortFunc(out.Addresses, netip.Prefix.Compare)
	ready := o.GetCondition(xpv2.TypeReady)
	refused := ready.Status == corev1.ConditionFalse && (ready.Reason == meta.ReasonNamespaceNotAllowed || ready.Reason == meta.ReasonInvalidSelector)
	out.Complete = at.Count != nil && !at.Truncated && !refused
	switch {
	case refused && at.Count != nil:
		out.Problem = "Devices are looked for no more, and those count that were found last: " + ready.Message
	case refused:
		out.Problem = "Devices are not known: " + ready.Message
	case at.Truncated && at.Count != nil:
		out.Problem = fmt.Sprintf("%d devices match, and only %d count; ask for fewer", *at.Count, out.Devices)
	case at.Count == nil:
		out.Problem = "Devices are not known yet"
		for _, cond := range []xpv2.Condition{o.GetCondition(xpv2.TypeSynced), ready} {
			if cond.Status == corev1.ConditionFalse && cond.Message != "" {
				out.Problem = "Devices are not known: " + cond.Message
				break
			}
		}
	}
	return out
}
