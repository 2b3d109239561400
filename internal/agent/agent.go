// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package agent runs beside tailscaled in every proxy pod. It writes containerboot's files,
// withdraws services whose backends are unhealthy, and reports to the pod's Machine. The
// package ties the parts together: one goroutine runs a loop and the roles of the pod, which hold
// all state, and an HTTP server answers kubelet. Package plan decides what to serve; separate
// packages probe, write files, and use the Kubernetes API and tailscaled's LocalAPI.
package agent

import (
	"context"
	"net"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/kube"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
	"github.com/tailscale-gateway/tailscale-gateway/internal/probe"
)

// pathsTimeout bounds one look at the peers.
const pathsTimeout = 10 * time.Second

// An Agent serves one proxy pod.
type Agent struct {
	opts     Options
	client   kube.Client
	local    localapi.Client
	dialer   *localapi.Dialer
	checker  probe.Checker
	log      logging.Logger
	metrics  *Metrics
	health   *health
	commands chan func(*loop)
}

// New returns an Agent that uses the given clients. It does not change anything until Run.
func New(o Options, c kube.Client, lc localapi.Client, d *localapi.Dialer, ck probe.Checker, m *Metrics, log logging.Logger) *Agent {
	return &Agent{
		opts:     o,
		client:   c,
		local:    lc,
		dialer:   d,
		checker:  ck,
		log:      log,
		metrics:  m,
		health:   newHealth(),
		commands: make(chan func(*loop)),
	}
}

// Run serves probes and metrics on l, and the hooks for processes of the pod on hooks, and
// keeps the pod in its desired state, until ctx is done or a server fails. It then leaves the
// directories as they are: tailscaled continues to run after its agent.
func (a *Agent) Run(ctx context.Context, l, hooks net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	peers := localapi.NewPeers()
	watcher := a.newWatcher(ctx, peers)
	reporter := kube.NewReporter(a.client, types.NamespacedName{Namespace: a.opts.PodNamespace, Name: a.opts.PodName}, a.log,
		a.metrics.reported, kube.WithSettle(a.opts.Pauses.Report))
	lp := a.newLoop(ctx, watcher, reporter, peers)

	var wg sync.WaitGroup
	// Close the roles last: until the loop has ended, it may open ports.
	defer lp.roles.close()
	defer wg.Wait()
	defer cancel()

	if err := lp.restore(ctx); err != nil {
		return errors.Wrap(err, "cannot read what an earlier run has written")
	}
	a.health.setWaiting("Waiting to read Secret " + a.opts.configSecret().String())

	wg.Go(func() { lp.run(ctx, a.commands) })
	wg.Go(func() { watcher.Run(ctx) })
	wg.Go(func() { reporter.Run(ctx) })
	for _, r := range lp.roles {
		wg.Go(func() { r.watch(ctx) })
	}
	for _, watch := range a.watches() {
		wg.Go(func() { watch(ctx) })
	}
	return a.serve(ctx, l, hooks)
}

// watches returns functions that notify the loop of changes until their context is done, besides the
// watches of tailscaled and of roles.
func (a *Agent) watches() []func(context.Context) {
	out := []func(context.Context){
		func(ctx context.Context) {
			kube.WatchSecret(ctx, a.client, a.opts.configSecret(), func(s *corev1.Secret) {
				a.do(ctx, func(l *loop) { l.setSecret(s) })
			})
		},
		func(ctx context.Context) {
			kube.WatchSecret(ctx, a.client, a.opts.stateSecret(), func(s *corev1.Secret) {
				a.do(ctx, func(l *loop) { l.setState(s) })
			})
		},
	}
	if a.opts.Pauses.Paths > 0 {
		out = append(out, a.watchPaths)
	}
	if a.opts.Egress.ConfigMap == "" {
		out = append(out, func(ctx context.Context) {
			kube.WatchAttachments(ctx, a.client, a.opts.PodNamespace, a.opts.Endpoints, func(as []v1alpha1.ServiceAttachment) {
				a.do(ctx, func(l *loop) { l.setAttachments(as) })
			})
		})
	}
	return out
}

// watchPaths counts how peers are reached, now and then: tailscaled notifies nobody of a path. The
// first count is early, so that a new pod shows its paths.
func (a *Agent) watchPaths(ctx context.Context) {
	pause := a.opts.Pauses.Paths / 5
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = a.opts.Pauses.Paths
		ctxT, cancel := context.WithTimeout(ctx, pathsTimeout)
		st, err := a.local.Status(ctxT)
		cancel()
		if err != nil {
			a.log.Debug("Cannot count paths", "error", err)
			continue
		}
		paths := countPaths(st)
		a.do(ctx, func(l *loop) { l.report.paths = nextPaths(l.report.paths, paths) })
	}
}

// do runs fn in the loop, followed by the loop's step.
func (a *Agent) do(ctx context.Context, fn func(*loop)) {
	select {
	case <-ctx.Done():
	case a.commands <- fn:
	}
}

// call is do for a function that does not need the loop.
func (a *Agent) call(ctx context.Context, fn func()) { a.do(ctx, func(*loop) { fn() }) }

// wake has the loop run its step.
func (a *Agent) wake(ctx context.Context) { a.do(ctx, func(*loop) {}) }
