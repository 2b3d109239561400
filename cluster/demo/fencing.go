// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/test/load"
)

// blackholeGoal is how long clients of the tailnet may wait for an answer after a node failed with the controllers of
// its cluster, in 99 of 100 cases.
const blackholeGoal = 10 * time.Second

// unnoticed is how long the control server takes a host that is cut off for connected.
const unnoticed = 10 * time.Minute

type fencingCmd struct {
	options

	Kills int    `default:"200" help:"How many times a cluster is cut off without a warning: the host that clients use, and its controllers."`
	Log   string `help:"File for the results, as JSON."`
	Reuse bool   `help:"Use the clusters that an earlier run has prepared."`
}

// Run brings everything up, and then cuts off the cluster that clients use, again and again.
func (o *fencingCmd) Run(ctx context.Context) error {
	f := &fencing{trial: &trial{members: map[string]*demo{}, stopped: map[string][]controller{}, options: o.options}, kills: o.Kills}
	steps := f.steps()
	if o.Reuse {
		steps = []step{{name: "find the clusters", action: func(ctx context.Context, _ *progress) error { return f.findLabs(ctx) }}}
	}
	steps = append(steps,
		step{name: "have the clusters watch each other's hosts", action: f.watch},
		step{name: fmt.Sprintf("cut off the cluster that clients use, %d times", o.Kills), action: f.kill},
	)
	failed := run(ctx, os.Stdout, steps)
	if f.tailnet != nil {
		failed = errors.Join(failed, f.notice(context.WithoutCancel(ctx), 0))
	}
	if len(f.outages) == 0 {
		return failed
	}
	return errors.Join(failed, f.report(o.Log))
}

// A fencing is a trial of fences.
type fencing struct {
	*trial

	kills   int
	tailnet *tailnetView
	url     string
	outages []time.Duration
}

// watch turns on the fencing of the shared service in all clusters, and waits until all hosts are watched.
func (f *fencing) watch(ctx context.Context, p *progress) error {
	var err error
	if f.tailnet, err = findTailnet(f.first().lab); err != nil {
		return err
	}
	// A power cut: the control server does not notice it for ten minutes.
	if err := f.notice(ctx, unnoticed); err != nil {
		return err
	}
	f.url = fmt.Sprintf("http://%s.%s/", sharedName, f.tailnet.domain)
	for _, c := range clusterNames {
		if err := f.members[c].patch(ctx, services, quickstart, sharedName, `{"spec":{"fencing":true}}`); err != nil {
			return err
		}
	}
	return f.watched(ctx, p)
}

// notice sets after how long the simulated control server notices a host that is cut off.
func (f *fencing) notice(ctx context.Context, delay time.Duration) error {
	return f.tailnet.send(ctx, http.MethodPatch, "/sim/switches", map[string]string{"offlineDelay": delay.String()}, nil)
}

// watched waits until all clusters say that all hosts are watched, and serve.
func (f *fencing) watched(ctx context.Context, p *progress) error {
	return p.until(ctx, 5*time.Minute, func(ctx context.Context) (string, error) {
		for _, c := range clusterNames {
			found, err := f.members[c].field(ctx, "vipservice", sharedName, fmt.Sprintf(
				`{.status.conditions[?(@.type=="%s")].reason}: {.status.conditions[?(@.type=="%[1]s")].message} {.status.atProvider.fence.nodeID}`, meta.TypeFencingReady))
			if err != nil {
				return "", err
			}
			if strings.TrimSpace(found) != string(meta.ReasonHostsWatched)+":" {
				return fmt.Sprintf("cluster %s: %s", c, found), nil
			}
		}
		return "", nil
	})
}

// kill cuts off the cluster that answers clients of the tailnet, and measures how long they wait for another one.
func (f *fencing) kill(ctx context.Context, p *progress) error {
	for i := range f.kills {
		primary, err := f.answering(ctx, p)
		if err != nil {
			return err
		}
		event := time.Now()
		if _, err := f.lab(ctx, "--cluster="+primary, "cluster-fault"); err != nil {
			return err
		}
		l, err := load.StartProcess(ctx, f.first().lab.labBin, "--from=tailnet", "--first", "--workers=16", "--every=100ms", "--timeout=1s", "--for=15m", f.url)
		if err != nil {
			return err
		}
		_, failed := l.Wait()
		outage := time.Since(event)
		if _, err := f.lab(ctx, "--cluster="+primary, "cluster-fault", "--clear"); err != nil {
			return errors.Join(failed, err)
		}
		if failed != nil {
			return failed
		}
		f.outages = append(f.outages, outage)
		p.printf("      %3d: cluster %s: answers after %s\n", i+1, primary, outage.Round(100*time.Millisecond))
		if err := f.watched(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// answering returns the cluster that answers clients of the tailnet: the first part of the names of its pods.
func (f *fencing) answering(ctx context.Context, p *progress) (string, error) {
	cluster := ""
	err := p.until(ctx, 2*time.Minute, func(ctx context.Context) (string, error) {
		text, err := f.lab(ctx, "tailnet-curl", "--timeout=5s", f.url)
		if err != nil {
			return err.Error(), nil //nolint:nilerr // The service may move right now.
		}
		cluster, _, _ = strings.Cut(strings.TrimSpace(text), "-")
		if !slices.Contains(clusterNames, cluster) {
			return fmt.Sprintf("%q answers", text), nil
		}
		return "", nil
	})
	return cluster, err
}

// report prints the outages, and writes them to a file. It returns an error if the goal is missed.
func (f *fencing) report(file string) error {
	sorted := slices.Sorted(slices.Values(f.outages))
	percentile := func(percent int) time.Duration { return sorted[(len(sorted)*percent+99)/100-1] }
	p99 := percentile(99)
	fmt.Printf("answers after %s at the median, %s at p99, %s at most, of %d\n",
		percentile(50).Round(100*time.Millisecond), p99.Round(100*time.Millisecond), sorted[len(sorted)-1].Round(100*time.Millisecond), len(sorted))
	if file != "" {
		b, err := json.MarshalIndent([]map[string]any{
			{"name": "chaos.blackhole_p50_s", "value": percentile(50).Seconds(), "unit": "s"},
			{"name": "chaos.blackhole_p99_s", "value": p99.Seconds(), "unit": "s", "goal": blackholeGoal.Seconds(), "holds": p99 <= blackholeGoal},
		}, "", "  ")
		if err != nil {
			return errors.Wrap(err, "cannot encode the results")
		}
		if err := os.WriteFile(file, append(b, '\n'), 0o600); err != nil {
			return errors.Wrap(err, "cannot write the results")
		}
	}
	if p99 > blackholeGoal {
		return errors.Errorf("the goal of %s at p99 is missed", blackholeGoal)
	}
	return nil
}
