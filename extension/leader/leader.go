// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package leader selects the replica that runs duties of which there is one for all replicas, such as
// writing reports. A replica without the Lease continues to serve.
package leader

import (
	"context"
	"os"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

const (
	// leaseName is the Lease that selects the replica that writes reports. The first reports were
	// those of health.
	leaseName = "tailscale-gateway-extension-health"

	// A holder that does not renew the Lease for leaseTime has lost it; it renews within renewTime,
	// each tryTime. These are the defaults of Kubernetes' own components.
	leaseTime = 15 * time.Second
	renewTime = 10 * time.Second
	tryTime   = 2 * time.Second
)

// A Duty is work of a single replica. It ends when its context does, and logs its failures.
type Duty func(ctx context.Context)

// A Leader runs duties while this replica holds the Lease.
type Leader struct {
	lock   resourcelock.Interface
	duties []Duty
}

// leaseOf returns the Lease of the replicas that serve one Gateway, or all.
func leaseOf(gateway *types.NamespacedName) string {
	if gateway == nil {
		return leaseName
	}
	return names.ExtensionLease(gateway.Name)
}

// New returns a Leader that Run starts. Its Lease is in a namespace, and belongs to the replicas that
// serve a Gateway; nil stands for all Gateways.
func New(cfg *rest.Config, namespace string, gateway *types.NamespacedName, duties []Duty) (*Leader, error) {
	leases, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a client of the Kubernetes API")
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, errors.Wrap(err, "cannot get the name of this host")
	}
	return &Leader{duties: duties, lock: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: leaseOf(gateway)},
		Client:     leases.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}}, nil
}

// Run takes part in the election until ctx ends. It returns when the duties have ended, and frees the Lease
// only then, so that no other replica begins them before.
func (l *Leader) Run(ctx context.Context) error {
	// A term that nobody has received when ctx ends must not block the election.
	terms := make(chan context.Context, 1)
	e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: l.lock, LeaseDuration: leaseTime, RenewDeadline: renewTime, RetryPeriod: tryTime,
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
