// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/test/lifecycle"
)

func init() { addCase(discoveryCase()) }

func discoveryCase() kindCase[*v1alpha1.Discovery] {
	const reads = "a Discovery only reads"
	// The devices of Seed that each pattern matches.
	finds := map[string][]string{
		"api-*":   {"api-a", "api-b"},
		"*laptop": {"laptop"},
	}
	return kindCase[*v1alpha1.Discovery]{
		Kind: v1alpha1.DiscoveryKind,
		Seed: func(e *env) {
			for _, p := range []tailnetsim.Puppet{
				{Hostname: "api-b", Tags: []string{"tag:web"}},
				{Hostname: "api-a", Tags: []string{"tag:web"}},
				{Hostname: "api-off", Tags: []string{"tag:web"}, Offline: true},
				{Hostname: "api-db", Tags: []string{"tag:web", "tag:db"}},
				{Hostname: "laptop", Tags: []string{"tag:k8s"}},
			} {
				_, err := e.sim.Join(p)
				e.must(err)
			}
		},
		New: func(*env) *v1alpha1.Discovery {
			return &v1alpha1.Discovery{Spec: v1alpha1.DiscoverySpec{ForProvider: v1alpha1.DiscoveryParameters{
				Include: []string{"api-*"}, OnlineOnly: true,
				TagSelectors: []v1alpha1.TagSelector{{Operator: v1alpha1.TagSelectorNotIn, Values: []v1alpha1.Tag{"tag:db"}}},
				Interval:     &metav1.Duration{Duration: 5 * time.Second},
			}}}
		},
		Check: func(_ *env, mg *v1alpha1.Discovery) error {
			var got []string
			for _, d := range mg.Status.AtProvider.Discovered {
				got = append(got, d.Name)
			}
			return lifecycle.Differ(finds[mg.Spec.ForProvider.Include[0]], got)
		},
		Update: func(_ *env, mg *v1alpha1.Discovery) { mg.Spec.ForProvider.Include = []string{"*laptop"} },
		Skip: map[step]string{
			stepDrift:         reads,
			stepDelete:        reads,
			stepOrphan:        reads,
			stepRefuse:        reads,
			stepAdopt:         reads,
			stepObserveNone:   "a tailnet always exists",
			stepWithoutUpdate: reads,
		},
		Bad: []badInput[*v1alpha1.Discovery]{
			{Name: "TooOften", Break: func(mg *v1alpha1.Discovery) { mg.Spec.ForProvider.Interval.Duration = 4 * time.Second }, Want: []string{"spec.forProvider.interval", "must be at least 5s"}},
			{Name: "UnknownSource", Break: func(mg *v1alpha1.Discovery) {
				mg.Spec.ForProvider.Sources = []v1alpha1.DiscoverySource{"Users"}
			}, Want: []string{"spec.forProvider.sources[0]", "Devices"}},
			{Name: "TooMany", Break: func(mg *v1alpha1.Discovery) { mg.Spec.ForProvider.MaxResults = 513 }, Want: []string{"spec.forProvider.maxResults", "512"}},
			{Name: "EmptyPattern", Break: func(mg *v1alpha1.Discovery) { mg.Spec.ForProvider.Exclude = []string{""} }, Want: []string{"spec.forProvider.exclude[0]", "at least 1"}},
			{Name: "InWithoutValues", Break: func(mg *v1alpha1.Discovery) { mg.Spec.ForProvider.TagSelectors[0].Values = nil }, Want: []string{"spec.forProvider.tagSelectors[0]", "In and NotIn take values"}},
			{Name: "NoTag", Break: func(mg *v1alpha1.Discovery) {
				mg.Spec.ForProvider.TagSelectors[0].Values = []v1alpha1.Tag{"web"}
			}, Want: []string{"spec.forProvider.tagSelectors[0].values[0]", "tag:"}},
		},
	}
}
