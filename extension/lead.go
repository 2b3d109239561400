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
	// leaseName of the Lease by which replicas settle who writes reports. The first of
	// them were of health.
	leaseName = "tailscale-gateway-extension-health"

	// Who does not renew the Lease for leaseTime has lost it; it is renewed within
	// renewTime, each tryTime. They are the defaults of Kubernetes' own components.
	leaseTime = 15 * time.Second
	renewTime = 10 * time.Second
	tryTime   = 2 * time.Second
)

// A leader does what one replica alone is to do, while this is the one.
type leader struct {
	lock resourcelock.Interface

	// duties end when their context does.
	duties []func(ctx context.Context)
}

// leaseOf replicas that serve one Gateway alone, or all.
func leaseOf(only *types.NamespacedName) string {
	if only == nil {
		return leaseName
	}
	return names.ExtensionLease(only.Name)
}

// newLeader returns one whose Lease is in a namespace.
func newLeader(cfg *rest.Config, namespace, lease string) (*leader, error) {
	leases, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a client of the Kubernetes API")
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, errors.Wrap(err, "cannot tell the name of this host")
	}
	return &leader{lock: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: lease},
		Client:     leases.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}}, nil
}

// run until ctx ends. Synced is closed when all is known.
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
		return errors.Wrap(err, "cannot elect who writes reports")
	}
	for ctx.Err() == nil {
		// It ends when the Lease is lost, too.
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
	_ = g.Wait() // Duties tell of failures themselves.
}
