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
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/terminate"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/probe"
)

// A loop holds the agent's state. Only the goroutine that runs it accesses it.
type loop struct {
	opts       Options
	log        logging.Logger
	metrics    *Metrics
	health     *health
	prober     *probe.Prober
	terminator *terminate.Server

	// issuer gets certificates, and forget removes keys from the state Secret, where they are. Only
	// one pod of the group has an issuer that gets any.
	issuer issuer
	forget func(keys []string)
	store  store

	config *atomicdir.Dir
	serve  *atomicdir.Dir

	// roles are the roles of the pod, including the kernel's.
	roles  roles
	kernel *kernelLoop

	// report sets the status to report, and reported is the last one. Nil if there was none.
	report   func(*v1alpha1.MachineAgentStatus)
	reported *v1alpha1.MachineAgentStatus

	// reach checks in the background whether the API server answers, and calls setReached with the
	// result.
	reach func()

	// reload requests that tailscaled reloads its config.
	reload func()

	// logout logs tailscaled out of its tailnet.
	logout func()

	// base is tailscaled's config without the advertised services. Nil until known.
	base []byte

	// attachments are those of the endpoints, once listed.
	attachments []v1alpha1.ServiceAttachment
	listed      bool

	tailnet localapi.State

	// version is the last version that tailscaled reported. The image of a pod does not change, and a
	// tailscaled that cannot log in may run for moments only.
	version string

	// stateLost reports that the state Secret was seen without a node's identity. If tailscaled
	// continues without one, it is logged out at logoutAt.
	stateLost bool
	logoutAt  time.Time

	// stateKnown reports whether the state Secret, or that there is none, was seen.
	stateKnown bool

	// hosting delays the readiness of the pod.
	hosting hosting

	// hold delays the start of containerboot.
	hold hold

	// restart is the provider's request to restart the tailscale container.
	restart restart

	// login is the login error to report.
	login loginReport

	// advertised are the services that the config on disk advertises.
	advertised []string

	// configured reports whether there is a config on disk.
	configured bool

	// handlers are the handlers of the serve config on disk. Nil until there is one.
	handlers map[string]plan.Handlers

	// leaving are services that are no longer wanted, and when to stop serving them.
	leaving map[string]time.Time

	// drain is the drain of a pod that is being stopped, under way or over.
	drain *drain

	// findDestinations resolves the addresses in handlers for a drain.
	findDestinations func(d *drain, handlers map[string]plan.Handlers)

	// begun is closed when a drain begins. Nil if no hook waits for one.
	begun chan struct{}

	// reaching reports whether a check of the API server is under way. The API server last
	// answered at reachedAt. After a failure the next check is at reachAgain.
	reaching   bool
	reachedAt  time.Time
	reachAgain time.Time

	// retry is when to retry failed steps. Zero if none failed.
	retry time.Time

	// offers are the certificate domains that control does not grant.
	offers offers

	// offerAt is when offers may change. Zero means never.
	offerAt time.Time

	// readvertising are the advertised services that control does not accept yet, and readvertiseAt
	// is when to act on one of them. Zero means never.
	readvertising readvertising
	readvertiseAt time.Time

	// routing has which services have a primary host, and routingAt is when that may change. Zero
	// means never.
	routing   routing
	routingAt time.Time

	// primaries is the number of services that this machine is primary for: a metric and not in the
	// machine's status, which would change with each failover. primarySeen reports whether there
	// was ever one.
	primaries   int
	primarySeen bool

	// remedy is the action that the provider requests for a service without one.
	remedy remedy

	// withdrawals are the services that the provider has withdrawn from this machine.
	withdrawals withdrawals

	// handover is the provider's answer to a pod that is being stopped.
	handover meta.Handover

	// paths are the paths to peers that are reported. Nil while there was no traffic.
	paths *v1alpha1.MachinePaths

	// joined reports whether tailscaled has been in its tailnet. Before that, nothing is reported
	// until reportAt.
	joined   bool
	reportAt time.Time
}

// restore loads what an earlier run of the agent in this pod has written, so that a restart by
// itself changes nothing.
func (l *loop) restore() error {
	if err := l.roles.restore(); err != nil {
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

	if b, err = l.serve.Read(); err != nil || b == nil {
		return err
	}
	l.handlers, err = plan.HandlersIn(b)
	if err != nil {
		l.log.Info("Ignoring the serve config of an earlier run", "error", err)
	}
	return nil
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
	if s != nil {
		l.restart.read(s.GetAnnotations(), l.tailnet)
	}
	if s == nil {
		l.log.Info("Waiting for config Secret", "secret", name)
		l.health.setWaiting("Waiting for Secret " + name + " to be made by the provider")
		return
	}
	if err := l.remedy.set(s.GetAnnotations()[meta.AnnotationRemedy]); err != nil {
		l.log.Info("Ignoring what the provider asks for", "secret", name, "error", err)
	}
	l.withdrawals = withdrawalsIn(s.GetAnnotations())
	l.handover = handoverIn(s.GetAnnotations())
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

func (l *loop) setAttachments(as []v1alpha1.ServiceAttachment) {
	l.attachments, l.listed = as, true
}

func (l *loop) setTailnet(s localapi.State) { l.tailnet, l.version = s, cmp.Or(s.Version, l.version) }

// step updates files and reports. It returns when to call it again if nothing changes, or zero.
func (l *loop) step(ctx context.Context, at time.Time) time.Time {
	l.retry = time.Time{}
	services, listed := l.services(ctx, at)
	if listed {
		l.terminateTLS(ctx, at, services)
		l.getCertificates(ctx, at, services)
	}

	if err := l.writeServe(at, services, listed); err != nil {
		l.failed(at, "Cannot write serve config", err)
	}
	if listed {
		l.followRoutes(at, services)
		l.remedyRouting(at)
	}
	if err := l.writeConfig(at, services, listed); err != nil {
		l.failed(at, "Cannot write tailscaled's config", err)
	}
	l.handOver(at)
	due := l.roles.step(ctx, at, l)
	started := l.handlers != nil && l.configured && l.roles.started()
	var holdDue time.Time
	if started {
		var wait bool
		if wait, holdDue = l.hold.step(ctx, at, l); wait {
			started = false
			l.health.setWaiting(l.hold.waiting())
		}
	}
	ready := l.hosting.step(at, l, services, listed)
	// A probe in between must not find a pod that has started, and no reason why it is not ready.
	l.health.setUnready(cmp.Or(l.hosting.waiting, l.roles.unready(l)))
	l.health.set(started, l.drain != nil)
	l.recoverState(at)
	l.drain.step(at, l.tailnet, func() bool { return l.roles.busy() || l.drain.busy(at) })
	l.remedy.restart = l.remedy.restart && l.drain != nil
	l.health.setRestart(l.restart.due(l.tailnet) || l.remedy.restart && l.drain.over())
	if l.drain.replaced(at) {
		l.log.Info("tailscaled is back, serving again")
		l.endDrain()
		return l.step(ctx, at)
	}
	if l.drain.abandoned(at) {
		l.log.Info("The pod was not stopped, serving again")
		l.endDrain()
		return l.step(ctx, at)
	}

	loginDue := l.login.step(at, l.tailnet.Running, l.loginError(), l.opts.JoinPatience)
	if listed && l.roles.started() && l.mayReport(at) {
		status := plan.Status(l.opts.PodIP, services, plan.Tailnet{
			Running: l.tailnet.Running, Accepted: l.tailnet.Accepted, AcceptedKnown: l.tailnet.AcceptedKnown, Routed: l.routing.states(),
			Readvertised: l.readvertising.counts(), Version: l.version, Polled: l.tailnet.Polled,
			Served: plan.Served(l.handlers, l.kernel.forwards),
		})
		status.PrimaryRoutesSeen = l.primarySeen
		status.Paths = l.paths
		status.LoginError = l.login.text
		l.roles.report(status)
		l.report(status)
		l.reported = status
		l.metrics.services(services, l.tailnet.Accepted, l.routing.states(), l.primaries)
		states, expiry := l.certificates()
		l.metrics.certificates(states, expiry, issue.Size(l.store.data))
	}
	due = slices.AppendSeq(due, maps.Values(l.leaving))
	due = append(due, holdDue, ready, loginDue, l.retry, l.reachAgain, l.reportAt, l.logoutAt, l.offerAt, l.readvertiseAt, l.routingAt, l.remedy.resumeAt, l.expiry(at), l.withdrawals.next(at))
	return earliest(at, append(due, l.drain.deadlines(at)...)...)
}

// mayReport reports whether the agent may report the machine's status.
func (l *loop) mayReport(at time.Time) bool {
	if l.reportAt.IsZero() {
		l.reportAt = at.Add(l.opts.JoinPatience)
	}
	l.joined = l.joined || l.tailnet.Running
	// A pod that is being stopped reports nothing else: either its Machine is deleted, or the pod serves
	// again.
	return l.drain == nil && (l.joined || !at.Before(l.reportAt))
}

// services returns the plan of services. It reports false until attachments were listed.
func (l *loop) services(ctx context.Context, at time.Time) ([]plan.Service, bool) {
	if !l.listed {
		return nil, false
	}
	input := plan.Input{
		Attachments:  l.attachments,
		Health:       l.prober.Statuses(),
		Advertised:   l.advertised,
		Serving:      l.handlers,
		Certificates: l.terminator.Certificates(),
		Issuer:       l.opts.issuer(),
		Issuing:      l.issuing(),
		Offered:      l.offered(ctx, at),
		HTTPS:        l.https(),
		Anonymous:    l.anonymous(),
		Withdrawn:    l.withdrawals.at(at),
		Stopping:     l.drain != nil && !l.drain.holds(),
		At:           at,
	}
	services := l.forward(ctx, plan.Services(input))
	l.prober.Set(ctx, plan.Targets(services))
	return services, true
}

// reached reports whether the API server has just answered. If this is not known, it starts a
// check, whose result arrives as a command.
func (l *loop) reached(at time.Time) bool {
	if !l.reachedAt.IsZero() && at.Before(l.reachedAt.Add(l.opts.Pauses.Retry)) {
		return true
	}
	if !l.reaching && !at.Before(l.reachAgain) {
		l.reaching = true
		l.reach()
	}
	return false
}

func (l *loop) setReached(at time.Time, err error) {
	l.reaching = false
	if err != nil {
		l.reachAgain = at.Add(l.opts.Pauses.Retry)
		l.log.Debug("Keeping files as they are while the API server is away", "error", err)
		return
	}
	l.reachedAt, l.reachAgain = at, time.Time{}
}

// writeConfig writes tailscaled's config.
func (l *loop) writeConfig(at time.Time, services []plan.Service, listed bool) error {
	if l.base == nil {
		return nil
	}
	advertise := l.advertised
	switch {
	case l.drain != nil:
		advertise = l.held(at, services, listed)
	case listed:
		advertise = l.persist(at, l.served(plan.Advertised(services)))
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

// served returns the names without the services that the serve config lacks: control could not
// learn their ports.
func (l *loop) served(names []string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return l.handlers[n] == nil })
}

// persist returns the names without the services that are withdrawn for a moment because
// control does not accept the machine for them, or has made no host of them primary.
func (l *loop) persist(at time.Time, names []string) []string {
	withdrawn, next := l.readvertising.step(at, names, l.tailnet.Accepted, l.tailnet.Running && l.tailnet.AcceptedKnown)
	l.readvertiseAt = next
	return slices.DeleteFunc(names, func(n string) bool { return withdrawn[n] || n == l.remedy.withdrawn })
}

func (l *loop) failed(at time.Time, msg string, err error) {
	l.log.Info(msg, "error", err)
	l.retry = at.Add(l.opts.Pauses.Retry)
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
