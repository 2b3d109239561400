// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// TestTargetsLimit verifies that neither new endpoints nor new attachments take the place of a
// target that proxies serve.
func TestTargetsLimit(t *testing.T) {
	attachment := func(name string, ports int) tailnetv1alpha1.ServiceAttachment {
		out := tailnetv1alpha1.ServiceAttachment{Spec: tailnetv1alpha1.ServiceAttachmentSpec{Direction: tailnetv1alpha1.DirectionEgress, Addresses: []string{"100.64.0.1"}}}
		out.Name = name
		for i := range ports {
			out.Spec.Ports = append(out.Spec.Ports, tailnetv1alpha1.AttachmentPort{Port: int32(i + 1)})
		}
		return out
	}
	f := Facts{
		Spec:        gatewayv1alpha1.TailscaleEndpointsSpec{Endpoints: []gatewayv1alpha1.Endpoint{{Name: "first", ExternalTarget: "100.64.0.9:80"}}},
		Attachments: []tailnetv1alpha1.ServiceAttachment{attachment("b", Max), attachment("a", 1)},
		ProxySet:    &tailnetv1alpha1.ProxySet{},
	}
	var want []string
	for i := range Max {
		want = append(want, fmt.Sprintf("b/%d", i+1))
	}
	for _, name := range want {
		f.ProxySet.Spec.Targets = append(f.ProxySet.Spec.Targets, tailnetv1alpha1.ProxySetTarget{Name: name})
	}
	slices.Sort(want)
	targets := New(f)
	var got []string
	for _, v := range targets.All {
		got = append(got, v.Label)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("New(): -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"first/80", "a/1"}, targets.Refused); diff != "" {
		t.Errorf("refused: -want, +got:\n%s", diff)
	}
}
