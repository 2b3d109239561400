// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"maps"
	"net/netip"
	"time"

	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	"tailscale.com/kube/egressservices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	carrier "github.com/tailscale-gateway/tailscale-gateway/internal/agent/egress"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/egress"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
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

// An egressRole is the role of a pod that carries traffic into the tailnet.
type egressRole struct {
	plainRole

	opts     EgressOptions
	retry    *retrier
	log      logging.Logger
	metrics  *Metrics
	health   *health
	api      *reachability
	prober   *probe.Prober
	find     func(host string) localapi.Host
	findIn   func(host string, ipv6 bool) localapi.Host
	resolves func(name string, addr netip.Addr) bool
	domain   func() string
	file     keptFile

	// follow calls fn in the loop with each version of the ConfigMap until ctx is done.
	follow func(ctx context.Context, fn func(*corev1.ConfigMap))

	// server carries connections. It is nil if the kernel forwards them.
	server *carrier.Server
	kernel *kernelRole

	// config is the config on disk of what the kernel forwards. Nil until there is one.
	config []byte

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

// watch watches the ConfigMap with the targets.
func (e *egressRole) watch(ctx context.Context) {
	e.follow(ctx, func(cm *corev1.ConfigMap) { e.setConfig(time.Now(), cm) })
}

// close cuts the open connections.
func (e *egressRole) close() {
	if e.server != nil {
		e.server.Close()
	}
}

// restore loads the targets of an earlier run, and the config that it has written.
func (e *egressRole) restore(context.Context) error {
	if e.kernel.enabled {
		var err error
		if e.config, err = e.kernel.dir.ReadFile(egressservices.KeyEgressServices); err != nil {
			return err
		}
	}
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
func (e *egressRole) setConfig(at time.Time, cm *corev1.ConfigMap) {
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
		e.health.setWaiting("ConfigMap " + e.opts.ConfigMap + ": " + err.Error())
		return
	}
	e.loaded, e.revision = true, egress.Revision(s)
	e.set(at, c.Targets)
	e.file.set(s)
}

// set replaces the wanted targets. The previous ones become leaving targets.
func (e *egressRole) set(at time.Time, targets []egress.Target) {
	for _, t := range e.targets {
		e.leaving[plan.EgressKeyOf(t)] = leavingTarget{Target: t, start: at}
	}
	for _, t := range targets {
		delete(e.leaving, plan.EgressKeyOf(t))
	}
	e.targets = targets
}

// step updates listeners, probes and the egress config.
func (e *egressRole) step(ctx context.Context, at time.Time, f facts) time.Time {
	next := e.forget(at)
	e.file.write(at, e.retry)
	for range 2 {
		e.plan(f.tailnet)
		closed := e.serve(ctx, f.closing)
		if maps.Equal(closed, e.closed) {
			break
		}
		// Whether the pod can listen on a port is known only after an attempt, and is part of the
		// plan.
		e.closed = closed
	}
	next = earliest(at, next, e.cutGone(at, f.tailnet))
	e.prober.Set(ctx, plan.EgressTargets(e.ports))
	e.join(ctx, f.tailnet)
	if len(e.closed) > 0 {
		next = earliest(at, next, at.Add(e.retry.pause))
	}
	if err := e.write(at, f.tailnet); err != nil {
		e.retry.failed(at, "Cannot write egress config", err)
	}
	return next
}

// write writes the config from which containerboot makes the kernel forward the pod's ports.
func (e *egressRole) write(at time.Time, tn localapi.State) error {
	k := e.kernel
	if !k.enabled || !e.loaded {
		return nil
	}
	// The peers are unknown while tailscaled is unavailable.
	if e.config != nil && (!tn.Running || tn.Peers == 0) {
		return nil
	}
	b, err := plan.EgressServices(e.ports)
	if err != nil || bytes.Equal(e.config, b) {
		return err
	}
	if k.cautious(e.config != nil) && !e.api.reached(at) {
		return nil
	}
	if _, err := k.dir.WriteFiles(map[string][]byte{egressservices.KeyEgressServices: b}); err != nil {
		return err
	}
	e.config = b
	e.metrics.wrote(fileEgress)
	e.log.Debug("Wrote egress config")
	return nil
}

// forget drops leaving targets whose time is over. It returns when the time of the next one may
// be over.
func (e *egressRole) forget(at time.Time) time.Time {
	var due []time.Time
	maps.DeleteFunc(e.leaving, func(key plan.EgressKey, t leavingTarget) bool {
		heard, end := t.start.Add(e.opts.Spread), t.start.Add(e.opts.Drain)
		due = append(due, heard, end)
		return !at.Before(end) || !at.Before(heard) && (e.server == nil || e.server.Idle(uint16(key.Port)))
	})
	return earliest(at, due...)
}

func (e *egressRole) plan(tn localapi.State) {
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

		Unanswered: make(map[plan.EgressKey]bool),

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
			input.Unanswered[plan.EgressKeyOf(t)] = e.server.Unanswered(uint16(t.ProxyPort))
		}
	}
	e.ports = plan.Egress(input)
}

// serve passes the planned ports to the server, and returns why some ports cannot be listened
// on.
func (e *egressRole) serve(ctx context.Context, closing bool) map[plan.EgressKey]string {
	closed := make(map[plan.EgressKey]string)
	if e.server == nil {
		return closed
	}
	routes := make(map[uint16]carrier.Route, len(e.ports))
	for _, p := range e.ports {
		if !p.Listen {
			continue
		}
		r := carrier.Route{Target: p.Target.Key, Addr: p.Addr, Service: p.Target.Service != ""}
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

// cutGone cuts connections to nodes that no longer have their address, and returns when the next one is
// due. While the netmap is not known, no node counts as gone.
func (e *egressRole) cutGone(at time.Time, tn localapi.State) time.Time {
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
func (e *egressRole) busy() bool {
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
func (e *egressRole) started() bool { return e.loaded }

// join connects the pod to the devices of its targets once it has joined the tailnet.
func (e *egressRole) join(ctx context.Context, tn localapi.State) {
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
func (e *egressRole) unready() string {
	if !e.joined {
		return "Waiting for tailscaled to join the tailnet"
	}
	return e.warm.unready()
}

// drain gives clients time to move to other pods, and open connections time to end.
func (e *egressRole) drain(at time.Time, d *drain) {
	if len(e.ports) == 0 {
		return
	}
	d.moveEnd = latest(d.moveEnd, at.Add(e.opts.Spread))
	d.cut = at.Add(e.opts.Drain)
	if e.server != nil {
		d.ends = append(d.ends, e.server.Cut)
	}
	if e.kernel.enabled {
		// Clients of UDP have no connections to wait for, and the kernel cannot refuse new
		// connections of TCP.
		d.moveEnd = latest(d.moveEnd, at.Add(d.move))
	}
}

// report adds the targets and their ports to a status.
func (e *egressRole) report(s *v1alpha1.MachineAgentStatus) {
	s.EgressConfig, s.Egress = e.revision, plan.EgressStatus(e.ports)
}
