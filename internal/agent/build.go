// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"tailscale.com/kube/egressservices"
	"tailscale.com/kube/ingressservices"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/atomicdir"
	carrier "github.com/tailscale-gateway/tailscale-gateway/internal/agent/egress"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/issue"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/kube"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/nameserver"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/terminate"
	"github.com/tailscale-gateway/tailscale-gateway/internal/egress"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/probe"
	"github.com/tailscale-gateway/tailscale-gateway/internal/zone"
)

// fileTLS is the only file in Options.TLSDir.
const fileTLS = "tls.json"

// newWatcher returns the watcher of tailscaled, which fills peers in an egress pod.
func (a *Agent) newWatcher(ctx context.Context, peers *localapi.Peers) *localapi.Watcher {
	o := []localapi.WatcherOption{localapi.WithReloaded(func(request time.Time) {
		a.do(ctx, func(l *loop) {
			l.drains.current.withdrawn(time.Now())
			l.requests.remedy.absence.reloaded(request, time.Now())
			l.readvertise.services.reloaded(request, time.Now())
		})
	})}
	if a.opts.Egress.ConfigMap != "" {
		o = append(o, localapi.WithPeers(peers))
	}
	return localapi.NewWatcher(a.local, a.log, func(s localapi.State) {
		a.do(ctx, func(l *loop) { l.setTailnet(s) })
	}, o...)
}

// newLoop returns the loop with the roles of the pod.
func (a *Agent) newLoop(ctx context.Context, w *localapi.Watcher, r *kube.Reporter, peers *localapi.Peers) *loop {
	serve := atomicdir.New(filepath.Dir(a.opts.ServeConfigPath), filepath.Base(a.opts.ServeConfigPath),
		ingressservices.IngressConfigKey, egressservices.KeyEgressServices)
	kernel := newKernel(a.opts.Kernel, serve, func() { a.wake(ctx) })
	retry := &retrier{log: a.log, pause: a.opts.Pauses.Retry}
	api := a.newReachability(ctx, r)
	l := &loop{
		opts:         a.opts,
		log:          a.log,
		metrics:      a.metrics,
		health:       a.health,
		prober:       probe.NewProber(a.checker, func() { a.wake(ctx) }, probe.WithProbed(a.metrics.probed)),
		retry:        retry,
		api:          api,
		tls:          &tlsRole{log: a.log, retry: retry, server: a.newTerminator(ctx)},
		certificates: a.newCertificates(ctx, retry),
		routing:      &routingRole{patience: a.opts.Pauses.Primary, services: routing{}},
		readvertise:  &readvertiseRole{services: readvertising{}},
		hosting:      &hostingRole{log: a.log, patience: a.opts.Pauses.Accept},
		kernel:       kernel,
		recovery: &recoverRole{
			log: a.log, secret: a.opts.stateSecret().String(), patience: a.opts.StatePatience,
			logout: func() { go w.Logout(ctx) },
		},
		drains:  a.newDrains(ctx),
		config:  atomicdir.New(a.opts.TailscaledConfigDir, meta.ConfigKey),
		reload:  w.Reload,
		serving: serving{log: a.log, metrics: a.metrics, api: api, dir: serve, kernel: kernel, move: a.opts.Drain},
		hold: hold{
			answers: a.opts.ControlAnswers, patience: a.opts.ControlPatience, pause: a.opts.Pauses.Retry, log: a.log,
			run: func(fn func()) { a.call(ctx, fn) },
		},
		report: report{set: r.Set, patience: a.opts.JoinPatience},
	}
	others := []role{&witnessRole{
		ping: a.local.Ping, wake: func() { a.wake(ctx) }, peers: peerAddresses{status: a.local.Status}, watches: map[string]*hostWatch{},
	}}
	if a.opts.DNS.ConfigMap != "" {
		others = append(others, a.newDNS(retry))
	}
	if a.opts.Egress.ConfigMap != "" {
		others = append(others, a.newEgress(ctx, peers, kernel, retry, api))
		// The services of these endpoints are for other pods.
		l.listed, l.hosting.done = true, true
	}
	l.setRoles(others...)
	return l
}

// newReachability returns whether the API server answers, as the reporter finds out.
func (a *Agent) newReachability(ctx context.Context, r *kube.Reporter) *reachability {
	out := &reachability{log: a.log, pause: a.opts.Pauses.Retry}
	out.check = func() {
		go func() {
			err := r.Reachable(ctx)
			a.call(ctx, func() { out.set(time.Now(), err) })
		}()
	}
	return out
}

func (a *Agent) newDrains(ctx context.Context) *drainRole {
	return &drainRole{
		log: a.log, move: a.opts.Drain, grace: a.opts.Grace, settle: a.opts.Pauses.Settle,
		find: func(d *drain, handlers map[string]plan.Handlers) {
			go func() {
				dsts := destinationsOf(ctx, handlers)
				a.call(ctx, func() { d.destinations = dsts })
			}()
		},
	}
}

// newTerminator returns the server that terminates TLS with certificates from Secrets.
func (a *Agent) newTerminator(ctx context.Context) *terminate.Server {
	return terminate.New(terminate.Options{
		Watch: func(ctx context.Context, name string, fn func(*corev1.Secret)) {
			kube.WatchSecret(ctx, a.client, types.NamespacedName{Namespace: a.opts.PodNamespace, Name: name}, fn)
		},
		WhoIs:   a.local.WhoIs,
		Control: a.opts.Control,
		Changed: func() { a.wake(ctx) },
		Store:   atomicdir.New(a.opts.TLSDir, fileTLS),
		Log:     a.log,
	})
}

func (a *Agent) newCertificates(ctx context.Context, retry *retrier) *certificateRole {
	return &certificateRole{
		retry:  retry,
		issuer: a.newIssuer(ctx),
		forget: func(keys []string) { a.forget(ctx, keys) },
		secret: a.opts.stateSecret().Name,
		offers: offers{},
	}
}

// newIssuer returns the pod's issuer.
func (a *Agent) newIssuer(ctx context.Context) issuer {
	if !a.opts.issues() {
		return issue.None{}
	}
	return issue.New(ctx, a.local, issue.Options{
		Directory: a.opts.ACMEDirectory,
		Changed:   func() { a.wake(ctx) },
		Attempted: a.metrics.attempted,
		Log:       a.log,
	})
}

// forget removes keys from the state Secret, in the background.
func (a *Agent) forget(ctx context.Context, keys []string) {
	go func() {
		if err := kube.RemoveSecretKeys(ctx, a.client, a.opts.stateSecret(), keys); err != nil && ctx.Err() == nil {
			a.log.Info("Cannot remove expired certificates from the state Secret", "error", err)
		}
	}()
}

// followConfigMap returns a function that calls another one in the loop with each version of a
// ConfigMap.
func (a *Agent) followConfigMap(name string) func(context.Context, func(*corev1.ConfigMap)) {
	return func(ctx context.Context, fn func(*corev1.ConfigMap)) {
		kube.WatchConfigMap(ctx, a.client, types.NamespacedName{Namespace: a.opts.PodNamespace, Name: name}, func(cm *corev1.ConfigMap) {
			a.call(ctx, func() { fn(cm) })
		})
	}
}

func (a *Agent) newDNS(retry *retrier) *dnsRole {
	return &dnsRole{
		opts:   a.opts.DNS,
		kernel: a.opts.Kernel != nil,
		retry:  retry,
		log:    a.log,
		file:   keptFile{dir: atomicdir.New(a.opts.DNS.Dir, zone.ConfigMapKey)},
		follow: a.followConfigMap(a.opts.DNS.ConfigMap),
		server: nameserver.New(a.log, a.metrics.resolved),
	}
}

func (a *Agent) newEgress(ctx context.Context, peers *localapi.Peers, k *kernelRole, retry *retrier, api *reachability) *egressRole {
	wake := func() { a.wake(ctx) }
	e := &egressRole{
		opts:     a.opts.Egress,
		retry:    retry,
		log:      a.log,
		metrics:  a.metrics,
		health:   a.health,
		api:      api,
		find:     peers.Find,
		findIn:   peers.FindFamily,
		resolves: peers.Has,
		domain:   peers.Domain,
		prober:   probe.NewProber(probe.NewDialChecker(a.dialer.DialContext), wake, probe.WithProbed(a.metrics.probed)),
		file:     keptFile{dir: atomicdir.New(a.opts.Egress.Dir, egress.ConfigMapKey)},
		follow:   a.followConfigMap(a.opts.Egress.ConfigMap),
		kernel:   k,
		leaving:  make(map[plan.EgressKey]leavingTarget),
		warm:     warmup{ping: a.local.Ping, run: a.call},
		warmFor:  a.opts.Pauses.Warm,
	}
	if !k.enabled {
		e.server = carrier.NewServer(a.dialer.Dial, a.metrics.egress, a.log, wake, carrier.WithListen(carrier.ListenAt(e.opts.Addresses...)),
			carrier.WithIdleTimeout(e.opts.Idle), carrier.WithTracer(e.opts.Tracer), carrier.WithFollower(peers.Follow, a.opts.Pauses.Absence))
	}
	return e
}
