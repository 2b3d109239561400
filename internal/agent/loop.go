// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/atomicdir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/issue"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/probe"
)

// A loop holds the agent's state. Only the goroutine that runs it accesses it. It has the
// attachments, tailscaled's config and the report; its roles have their own state.
type loop struct {
	opts    Options
	log     logging.Logger
	metrics *Metrics
	health  *health
	prober  *probe.Prober

	// retry has failed steps run again.
	retry *retrier

	// api is whether the API server answers.
	api *reachability

	// roles are the roles of the pod, in the order of their steps. The loop needs what some of them
	// decide.
	roles        roles
	tls          *tlsRole
	certificates *certificateRole
	routing      *routingRole
	readvertise  *readvertiseRole
	hosting      *hostingRole
	kernel       *kernelRole
	recovery     *recoverRole
	drains       *drainRole

	// attachments are those of the endpoints, once listed.
	attachments []v1alpha1.ServiceAttachment
	listed      bool

	tailnet localapi.State

	// requests are what the provider requests of this machine.
	requests requests

	// base is tailscaled's config without the advertised services. Nil until known.
	base []byte

	// config is the directory of tailscaled's config. configured reports whether there is one on
	// disk, and advertised are the services that it advertises.
	config     *atomicdir.Dir
	configured bool
	advertised []string

	// reload requests that tailscaled reloads its config.
	reload func()

	// serving is the serve config.
	serving serving

	// hold delays the start of containerboot.
	hold hold

	// report is what is reported to the pod's Machine.
	report report
}

// setRoles sets the roles of the pod, with those that not all pods have.
func (l *loop) setRoles(others ...role) {
	l.roles = roles{l.tls, l.certificates, l.routing, l.readvertise, l.hosting, l.kernel}
	l.roles = append(append(l.roles, others...), l.recovery, l.drains)
	l.drains.connected = func() bool { return l.roles.busy() }
}

// facts returns what is known at a time, with the plan of services.
func (l *loop) facts(at time.Time, services []plan.Service) facts {
	return facts{
		tailnet:     l.tailnet,
		attachments: l.attachments,
		services:    services,
		listed:      l.listed,
		base:        l.base,
		advertised:  l.advertised,
		handlers:    l.serving.handlers,
		stateSeen:   l.recovery.seen,
		stateLost:   l.recovery.lost,
		watched:     l.requests.watched,
		handover:    l.requests.handover,
		draining:    l.drains.current != nil,
		closing:     l.drains.current.closing(at),
	}
}

// restore loads what an earlier run of the agent in this pod has written, so that a restart by
// itself changes nothing.
func (l *loop) restore(ctx context.Context) error {
	if err := l.roles.restore(ctx); err != nil {
		return err
	}
	b, err := l.config.Read()
	if err != nil {
		return err
	}
	if b != nil {
		if l.advertised, err = plan.AdvertisedIn(b); err != nil {
			// The config is written again as soon as the Secret is known.
			l.log.Info("Ignoring tailscaled's config of an earlier run", "error", err)
		} else {
			l.base, l.configured, l.hosting.done = b, true, true
		}
	}
	return l.serving.restore()
}

// run handles commands until ctx ends.
func (l *loop) run(ctx context.Context, commands <-chan func(*loop)) {
	// A restarted agent counts as started as soon as it has read its own files.
	next := l.step(ctx, time.Now())
	for {
		var timer <-chan time.Time
		if !next.IsZero() {
			timer = time.After(time.Until(next))
		}
		select {
		case <-ctx.Done():
			return
		case fn := <-commands:
			fn(l)
		case <-timer:
		}
		next = l.step(ctx, time.Now())
	}
}

// setSecret reads tailscaled's config from the config Secret. A Secret that is missing or
// invalid changes nothing: the written config is the best one available.
func (l *loop) setSecret(s *corev1.Secret) {
	name := l.opts.configSecret().String()
	if s == nil {
		l.log.Info("Waiting for config Secret", "secret", name)
		l.health.setWaiting("Waiting for Secret " + name + " to be made by the provider")
		return
	}
	if err := l.requests.read(s.GetAnnotations(), l.tailnet); err != nil {
		l.log.Info("Ignoring what the provider asks for", "secret", name, "error", err)
	}
	b := s.Data[meta.ConfigKey]
	if _, err := plan.TailscaledConfig(b, nil); err != nil {
		l.log.Info("Cannot use config Secret", "secret", name, "key", meta.ConfigKey, "error", err)
		l.health.setWaiting("Secret " + name + ": cannot use key " + meta.ConfigKey + ": " + err.Error())
		return
	}
	if l.base == nil {
		l.log.Info("Found config Secret", "secret", name)
	}
	l.base = b
}

// setState passes the state Secret, which is nil if there is none, to the roles: whether it holds a
// node's identity, which rules containerboot has set up, and what it holds of certificates.
func (l *loop) setState(s *corev1.Secret) {
	if err := l.kernel.setState(s, l.opts.PodIP); err != nil {
		l.log.Info("Cannot act on what containerboot has set up", "secret", l.opts.stateSecret().String(), "error", err)
	}
	l.certificates.store.set(s)
	l.recovery.setState(s)
}

func (l *loop) setAttachments(as []v1alpha1.ServiceAttachment) {
	l.attachments, l.listed = as, true
}

func (l *loop) setTailnet(s localapi.State) {
	l.tailnet, l.report.version = s, cmp.Or(s.Version, l.report.version)
}

// step updates files and reports. It returns when to call it again if nothing changes, or zero.
func (l *loop) step(ctx context.Context, at time.Time) time.Time {
	l.retry.due = time.Time{}
	services := l.services(ctx, at)
	if l.listed {
		l.roles.prepare(ctx, at, l.facts(at, services))
	}
	// The serve config of an earlier run stays until attachments are listed.
	if l.listed || l.serving.handlers == nil {
		if err := l.serving.write(at, services); err != nil {
			l.retry.failed(at, "Cannot write serve config", err)
		}
	}
	if l.listed {
		l.takeRemedy(at)
	}
	if err := l.writeConfig(at, l.facts(at, services)); err != nil {
		l.retry.failed(at, "Cannot write tailscaled's config", err)
	}

	f := l.facts(at, services)
	f.certificates = l.tls.server.Certificates()
	due := l.roles.step(ctx, at, f)
	due = append(due, l.updateHealth(ctx, at, f))
	if reason := l.drains.resumption(at); reason != "" {
		l.log.Info(reason)
		l.drains.end()
		return l.step(ctx, at)
	}
	due = append(due, l.updateReport(at, f), l.retry.due, l.api.checkAgain, l.requests.due(at))
	return earliest(at, slices.AppendSeq(due, maps.Values(l.serving.leaving))...)
}

// services returns the plan of services. It is nil until attachments were listed.
func (l *loop) services(ctx context.Context, at time.Time) []plan.Service {
	if !l.listed {
		return nil
	}
	f := l.facts(at, nil)
	certificates, issued := l.tls.server.Certificates(), l.certificates.issuer.Statuses()
	input := plan.Input{
		Attachments:  l.attachments,
		Health:       l.prober.Statuses(),
		Advertised:   l.advertised,
		Serving:      l.serving.handlers,
		Certificates: certificates,
		Issuer:       l.opts.issuer(),
		Issuing:      l.certificates.issuing(issued),
		Offered:      l.certificates.offered(ctx, at, f.https(), certificates, issued),
		HTTPS:        f.https(),
		Anonymous:    l.tls.anonymous(l.tailnet.Version),
		Withdrawn:    l.requests.withdrawals.at(at),
		Stopping:     f.draining && !l.drains.current.holds(),
		At:           at,
	}
	services := l.kernel.forward(ctx, plan.Services(input), f)
	l.prober.Set(ctx, plan.Targets(services))
	return services
}

// takeRemedy takes the action that the provider has requested for a service without a primary host.
func (l *loop) takeRemedy(at time.Time) {
	remedy := &l.requests.remedy
	switch remedy.step(at, l.routing.services.isDead, l.drains.current == nil && l.tailnet.Running) {
	case v1alpha1.RemedyActionAdvertise:
		l.log.Info("Withdrawing a service for a moment, because no host of it is primary", "service", remedy.request.Service)
	case v1alpha1.RemedyActionRestart:
		l.log.Info("Restarting tailscaled, because no host of a service is primary", "service", remedy.request.Service)
		l.startDrain(at)
		l.drains.current.deadline = at.Add(restartPatience)
	}
}

// startDrain begins a drain, unless there is one, and returns a channel that is closed when clients
// have had time to move.
func (l *loop) startDrain(at time.Time) <-chan struct{} {
	if d := l.drains.current; d != nil {
		return d.done
	}
	d := l.drains.begin(at, l.facts(at, nil))
	if d.holds() {
		l.report.stop(d.start)
	}
	l.roles.drain(at, d)
	l.log.Info("Withdrawing all services before tailscaled stops", "services", l.advertised,
		"drain", d.moveEnd.Sub(at).String(), "limit", d.limit().Sub(at).String())
	return d.done
}

// writeConfig writes tailscaled's config.
func (l *loop) writeConfig(at time.Time, f facts) error {
	if l.base == nil {
		return nil
	}
	advertise := l.advertised
	switch {
	case f.draining:
		advertise = l.drains.held(at, f)
	case f.listed:
		advertise = l.advertisable(at, f)
	}

	b, err := plan.TailscaledConfig(l.base, advertise)
	if err != nil {
		return err
	}
	changed, err := l.config.Write(b)
	if err != nil {
		return err
	}
	l.configured = true
	if !changed {
		l.advertised = advertise
		return nil
	}
	l.metrics.wrote(fileConfig)
	if slices.Equal(l.advertised, advertise) {
		l.log.Debug("Wrote tailscaled's config")
	} else {
		l.log.Info("Advertising services", "services", advertise)
	}
	l.advertised = advertise
	l.reload()
	return nil
}

// advertisable returns the services to advertise: those of the plan, without the ones that the serve
// config lacks, because control could not learn their ports, and without those that are withdrawn for
// a moment because control does not accept the machine for them, or has made no host of them primary.
func (l *loop) advertisable(at time.Time, f facts) []string {
	names := slices.DeleteFunc(plan.Advertised(f.services), func(n string) bool { return !l.serving.has(n) })
	names = l.readvertise.persist(at, names, f.tailnet)
	return slices.DeleteFunc(names, func(n string) bool { return n == l.requests.remedy.withdrawn })
}

// updateHealth updates the answers to kubelet's probes. It returns when they may change, or zero.
func (l *loop) updateHealth(ctx context.Context, at time.Time, f facts) time.Time {
	started := l.serving.handlers != nil && l.configured && l.roles.started()
	var due time.Time
	if started {
		var wait bool
		if wait, due = l.hold.step(ctx, at, f); wait {
			started = false
			l.health.setWaiting(l.hold.waiting())
		}
	}
	// A probe in between must not find a pod that has started, and no reason why it is not ready.
	l.health.setUnready(l.roles.unready())
	l.health.set(started, f.draining)

	remedy := &l.requests.remedy
	remedy.restart = remedy.restart && f.draining
	l.health.setRestart(l.requests.restart.due(f.tailnet) || remedy.restart && l.drains.current.over())
	return due
}

// updateReport reports the state of the machine. It returns when to report a change that nothing
// notifies of, or zero.
func (l *loop) updateReport(at time.Time, f facts) time.Time {
	problem := cmp.Or(l.hold.problem(), plainText(f.tailnet.LoginError))
	due := l.report.login.step(at, f.tailnet.Running, problem, l.report.patience)
	if !f.listed || !l.roles.started() {
		return earliest(at, due, l.report.start)
	}
	l.report.step(at, f.tailnet.Running)
	if !l.report.allowed(at, f.draining) {
		return earliest(at, due, l.report.start)
	}
	routed := l.routing.services.states()
	status := plan.Status(l.opts.PodIP, f.services, plan.Tailnet{
		Running: f.tailnet.Running, Accepted: f.tailnet.Accepted, AcceptedKnown: f.tailnet.AcceptedKnown, Routed: routed,
		Readvertised: l.readvertise.services.counts(), Version: l.report.version, Polled: f.tailnet.Polled,
		Served: plan.Served(f.handlers, l.kernel.forwards),
	})
	status.NodeName = l.opts.NodeName
	status.Paths = l.report.paths
	status.LoginError = l.report.login.text
	l.roles.report(status)
	l.report.publish(status)
	l.metrics.services(f.services, f.tailnet.Accepted, routed, l.routing.primaries)
	states, expiry := l.certificates.counts(f.certificates)
	l.metrics.certificates(states, expiry, issue.Size(l.certificates.store.data))
	return earliest(at, due, l.report.start)
}

// earliest returns the earliest of the times after at, or zero.
func earliest(at time.Time, times ...time.Time) time.Time {
	var out time.Time
	for _, t := range times {
		if t.After(at) && (out.IsZero() || t.Before(out)) {
			out = t
		}
	}
	return out
}
