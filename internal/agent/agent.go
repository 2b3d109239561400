// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package agent runs beside tailscaled in every proxy pod. It gives containerboot
// its files, withdraws services whose backends are unhealthy, and reports to the pod's
// Machine. Here is what ties its parts together: one goroutine that holds all
// state, and an HTTP server for kubelet. What to serve is decided in package plan;
// probing, writing, the Kubernetes API and tailscaled's LocalAPI have packages of
// their own.
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
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/network"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/probe"
)

// Options of an agent.
type Options struct {
	// PodName is the name of the pod and of its Machine.
	PodName string

	// PodNamespace is where the Machine, its Secrets and the ServiceAttachments
	// are.
	PodNamespace string

	// PodIP is reported.
	PodIP string

	// Endpoints is the TailscaleEndpoints whose ServiceAttachments to act on.
	Endpoints string

	// TailscaledConfigDir is where containerboot looks for tailscaled's config
	// (TS_EXPERIMENTAL_VERSIONED_CONFIG_DIR).
	TailscaledConfigDir string

	// TLSDir is where the certificates in use are kept, for an agent that starts again
	// while the API server is away. Their keys are there, so it is a volume in memory,
	// and one of its own: certificates that fill it keep nothing else from being
	// written.
	TLSDir string

	// ServeConfigPath is where containerboot looks for the serve config
	// (TS_SERVE_CONFIG). The agent has its directory to itself.
	ServeConfigPath string

	// Control refuses backends by the addresses that are dialled (net.Dialer). Nil
	// refuses none.
	Control func(network, address string, c syscall.RawConn) error

	// Drain is how long a withdrawn service is still served: how long clients
	// are given to move to another machine. Control needs up to 15 s to choose
	// one, and clients hear of it after that, without an acknowledgement
	// (tailscale.com kube/services/services.go).
	Drain time.Duration

	// Grace is how long kubelet gives the pod to end after SIGTERM. A drain ends
	// when the pod runs on after that. Zero waits for ever.
	Grace time.Duration

	// JoinPatience is how long the first report waits for tailscaled to join:
	// what it would say till then is what everyone expects. Zero is no time.
	JoinPatience time.Duration

	// Kernel reports that the kernel forwards packets to and from tailscaled's
	// interface.
	Kernel bool

	// ForgetUDP has the kernel forget flows of UDP that go elsewhere than containerboot
	// has set up (network.ForgetUDP). It is called with Kernel alone. Nil leaves them.
	ForgetUDP func(network.Translations) (uint, error)

	// Egress is for pods that carry traffic into the tailnet.
	Egress EgressOptions

	// DNS is for pods that resolve names for the tailnet.
	DNS DNSOptions

	// StatePatience is how long tailscaled may run without its state in the state
	// Secret. A node that logs in writes it there within seconds.
	StatePatience time.Duration

	// Pauses that the agent makes.
	Pauses Pauses
}

// Pauses are how long an agent waits before it acts on what may not last.
type Pauses struct {
	// Retry is how long to wait before a step that failed is tried again.
	Retry time.Duration

	// Report is how long a change waits for others before it is reported.
	Report time.Duration

	// Settle is how long a new tailscaled must run until it is taken for one that
	// stays. One that is being stopped may end its streams, and still answer again
	// for a moment.
	Settle time.Duration

	// Begin is how long the hook of the tailscale container waits for that of the
	// agent, which kubelet runs at the same time (k8s.io/kubernetes
	// pkg/kubelet/kuberuntime, killContainersWithSyncResult). When it only restarts
	// the tailscale container it runs no hook of the agent.
	Begin time.Duration
}

// DefaultPauses are those of an agent in a pod.
func DefaultPauses() Pauses {
	return Pauses{Retry: 5 * time.Second, Report: kube.DefaultSettle, Settle: 3 * time.Second, Begin: 10 * time.Second}
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

// New returns an Agent that uses the clients given. It touches nothing yet.
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

// Run serves probes and metrics on l, and hooks of the pod's own processes on hooks, and
// keeps the pod as it should be, until ctx ends or a server fails. The directories stay as they are then: tailscaled outlives its
// agent.
func (a *Agent) Run(ctx context.Context, l, hooks net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var (
		wg sync.WaitGroup
		lp *loop
	)
	// Last: until it has ended, the loop may open ports.
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
				to := destinationsOf(ctx, handlers)
				a.do(ctx, func(*loop) { d.destinations = to })
			}()
		},
		logout:     func() { go watcher.Logout(ctx) },
		terminator: a.newTerminator(ctx),
		issuer:     a.newIssuer(ctx),
		offers:     offers{}, readvertising: readvertising{},
		config: atomicdir.New(a.opts.TailscaledConfigDir, meta.ConfigKey),
		serve: atomicdir.New(filepath.Dir(a.opts.ServeConfigPath), filepath.Base(a.opts.ServeConfigPath),
			ingressservices.IngressConfigKey, egressservices.KeyEgressServices),
	}
	lp.kernel = newKernel(a.opts.Kernel, lp.serve, a.opts.ForgetUDP, func() { a.do(ctx, func(*loop) {}) })
	lp.roles = append(lp.roles, lp.kernel)
	if a.opts.DNS.ConfigMap != "" {
		lp.roles = append(lp.roles, a.newDNS())
	}
	if a.opts.Egress.ConfigMap != "" {
		lp.roles = append(lp.roles, a.newEgress(ctx, peers, lp.kernel))
		// The services of its endpoints are for other pods.
		lp.listed = true
	}
	if err := lp.restore(); err != nil {
		return errors.Wrap(err, "cannot read what an earlier run has written")
	}
	if err := lp.terminator.Restore(ctx); err != nil {
		a.log.Info("Ignoring certificates of an earlier run", "error", err)
	}
	a.health.setWaiting("Waiting for the API server to tell of Secret " + a.opts.configSecret().String())

	wg.Go(func() { lp.run(ctx, a.commands) })
	wg.Go(func() { watcher.Run(ctx) })
	wg.Go(func() { reporter.Run(ctx) })
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

// do has the loop run fn, and then do what follows from it.
func (a *Agent) do(ctx context.Context, fn func(*loop)) {
	select {
	case <-ctx.Done():
	case a.commands <- fn:
	}
}

// stateSecret is the pod's namesake (TS_KUBE_SECRET).
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
