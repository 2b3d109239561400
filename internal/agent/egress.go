// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"maps"
	"net/netip"
	"time"

	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/atomicdir"
	carrier "github.com/tailscale-gateway/tailscale-gateway/internal/agent/egress"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/kube"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/egress"
	"github.com/tailscale-gateway/tailscale-gateway/internal/probe"
)

// EgressOptions are the options of an agent whose pod carries traffic into the tailnet.
type EgressOptions struct {
	// ConfigMap is the name of the ConfigMap in the pod's namespace that maps ports to targets.
	// Empty means that the pod is not an egress pod.
	ConfigMap string

	// Addresses are the pod's addresses to listen on with Userspace networking. Empty means all
	// addresses, including the one in the tailnet.
	Addresses []string

	// Dir is where the agent keeps the targets, for when it starts again while the API server is
	// unavailable.
	Dir string

	// Spread is the minimum time that a port stays open after it is no longer wanted: the time until
	// all clients have been notified.
	Spread time.Duration

	// Drain is how long open connections may continue after that.
	Drain time.Duration

	// Idle is how long a connection may carry no data. Zero means no limit.
	Idle time.Duration

	// Tracer creates the spans of dials. Nil creates none.
	Tracer trace.Tracer
}

// An egressLoop is the role of a pod that carries traffic into the tailnet.
type egressLoop struct {
	opts     EgressOptions
	retry    time.Duration
	log      logging.Logger
	prober   *probe.Prober
	find     func(host string) localapi.Host
	findIn   func(host string, ipv6 bool) localapi.Host
	resolves func(name string, addr netip.Addr) bool
	domain   func() string
	file     keptFile

	// server carries connections. It is nil if the kernel forwards them.
	server *carrier.Server
	kernel *kernelLoop

	// targets are the targets of the ConfigMap. loaded reports whether they are known, even if there
	// are none.
	targets []egress.Target
	loaded  bool

	// revision is the revision of the config that targets belong to.
	revision string

	// leaving are targets that the ConfigMap no longer has, by port, and since when.
	leaving map[plan.EgressKey]leavingTarget

	// closed holds, by port, why the pod cannot listen on it.
	closed map[plan.EgressKey]string

	// ports is the plan for each port.
	ports []plan.EgressPort

	// session is the session of tailscaled that the server's connections were last compared with.
	session int

	// joined reports whether tailscaled has had peers before.
	joined bool

	// warm connects the pod to the devices of its targets, for up to warmFor.
	warm    warmup
	warmFor time.Duration
}

type leavingTarget struct {
	egress.Target
	start time.Time
}

func (a *Agent) newEgress(ctx context.Context, peers *localapi.Peers, k *kernelLoop) *egressLoop {
	notify := func() { a.do(ctx, func(*loop) {}) }
	e := &egressLoop{
		opts:     a.opts.Egress,
		retry:    a.opts.Pauses.Retry,
		log:      a.log,
		find:     peers.Find,
		findIn:   peers.FindFamily,
		resolves: peers.Has,
		domain:   peers.Domain,
		prober:   probe.NewProber(probe.NewDialChecker(a.dialer.DialContext), notify, probe.WithProbed(a.metrics.probed)),
		file:     keptFile{dir: atomicdir.New(a.opts.Egress.Dir, egress.ConfigMapKey)},
		kernel:   k,
		leaving:  make(map[plan.EgressKey]leavingTarget),
		warm:     warmup{ping: a.local.Ping, run: func(ctx context.Context, fn func()) { a.do(ctx, func(*loop) { fn() }) }},
		warmFor:  a.opts.Pauses.Warm,
	}
	if !k.enabled {
		e.server = carrier.NewServer(a.dialer.Dial, a.metrics.egress, a.log, notify, carrier.WithListen(carrier.ListenAt(e.opts.Addresses...)),
			carrier.WithIdleTimeout(e.opts.Idle), carrier.WithTracer(e.opts.Tracer), carrier.WithFollower(peers.Follow, a.opts.Pauses.Absence))
	}
	return e
}

// watch watches the ConfigMap with the targets.
func (e *egressLoop) watch(ctx context.Context, a *Agent) {
	kube.WatchConfigMap(ctx, a.client, a.opts.egressConfigMap(), func(cm *corev1.ConfigMap) {
		a.do(ctx, func(l *loop) { e.setConfig(time.Now(), cm, l.health) })
	})
}

// close cuts the open connections.
func (e *egressLoop) close() {
	if e.server != nil {
		e.server.Close()
	}
}

// restore loads the targets of an earlier run.
func (e *egressLoop) restore() error {
	b, err := e.file.dir.Read()
	if err != nil || b == nil {
		return err
	}
	c, err := egress.Decode(string(b))
	if err != nil {
		e.log.Info("Ignoring the egress config of an earlier run", "error", err)
		return nil
	}
	e.targets, e.loaded, e.revision = c.Targets, true, egress.Revision(string(b))
	return nil
}

// setConfig updates the targets from the ConfigMap. A ConfigMap that is missing or invalid
// changes nothing: open ports stay open.
func (e *egressLoop) setConfig(at time.Time, cm *corev1.ConfigMap, h *health) {
	if cm == nil {
		e.log.Info("Waiting for ConfigMap", "configmap", e.opts.ConfigMap)
		e.loaded = true
		return
	}
	s, ok := cm.Data[egress.ConfigMapKey]
	c, err := egress.Decode(s)
	if !ok {
		err = errors.Errorf("no key %q", egress.ConfigMapKey)
	}
	if err != nil {
		e.log.Info("Cannot use ConfigMap", "configmap", e.opts.ConfigMap, "error", err)
		h.setWaiting("ConfigMap " + e.opts.ConfigMap + ": " + err.Error())
		return
	}
	e.loaded, e.revision = true, egress.Revision(s)
	e.set(at, c.Targets)
	e.file.set(s)
}

// set replaces the wanted targets. The previous ones become leaving targets.
func (e *egressLoop) set(at time.Time, targets []egress.Target) {
	for _, t := range e.targets {
		e.leaving[plan.EgressKeyOf(t)] = leavingTarget{Target: t, start: at}
	}
	for _, t := range targets {
		delete(e.leaving, plan.EgressKeyOf(t))
	}
	e.targets = targets
}

// step updates listeners, probes and the egress config.
func (e *egressLoop) step(ctx context.Context, at time.Time, l *loop) time.Time {
	next := e.forget(at)
	e.file.write(at, l)
	for range 2 {
		e.plan(l.tailnet)
		closed := e.serve(ctx, l.drain.closing(at))
		if maps.Equal(closed, e.closed) {
			break
		}
		// Whether the pod can listen on a port is known only after an attempt, and is part of the
		// plan.
		e.closed = closed
	}
	next = earliest(at, next, e.cutGone(at, l.tailnet))
	e.prober.Set(ctx, plan.EgressTargets(e.ports))
	e.join(ctx, l.tailnet)
	if len(e.closed) > 0 {
		next = earliest(at, next, at.Add(e.retry))
	}
	if err := e.write(at, l); err != nil {
		l.failed(at, "Cannot write egress config", err)
	}
	return next
}

// forget drops leaving targets whose time is over. It returns when the time of the next one may
// be over.
func (e *egressLoop) forget(at time.Time) time.Time {
	var due []time.Time
	maps.DeleteFunc(e.leaving, func(key plan.EgressKey, t leavingTarget) bool {
		heard, end := t.start.Add(e.opts.Spread), t.start.Add(e.opts.Drain)
		due = append(due, heard, end)
		return !at.Before(end) || !at.Before(heard) && (e.server == nil || e.server.Idle(uint16(key.Port)))
	})
	return earliest(at, due...)
}

func (e *egressLoop) plan(tn localapi.State) {
	input := plan.EgressInput{
		Targets:  e.targets,
		Running:  tn.Running,
		Find:     e.find,
		Resolves: e.resolves,
		Suffix:   e.domain(),
		Visible:  tn.Visible,
		Tags:     tn.Tags,
		Health:   e.prober.Statuses(),
		Outside:  make(map[plan.EgressKey]bool),
		Closed:   e.closed,

		FindFamily: e.findIn,
	}
	if e.kernel.enabled {
		input.Kernel, input.Applied = true, e.kernel.appliedEgress
		input.Families, input.IPv6First = e.kernel.families(tn), e.kernel.ipv6First()
	}
	for _, t := range e.leaving {
		input.Leaving = append(input.Leaving, t.Target)
	}
	if e.server != nil {
		for _, t := range e.targets {
			input.Outside[plan.EgressKeyOf(t)] = e.server.Outside(uint16(t.ProxyPort))
		}
	}
	e.ports = plan.Egress(input)
}

// serve passes the planned ports to the server, and returns why some ports cannot be listened
// on.
func (e *egressLoop) serve(ctx context.Context, closing bool) map[plan.EgressKey]string {
	closed := make(map[plan.EgressKey]string)
	if e.server == nil {
		return closed
	}
	routes := make(map[uint16]carrier.Route, len(e.ports))
	for _, p := range e.ports {
		if !p.Listen {
			continue
		}
		r := carrier.Route{Target: p.Target.Key, Addr: p.Addr}
		switch {
		case closing:
			r.Phase = carrier.Draining
		case p.Leaving:
			r.Phase = carrier.Leaving
		}
		routes[uint16(p.Target.ProxyPort)] = r
	}
	for n, err := range e.server.Set(ctx, routes) {
		closed[plan.EgressKey{Port: int32(n), Protocol: corev1.ProtocolTCP}] = "The pod " + err.Error()
	}
	return closed
}

// cutGone cuts connections to nodes that have left the tailnet, and returns when the next one is
// due. While the netmap is not known, no node counts as gone.
func (e *egressLoop) cutGone(at time.Time, tn localapi.State) time.Time {
	if e.server == nil {
		return time.Time{}
	}
	if tn.Session != e.session || !tn.Running || tn.Peers == 0 {
		e.session = tn.Session
		e.server.ForgetGone()
		return time.Time{}
	}
	return e.server.CutGone(at)
}

// busy reports whether connections are open.
func (e *egressLoop) busy() bool {
	if e.server == nil {
		return false
	}
	for _, p := range e.ports {
		if p.Listen && !e.server.Idle(uint16(p.Target.ProxyPort)) {
			return true
		}
	}
	return false
}

// started reports whether the targets are known.
func (e *egressLoop) started() bool { return e.loaded }

// join connects the pod to the devices of its targets once it has joined the tailnet.
func (e *egressLoop) join(ctx context.Context, tn localapi.State) {
	e.joined = e.joined || tn.Running && tn.Peers > 0
	if !e.joined || !e.loaded || e.warm.begun {
		return
	}
	var devices []localapi.Device
	for _, t := range e.targets {
		devices = append(devices, e.find(t.Host).Devices...)
	}
	e.warm.begin(ctx, devices, e.warmFor)
}

// unready returns why the pod cannot carry anything yet. Once the pod has joined and has had time
// to connect, problems affect single targets and not the pod.
func (e *egressLoop) unready(*loop) string {
	if !e.joined {
		return "Waiting for tailscaled to join the tailnet"
	}
	return e.warm.unready()
}

// drain gives clients time to move to other pods, and open connections time to end.
func (e *egressLoop) drain(at time.Time, l *loop) {
	if len(e.ports) == 0 {
		return
	}
	l.drain.moveEnd = latest(l.drain.moveEnd, at.Add(e.opts.Spread))
	l.drain.cut = at.Add(e.opts.Drain)
	if e.kernel.enabled {
		// Clients of UDP have no connections to wait for, and the kernel cannot refuse new
		// connections of TCP.
		l.drain.moveEnd = latest(l.drain.moveEnd, at.Add(l.opts.Drain))
	}
}

// report adds the targets and their ports to a status.
func (e *egressLoop) report(s *v1alpha1.MachineAgentStatus) {
	s.EgressConfig, s.Egress = e.revision, plan.EgressStatus(e.ports)
}
