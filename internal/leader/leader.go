// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package leader selects the replica that runs duties of which there is one for all replicas, such as
// writing reports. A replica without the Lease continues with everything else.
package leader

import (
	"context"
	"os"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Timing is how a Lease is kept. A holder that does not renew it for Lease has lost it; it renews within
// Renew, each Try.
type Timing struct{ Lease, Renew, Try time.Duration }

// DefaultTiming returns the timing of Kubernetes' own components.
func DefaultTiming() Timing {
	return Timing{Lease: 15 * time.Second, Renew: 10 * time.Second, Try: 2 * time.Second}
}

// A Duty is work of a single replica. It ends when its context does, and logs its failures.
type Duty func(ctx context.Context)

// A Leader runs duties while this replica holds the Lease.
type Leader struct {
	lock   resourcelock.Interface
	timing Timing
	duties []Duty
}

// New returns a Leader that Run starts, of the replicas that contend for a Lease of a namespace.
func New(cfg *rest.Config, namespace, lease string, t Timing, duties []Duty) (*Leader, error) {
	leases, err := typedcoordinationv1.NewForConfig(cfg)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a client of the Kubernetes API")
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, errors.Wrap(err, "cannot get the name of this host")
	}
	return &Leader{timing: t, duties: duties, lock: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: lease},
		Client:     leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}}, nil
}

// Run takes part in the election until ctx ends. It returns when the duties have ended, and frees the Lease
// only then, so that no other replica begins them before.
func (l *Leader) Run(ctx context.Context) error {
	// A term that nobody has received when ctx ends must not block the election.
	terms := make(chan context.Context, 1)
	e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: l.lock, LeaseDuration: l.timing.Lease, RenewDeadline: l.timing.Renew, RetryPeriod: l.timing.Try,
		ReleaseOnCancel: true, Name: l.lock.Describe(),
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(term context.Context) { terms <- term },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return errors.Wrap(err, "cannot set up leader election")
	}
	// The election renews the Lease while the duties end.
	election, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	for ctx.Err() == nil {
		// Run also ends when the Lease is lost.
		var running sync.WaitGroup
		running.Go(func() { e.Run(election) })
		select {
		case term := <-terms:
			l.lead(ctx, term)
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			stop()
		}
		running.Wait()
	}
	return nil
}

// lead runs the duties until ctx or the term ends, and returns when they have ended.
func (l *Leader) lead(ctx, term context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(term, cancel)()
	var running sync.WaitGroup
	for _, duty := range l.duties {
		running.Go(func() { duty(ctx) })
	}
	<-ctx.Done()
	running.Wait()
}
