// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Member is the provider with a wrong clock. It is the provider of one of many clusters in package
// swarm, and takes only the flags that package swarm needs.
package main

import (
	"time"

	"github.com/alecthomas/kong"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tailscale-gateway/tailscale-gateway/internal/provider"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

type cli struct {
	ClockSkew       time.Duration `help:"How far the clock is ahead; behind if it is negative."`
	WatchNamespaces []string      `help:"Namespaces to work in." required:""`
	Poll            time.Duration `default:"15s" help:"How often each managed resource is checked for drift."`
	MetricsAddress  string        `default:"0" help:"Address of /metrics; 0 turns it off."`
	HealthAddress   string        `default:"0" help:"Address of /healthz and /readyz; 0 turns them off."`
}

func main() {
	c := &cli{}
	k := kong.Parse(c, kong.Name("member"), kong.Description("A provider with a wrong clock."))
	k.FatalIfErrorf(provider.Run(ctrl.SetupSignalHandler(), provider.Options{
		Poll:               c.Poll,
		Sync:               time.Hour,
		PollStateMetric:    time.Hour, // No test reads this metric.
		MaxReconcileRate:   100,
		APIRate:            20,
		APIBurst:           60,
		ListMaxAge:         c.Poll / 2, // The ratio of both flags' defaults.
		WatchNamespaces:    c.WatchNamespaces,
		Namespace:          "kube-system",
		Images:             proxy.Images{Tailscale: "tailscale:bench", Agent: "agent:bench"},
		AllowedHosts:       []string{"127.0.0.1:*"},
		ManagementPolicies: true,
		MetricsAddress:     c.MetricsAddress,
		HealthAddress:      c.HealthAddress,
		ProfileAddress:     "0",
		Clock:              skewed{offset: c.ClockSkew},
	}))
}

// skewed is a clock that is ahead by a constant.
type skewed struct {
	clock.RealClock

	offset time.Duration
}

// Now implements clock.PassiveClock.
func (s skewed) Now() time.Time { return time.Now().Add(s.offset) }

// Since implements clock.PassiveClock.
func (s skewed) Since(t time.Time) time.Duration { return s.Now().Sub(t) }
