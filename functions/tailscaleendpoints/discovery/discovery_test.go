// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// namesOf returns the device or service of each endpoint name.
func namesOf(spec []gatewayv1alpha1.Endpoint, discovered ...tailnetv1alpha1.Discovered) map[string]string {
	d := &tailnetv1alpha1.Discovery{}
	d.Status.AtProvider.Discovered = discovered
	p := New(Facts{
		Spec:      gatewayv1alpha1.TailscaleEndpointsSpec{AutoDiscovery: &gatewayv1alpha1.AutoDiscovery{}, Endpoints: spec},
		Discovery: d,
	})
	out := map[string]string{}
	for name, d := range p.results {
		out[name] = string(d.Source) + " " + d.Name
	}
	return out
}

// TestFoundNames verifies that users of the tailnet, who choose the names of their devices, cannot
// take the name of a service.
func TestFoundNames(t *testing.T) {
	device := func(name, id string) tailnetv1alpha1.Discovered {
		return tailnetv1alpha1.Discovered{Source: tailnetv1alpha1.DiscoverDevices, Name: name, NodeID: id}
	}
	service := func(name string) tailnetv1alpha1.Discovered {
		return tailnetv1alpha1.Discovered{Source: tailnetv1alpha1.DiscoverServices, Name: name}
	}
	cases := map[string]struct {
		reason     string
		spec       []gatewayv1alpha1.Endpoint
		discovered []tailnetv1alpha1.Discovered
		want       map[string]string
	}{
		"Usual": {
			reason:     "A device has its own name, and a service svc-NAME.",
			discovered: []tailnetv1alpha1.Discovered{device("payments", "n1"), service("svc:payments")},
			want:       map[string]string{"payments": "Devices payments", "svc-payments": "Services svc:payments"},
		},
		"Spoofed": {
			reason:     "A device with the name of a service's endpoint gets another name.",
			discovered: []tailnetv1alpha1.Discovered{device("svc-payments", "n1"), service("svc:payments")},
			want:       map[string]string{"ts-device-svc-payments-b1052459": "Devices svc-payments", "svc-payments": "Services svc:payments"},
		},
		"SpoofedAlone": {
			reason:     "A device has that other name before the service exists, so that no endpoint is renamed later.",
			discovered: []tailnetv1alpha1.Discovered{device("svc-payments", "n1")},
			want:       map[string]string{"ts-device-svc-payments-b1052459": "Devices svc-payments"},
		},
		"SpoofedHash": {
			reason:     "A device cannot take the name of a renamed device.",
			discovered: []tailnetv1alpha1.Discovered{device("svc-payments", "n2"), device("ts-device-svc-payments-b1052459", "n1")},
			want: map[string]string{
				"ts-device-svc-payments-b1052459":                    "Devices svc-payments",
				"ts-device-ts-device-svc-payments-b1052459-883fbaf2": "Devices ts-device-svc-payments-b1052459",
			},
		},
		"Spec": {
			reason:     "Endpoints of the spec take precedence over devices and services.",
			spec:       []gatewayv1alpha1.Endpoint{{Name: "svc-payments"}, {Name: "laptop"}},
			discovered: []tailnetv1alpha1.Discovered{device("laptop", "n1"), service("svc:payments")},
			want:       map[string]string{},
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			for range 2 {
				if diff := cmp.Diff(tc.want, namesOf(tc.spec, tc.discovered...)); diff != "" {
					t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
				}
				slices.Reverse(tc.discovered)
			}
		})
	}
}

// TestFoundNamesOddly tests other names by which a device could get the name of a service's
// endpoint.
func TestFoundNamesOddly(t *testing.T) {
	label := regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	s := tailnetv1alpha1.Discovered{Source: tailnetv1alpha1.DiscoverServices, Name: "svc:payments"}
	for _, name := range []string{"SVC-payments", "svc_payments", "svc.payments", "svc:payments", "svc-payments-", "svc-", "Svc-Payments"} {
		got := namesOf(nil, tailnetv1alpha1.Discovered{Source: tailnetv1alpha1.DiscoverDevices, Name: name, NodeID: "n1"}, s)
		if len(got) != 2 || got["svc-payments"] != "Services svc:payments" {
			t.Errorf("device %q: want it in addition to the service, got %v", name, got)
		}
		for n := range got {
			if !label.MatchString(n) || len(n) > 63 || n != "svc-payments" && n[:4] == "svc-" {
				t.Errorf("device %q: the endpoint must not have the name %q", name, n)
			}
		}
	}
}
