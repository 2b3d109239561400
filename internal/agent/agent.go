// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package agent runs beside tailscaled in every proxy pod. It writes containerboot's files,
// withdraws services whose backends are unhealthy, and reports to the pod's Machine. The
// package ties the parts together: one goroutine that holds all state, and an HTTP server for
// kubelet. Package plan decides what to serve; separate packages probe, write files, and use
// the Kubernetes API and tailscaled's LocalAPI.
package agent

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"tailscale.com/kube/egressservices"
	"tailscale.com/kube/ingressservices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/atomicdir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/kube"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/probe"
)

// Options are the options of an agent.
type Options struct {
	// PodName is the name of the pod and of its Machine.
	PodName string

	// PodNamespace is the namespace of the Machine, its Secrets and the ServiceAttachments.
	PodNamespace string

	// PodIP is the pod's address, which the agent reports.
	PodIP string

	// Endpoints is the name of the TailscaleEndpoints whose ServiceAttachments the agent serves.
	Endpoints string

	// TailscaledConfigDir is the directory where containerboot looks for tailscaled's config
	// (TS_EXPERIMENTAL_VERSIONED_CONFIG_DIR).
	TailscaledConfigDir string

	// TLSDir is the directory of the certificates in use, for an agent that starts again while the
	// API server is unavailable. It holds their private keys, so it is a volume in memory. It is a
	// separate volume, so that certificates that fill it do not prevent other files from being
	// written.
	TLSDir string

	// ACMEDirectory is the URL of the ACME directory that tailscaled is configured with. Empty means
	// that it is not known to be another than Let's Encrypt's.
	ACMEDirectory string

	// ServeConfigPath is where containerboot looks for the serve config (TS_SERVE_CONFIG). Only the
	// agent writes to its directory.
	ServeConfigPath string

	// Control refuses backends by the dialled addresses (net.Dialer). Nil refuses none.
	Control func(network, address string, c syscall.RawConn) error

	// Drain is how long a withdrawn service is still served, so that clients can move to another
	// machine. Control needs up to 15 s to choose one, and notifies clients after that, without an
	// acknowledgement (tailscale.com kube/services/services.go).
	Drain time.Duration

	// Grace is how long kubelet gives the pod to end after SIGTERM. If the pod still runs after
	// that, a drain ends. Zero means no limit.
	Grace time.Duration

	// JoinPatience is how long the first report waits for tailscaled to join: a report before that
	// would contain no news. Zero means that the report does not wait.
	JoinPatience time.Duration

	// Kernel has the options of a pod whose kernel forwards packets to and from tailscaled's
	// interface. Nil means Userspace networking.
	Kernel *KernelOptions

	// Egress has the options of pods that carry traffic into the tailnet.
	Egress EgressOptions

	// DNS has the options of pods that resolve names for the tailnet.
	DNS DNSOptions

	// ContainerbootMetrics is the URL of containerboot's metrics, which the agent requests for
	// kubelet's liveness probe of the tailscale container.
	ContainerbootMetrics string

	// ControlAnswers asks whether the control server in a config of tailscaled answers. Nil means
	// that containerboot starts without waiting for it.
	ControlAnswers func(ctx context.Context, config []byte) error

	// ControlPatience is how long containerboot waits at most for the control server. It must be
	// less than the limit of the agent's startup probe.
	ControlPatience time.Duration

	// StatePatience is how long tailscaled may run while its state is missing in the state Secret.
	// A node that logs in writes its state within seconds.
	StatePatience time.Duration

	// Pauses are the agent's pauses.
	Pauses Pauses
}

// Pauses are how long an agent waits before it acts on states that may be temporary.
type Pauses struct {
	// Retry is how long to wait before a failed step is retried.
	Retry time.Duration

	// Report is how long a change waits for further changes before it is reported.
	Report time.Duration

	// Settle is how long a new tailscaled must run before the agent relies on it. A tailscaled that
	// is being stopped can end its streams and still answer for a moment.
	Settle time.Duration

	// Warm is how long an egress pod that has joined waits for connections to the devices of its
	// targets before it is ready.
	Warm time.Duration

	// Accept is how long a new ingress pod that has joined waits for control to accept it as a host of
	// its services before it is ready. It is longer than acceptPatience, after which the agent
	// advertises a service again.
	Accept time.Duration

	// Primary is how long a service can be without a primary host before the agent reports it.
	// Control takes about 15 s to move the addresses of a service (tailscale.com
	// kube/services/services.go), so that a failover is never reported.
	Primary time.Duration

	// Absence is how long the netmap can lack the node of an open connection into the tailnet before the
	// connection ends. A node that only connects to control again stays in the netmap.
	Absence time.Duration

	// Begin is how long the hook of the tailscale container waits for the agent's hook, which
	// kubelet runs at the same time (k8s.io/kubernetes pkg/kubelet/kuberuntime,
	// killContainersWithSyncResult). When kubelet only restarts the tailscale container, it does
	// not run the agent's hook.
	Begin time.Duration

	// Paths is the time between two counts of the paths to peers.
	Paths time.Duration
}

// DefaultPauses returns the pauses of an agent in a pod.
func DefaultPauses() Pauses {
	return Pauses{
		Retry: 5 * time.Second, Report: kube.DefaultSettle, Settle: 3 * time.Second, Warm: 10 * time.Second, Accept: time.Minute, Primary: time.Minute,
		Absence: time.Minute, Begin: 10 * time.Second, Paths: 5 * time.Minute,
	}
}

// An Agent serves one proxy pod.
type Agent struct {
	opts     Options
	client   client.WithWatch
	local    localapi.Client
	dialer   *localapi.Dialer
	checker  probe.Checker
	log      logging.Logger
	metrics  *Metrics
	health   *health
	commands chan func(*loop)
}

// New returns an Agent that uses the given clients. It does not change anything until Run.
func New(o Options, c client.WithWatch, lc localapi.Client, d *localapi.Dialer, ck probe.Checker, m *Metrics, log logging.Logger) *Agent {
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
	var (
		wg sync.WaitGroup
		lp *loop
	)
	// Close the roles last: until the loop has ended, it may open ports.
	defer func() { lp.roles.close() }()
	defer wg.Wait()
	defer cancel()

	machine := client.ObjectKey{Namespace: a.opts.PodNamespace, Name: a.opts.PodName}
	reporter := kube.NewReporter(a.client, machine, a.log, a.metrics.reported, kube.WithSettle(a.opts.Pauses.Report))
	peers := localapi.NewPeers()
	watching := []localapi.WatcherOption{localapi.WithReloaded(func() {
		a.do(ctx, func(l *loop) { l.drain.withdrawn(time.Now(), a.opts.Drain) })
	})}
	if a.opts.Egress.ConfigMap != "" {
		watching = append(watching, localapi.WithPeers(peers))
	}
	watcher := localapi.NewWatcher(a.local, a.log, func(s localapi.State) {
		a.do(ctx, func(l *loop) { l.setTailnet(s) })
	}, watching...)
	prober := probe.NewProber(a.checker, func() {
		a.do(ctx, func(*loop) {})
	}, probe.WithProbed(a.metrics.probed))

	lp = &loop{
		opts:    a.opts,
		log:     a.log,
		metrics: a.metrics,
		health:  a.health,
		prober:  prober,
		report:  reporter.Set,
		reach: func() {
			go func() {
				err := reporter.Reachable(ctx)
				a.do(ctx, func(l *loop) { l.setReached(time.Now(), err) })
			}()
		},
		reload: watcher.Reload,
		findDestinations: func(d *drain, handlers map[string]plan.Handlers) {
			go func() {
				dsts := destinationsOf(ctx, handlers)
				a.do(ctx, func(*loop) { d.destinations = dsts })
			}()
		},
		logout:     func() { go watcher.Logout(ctx) },
		terminator: a.newTerminator(ctx),
		issuer:     a.newIssuer(ctx),
		forget:     func(keys []string) { a.forget(ctx, keys) },
		offers:     offers{}, readvertising: readvertising{}, routing: routing{},
		hold: hold{
			answers: a.opts.ControlAnswers, patience: a.opts.ControlPatience,
			run: func(fn func(*loop)) { a.do(ctx, fn) },
		},
		config: atomicdir.New(a.opts.TailscaledConfigDir, meta.ConfigKey),
		serve: atomicdir.New(filepath.Dir(a.opts.ServeConfigPath), filepath.Base(a.opts.ServeConfigPath),
			ingressservices.IngressConfigKey, egressservices.KeyEgressServices),
	}
	lp.kernel = newKernel(a.opts.Kernel, lp.serve, func() { a.do(ctx, func(*loop) {}) })
	lp.roles = append(lp.roles, lp.kernel)
	if a.opts.DNS.ConfigMap != "" {
		lp.roles = append(lp.roles, a.newDNS())
	}
	if a.opts.Egress.ConfigMap != "" {
		lp.roles = append(lp.roles, a.newEgress(ctx, peers, lp.kernel))
		// The services of these endpoints are for other pods.
		lp.listed, lp.hosting.done = true, true
	}
	if err := lp.restore(); err != nil {
		return errors.Wrap(err, "cannot read what an earlier run has written")
	}
	if err := lp.terminator.Restore(ctx); err != nil {
		a.log.Info("Ignoring certificates of an earlier run", "error", err)
	}
	a.health.setWaiting("Waiting to read Secret " + a.opts.configSecret().String())

	wg.Go(func() { lp.run(ctx, a.commands) })
	wg.Go(func() { watcher.Run(ctx) })
	wg.Go(func() { reporter.Run(ctx) })
	if a.opts.Pauses.Paths > 0 {
		wg.Go(func() { a.watchPaths(ctx) })
	}
	wg.Go(func() {
		kube.WatchSecret(ctx, a.client, a.opts.configSecret(), func(s *corev1.Secret) {
			a.do(ctx, func(l *loop) { l.setSecret(s) })
		})
	})
	wg.Go(func() {
		kube.WatchSecret(ctx, a.client, a.opts.stateSecret(), func(s *corev1.Secret) {
			a.do(ctx, func(l *loop) { l.setState(s) })
		})
	})
	for _, r := range lp.roles {
		wg.Go(func() { r.watch(ctx, a) })
	}
	if a.opts.Egress.ConfigMap == "" {
		wg.Go(func() {
			kube.WatchAttachments(ctx, a.client, a.opts.PodNamespace, a.opts.Endpoints, func(as []v1alpha1.ServiceAttachment) {
				a.do(ctx, func(l *loop) { l.setAttachments(as) })
			})
		})
	}
	return a.serve(ctx, l, hooks)
}

// do runs fn in the loop, followed by the loop's step.
func (a *Agent) do(ctx context.Context, fn func(*loop)) {
	select {
	case <-ctx.Done():
	case a.commands <- fn:
	}
}

// stateSecret returns the key of the state Secret, which has the pod's name (TS_KUBE_SECRET).
func (o Options) stateSecret() client.ObjectKey {
	return client.ObjectKey{Namespace: o.PodNamespace, Name: o.PodName}
}

func (o Options) egressConfigMap() client.ObjectKey {
	return client.ObjectKey{Namespace: o.PodNamespace, Name: o.Egress.ConfigMap}
}

func (o Options) zoneConfigMap() client.ObjectKey {
	return client.ObjectKey{Namespace: o.PodNamespace, Name: o.DNS.ConfigMap}
}

func (o Options) configSecret() client.ObjectKey {
	return client.ObjectKey{Namespace: o.PodNamespace, Name: o.PodName + meta.ConfigSecretSuffix}
}
