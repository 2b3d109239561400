// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/sidebyside"
)

// maxCut is the number of requests that each move of a service's addresses may cut, because they
// are in flight at that time: one, with 25 new connections a second that take up to 40 ms each on a
// busy machine.
const maxCut = 1

// drainSets is the number of sets of two ingress pods that are drained in parallel, one pod of each
// at a time. A deletion takes about 50 s, of which Tailscale moves a service's addresses for 15 s and the
// provider reads its hosts for up to a minute. With three sets, two cores have outages that are not of
// the proxies: control takes nodes for offline, and a service whose pods stay loses requests, too.
const drainSets = 2

// drain deletes ingress pods on an overloaded machine while new connections arrive.
func (c *cli) drain(ctx context.Context, lab *sidebyside.Lab) ([]Result, error) {
	sets := make([]*sidebyside.Ours, drainSets)
	for i := range sets {
		sets[i] = sidebyside.NewOurs(lab, fmt.Sprintf("set%d", i), c.Networking)
		if err := sets[i].InstallIngress(ctx); err != nil {
			return nil, err
		}
	}
	untouched := sidebyside.NewOurs(lab, "untouched", c.Networking)
	if err := untouched.InstallIngress(ctx); err != nil {
		return nil, err
	}
	j, err := lab.NewJournal(filepath.Join(c.Logs, "drain"))
	if err != nil {
		return nil, err
	}
	stay, err := untouched.Untouched(ctx, c.Deletions)
	if err != nil {
		return nil, err
	}
	idle := busy(2 * runtime.NumCPU())
	defer idle()
	progress("drain: %d deletions; %s", c.Deletions, load())
	var (
		d   sidebyside.Drained
		mu  sync.Mutex
		all errgroup.Group
	)
	for i, s := range sets {
		all.Go(func() error {
			// The sum of all sets is the number in the flag.
			n := (c.Deletions + i) / len(sets)
			drained, err := s.Drain(ctx, n, j)
			mu.Lock()
			defer mu.Unlock()
			d.Add(drained)
			return err
		})
	}
	err = all.Wait()
	outages, stopped := stay()
	progress("drain: %d deletions, %d moves, %d requests, %d lost, %d cut by a move, the longest deletion took %s; %s",
		d.Deletions, d.Moves, d.Requests, len(d.Lost), len(d.Cut), d.Longest.Round(time.Second), load())
	for _, f := range d.Lost {
		progress("drain: lost: %s", f)
	}
	for _, f := range d.Cut {
		progress("drain: cut by a move: %s", f)
	}
	for _, f := range outages {
		progress("drain: lost by the service whose pods stay: %s", f)
	}
	// Programs of the lab, whose names have that of the tailnet.
	closed := j.Close(context.WithoutCancel(ctx), []string{"tailnetsim-one", "client-one-client", "kubelet-one"}, sets[0].Controllers())
	progress("drain: the logs of the pods and of what decides on them are in %s", filepath.Join(c.Logs, "drain"))
	return []Result{
		plain("drain.lost_requests", float64(len(d.Lost)), "requests", 0),
		plain("drain.cut_by_moves", float64(len(d.Cut)), "requests", float64(maxCut*d.Moves)),
		plain("drain.untouched_lost_requests", float64(len(outages)), "requests", 0),
	}, errors.Join(err, stopped, closed)
}

// busy keeps this many threads of the process busy until the returned function is called.
func busy(threads int) func() {
	previous := runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + threads)
	var done atomic.Bool
	for range threads {
		go func() {
			for !done.Load() {
			}
		}()
	}
	return func() {
		done.Store(true)
		runtime.GOMAXPROCS(previous)
	}
}
