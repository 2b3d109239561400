// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/big"
	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/harness"
)

const (
	// smallTailnet is the share of the tailnet with which figures are compared.
	smallTailnet = 10

	// maxPollSeconds is how long the lists of one poll may take, and maxPollProcessor how much processor
	// time a poll may take: a twentieth of a core.
	maxPollSeconds   = 10
	maxPollProcessor = 3

	// maxTailnetMemory is the limit of the provider's container in the chart, in MiB.
	maxTailnetMemory = 512

	// maxDeath is two polls, in seconds: the list that an object reads may be a poll old.
	maxDeath = 120

	// maxNetmapDeath is how long a node may take to see that a peer is gone, in seconds.
	maxNetmapDeath = 5

	// maxAnnotation is the size to which the provider cuts the value of an annotation, in bytes.
	maxAnnotation = 4 << 10

	// deaths is the number of devices that go offline, with deathPause between them: together two polls,
	// so that they meet lists of every age.
	deaths     = 24
	deathPause = 5 * time.Second
)

// tailnet measures the provider in a large tailnet, compared with a tenth of it in the same run.
func (c *cli) tailnet(ctx context.Context, env *harness.Env) ([]Result, error) {
	few, err := c.tailnetCost(ctx, env, "small", big.Size{Devices: c.Devices / smallTailnet, Services: c.TailnetServices / smallTailnet})
	if err != nil {
		return nil, err
	}
	many, err := c.tailnetCost(ctx, env, "large", big.Size{Devices: c.Devices, Services: c.TailnetServices})
	if err != nil {
		return nil, err
	}
	return tailnetResults(few, many), nil
}

// A tailnetCost is what a tailnet of one size costs.
type tailnetCost struct {
	size   big.Size
	poll   big.Poll
	memory harness.Memory

	// annotation is the largest value of an annotation, and annotated the mean size of all annotations of
	// a service that has some, in bytes.
	annotation, annotated int

	// seen is how long after a device's death each object showed it, and netmap when a node's agent knew.
	seen, netmap []time.Duration

	// node is the memory of that node.
	node harness.Memory
}

// tailnetCost measures a tailnet of one size.
func (c *cli) tailnetCost(ctx context.Context, env *harness.Env, name string, size big.Size) (cost tailnetCost, err error) {
	cost.size = size
	progress("tailnet: %d devices and %d services; %s", size.Devices, size.Services, load())
	t, err := big.Start(ctx, env, name, size)
	if err != nil {
		return cost, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	progress("tailnet: all objects are ready; counting %d polls", c.Polls)
	if cost.poll, err = t.Polls(ctx, c.Polls, pollInterval); err != nil {
		return cost, err
	}
	progress("tailnet: a poll is %+v", cost.poll)
	if cost.memory, err = t.Memory(); err != nil || size.Devices < c.Devices {
		return cost, err // Of the small one only polls are compared.
	}
	cost.annotation, cost.annotated = t.Annotations()
	progress("tailnet: %d devices go offline", deaths)
	if cost.seen, err = t.Deaths(ctx, deaths, deathPause); err != nil {
		return cost, err
	}
	progress("tailnet: seen after %s at the median, %s at most", median(cost.seen), slices.Max(cost.seen))
	// At the end: a peak in memory includes all before.
	if cost.memory, err = t.Memory(); err != nil {
		return cost, err
	}
	progress("tailnet: a node joins")
	if cost.netmap, cost.node, err = t.Netmap(ctx, deaths); err != nil {
		return cost, errors.Wrap(err, "cannot measure a node")
	}
	progress("tailnet: the node sees a death after %s at the median, and has %.0f MiB", median(cost.netmap), cost.node.RSS)
	return cost, nil
}

// tailnetResults compares a large tailnet with a small one.
func tailnetResults(few, many tailnetCost) []Result {
	share := func(total float64, c tailnetCost) float64 {
		return total / float64(c.size.Devices+c.size.Services) * 1000
	}
	const mib = mebibyte
	seen := percentile(many.seen, 99).Seconds()
	netmap := compared("scale.tailnet_death_seen_by_netmap_p99_s", percentile(many.netmap, 99).Seconds(), seen, "s", maxNetmapDeath/float64(maxDeath))
	return []Result{
		compared("scale.tailnet_poll_mib_per_1000", share(many.poll.Bytes/mib, many), share(few.poll.Bytes/mib, few), "MiB", maxPerObject),
		plain("scale.tailnet_poll_seconds", many.poll.Took.Seconds(), "s", maxPollSeconds),
		plain("scale.tailnet_poll_lists", many.poll.Lists, "calls", goalLists),
		plain("scale.tailnet_poll_writes", many.poll.Writes, "calls", 0),
		plain("scale.tailnet_poll_processor_s", many.poll.Processor.Seconds(), "s", maxPollProcessor),
		compared("scale.tailnet_poll_processor_per_1000", share(many.poll.Processor.Seconds()*1000, many), share(few.poll.Processor.Seconds()*1000, few), "ms", maxPerObject),
		plain("scale.tailnet_rss_mib", many.memory.RSS, "MiB", maxTailnetMemory),
		plain("scale.tailnet_rss_peak_mib", many.memory.Peak, "MiB", maxTailnetMemory),
		plain("scale.tailnet_annotation_bytes_max", float64(many.annotation), "bytes", maxAnnotation),
		plain("scale.tailnet_annotations_bytes_mean", float64(many.annotated), "bytes", maxAnnotation),
		plain("scale.tailnet_death_seen_p99_s", seen, "s", maxDeath),
		netmap,
		compared(fmt.Sprintf("scale.tailnet_netmap_rss_%d_devices", many.size.Devices), many.node.RSS, many.memory.RSS, "MiB", 1),
	}
}
