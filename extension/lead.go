// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
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

// A leader runs the duties of a single replica while this replica holds the Lease.
type leader struct {
	lock resourcelock.Interface

	// duties end when their context does.
	duties []func(ctx context.Context)
}

// leaseOf returns the Lease of the replicas that serve one Gateway, or all.
func leaseOf(gateway *types.NamespacedName) string {
	if gateway == nil {
		return leaseName
	}
	return names.ExtensionLease(gateway.Name)
}

// newLeader returns a leader whose Lease is in a namespace.
func newLeader(cfg *rest.Config, namespace, lease string) (*leader, error) {
	leases, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a client of the Kubernetes API")
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, errors.Wrap(err, "cannot get the name of this host")
	}
	return &leader{lock: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: lease},
		Client:     leases.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}}, nil
}

// run takes part in the election until ctx ends. synced is closed when all objects are known.
func (l *leader) run(ctx context.Context, synced <-chan struct{}) error {
	select {
	case <-ctx.Done():
		return nil
	case <-synced:
	}
	e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: l.lock, LeaseDuration: leaseTime, RenewDeadline: renewTime, RetryPeriod: tryTime,
		ReleaseOnCancel: true, Name: l.lock.Describe(),
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: l.lead, OnStoppedLeading: func() {}},
	})
	if err != nil {
		return errors.Wrap(err, "cannot set up leader election")
	}
	for ctx.Err() == nil {
		// Run also ends when the Lease is lost.
		e.Run(ctx)
	}
	return nil
}

func (l *leader) lead(ctx context.Context) {
	g := errgroup.Group{}
	for _, duty := range l.duties {
		g.Go(func() error {
			duty(ctx)
			return nil
		})
	}
	_ = g.Wait() // Duties log their failures.
}
