// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
)

// How long it takes until others know of a fault. Requests may get lost until then, and no longer.
const (
	// controlDetection is how long control waits until it moves the addresses of a service from a host whose
	// connection has ended (the lab's switch failoverDelay), and newsTime how long clients take to learn of it. Of a
	// host whose packets get lost, control knows after silenceDetection: in the lab, four seconds were seen. It moves
	// the addresses even if the host is back.
	controlDetection = 15 * time.Second
	newsTime         = 3 * time.Second
	silenceDetection = 5 * time.Second

	// kubeletDetection is how long kubelet and kube-proxy take to notice the end of a process.
	kubeletDetection = 3 * time.Second

	// readinessDetection is how long the readiness probe of an agent takes to fail, twice with a timeout of 2 s, and
	// kube-proxy to know.
	readinessDetection = 7 * time.Second

	// A cut lasts between shortest and longest.
	shortest = 5 * time.Second
	longest  = 15 * time.Second
)

// Actors of faults. A fault of one way has an actor for each way.
const (
	actorDeletions   = "deletions"
	actorFailures    = "failures"
	actorClusters    = "clusters"
	actorControllers = "controllers"
	actorTailnet     = "tailnet"
	actorClocks      = "clocks"
)

// faults returns all faults.
func (c *chaos) faults() []fault {
	out := []fault{
		// A proxy takes its grace period of two minutes while clients keep connections.
		{name: "pod-deleted", actor: actorDeletions, parallel: 3, happen: (*chaos).deletePod},
		{name: "pod-killed", actor: actorFailures, happen: (*chaos).killPod},
		{name: "process-killed", actor: actorFailures, happen: (*chaos).killProcess},
		{name: "link-cut", actor: actorFailures, happen: (*chaos).cutLink},
		{name: "cluster-cut", common: true, actor: actorClusters, happen: (*chaos).cutCluster},
		{name: "cluster-cut-controllers-stopped", common: true, actor: actorClusters, happen: (*chaos).cutClusterStopped},
		{name: "controller-killed", common: true, actor: actorControllers, happen: (*chaos).killController},
		{name: "control-refuses", common: true, actor: actorTailnet, happen: (*chaos).refuseControl},
		{name: "record-time-off", common: true, actor: actorClocks, happen: (*chaos).skewRecord},
		{name: "server-clock-off", common: true, actor: actorClocks, happen: (*chaos).skewServer},
	}
	for _, a := range []struct {
		name  string
		fault tailnetsim.Fault
	}{
		{"api-429", tailnetsim.Fault{Status: http.StatusTooManyRequests, RetryAfter: 1}},
		{"api-500", tailnetsim.Fault{Status: http.StatusInternalServerError}},
		{"api-reply-lost", tailnetsim.Fault{DropReply: true}},
	} {
		out = append(out, fault{name: a.name, common: true, actor: actorTailnet, happen: func(c *chaos, ctx context.Context, h hand, s *strike) error {
			return c.failAPI(ctx, h, s, a.fault)
		}})
	}
	for i := range out {
		out[i].ways = ways
	}
	return out
}

// duration returns the random length of a cut.
func (h hand) duration() time.Duration {
	return shortest + time.Duration(h.Int64N(int64(longest-shortest)))
}

// deletePod deletes a pod, which ends in its own time.
func (c *chaos) deletePod(ctx context.Context, h hand, s *strike) error {
	k, p, release, err := c.choose(ctx, h)
	if err != nil {
		return err
	}
	defer release()
	s.begin(k, p)
	if _, err := c.members[k.cluster].lab.kubectl(ctx, nil, "delete", "pod", p.Name, "--namespace="+k.namespace, "--wait=false"); err != nil {
		return err
	}
	return c.recovered(ctx, k)
}

// begin records what a fault hits.
func (s *strike) begin(k component, p corev1.Pod) {
	s.Began, s.Ways, s.Cluster, s.Direct, s.Target = time.Now(), k.ways, k.cluster, k.carries, fmt.Sprintf("%s of the %s", p.Name, k)
}

// suddenly has a fault hit a pod without a warning, while no cluster is cut off.
func (c *chaos) suddenly(ctx context.Context, h hand, s *strike, happen func(component, corev1.Pod) error) error {
	k, p, release, err := c.choose(ctx, h)
	if err != nil {
		return err
	}
	defer release()
	if err := c.suddenlyHit(ctx, s, k, p, happen); err != nil {
		return err
	}
	return c.recovered(ctx, k)
}

// suddenlyHit returns once the services have a host again, so that a cluster that is cut off next does not take it.
func (c *chaos) suddenlyHit(ctx context.Context, s *strike, k component, p corev1.Pod, happen func(component, corev1.Pod) error) error {
	c.network.RLock()
	defer c.network.RUnlock()
	primary, err := c.isPrimary(ctx, k, p)
	if err != nil {
		return err
	}
	s.begin(k, p)
	switch {
	case k.hosts && primary:
		s.blind(wayVIP, controlDetection+newsTime)
	case k.carries && !k.hosts:
		for w, d := range map[way]time.Duration{wayVIP: kubeletDetection, wayEgress: readinessDetection} {
			s.blind(w, d)
		}
	}
	if err := happen(k, p); err != nil || !primary {
		return err
	}
	return silent().until(ctx, recovery, func(ctx context.Context) (string, error) {
		stays, err := c.isPrimary(ctx, k, p)
		if err != nil || !stays {
			return "", err
		}
		return c.unready(ctx, []component{k})
	})
}

// killPod kills all processes of a pod, and removes it.
func (c *chaos) killPod(ctx context.Context, h hand, s *strike) error {
	return c.suddenly(ctx, h, s, func(k component, p corev1.Pod) error { return c.kill(ctx, k, p) })
}

// kill kills all processes of a pod, and removes it.
func (c *chaos) kill(ctx context.Context, k component, p corev1.Pod) error {
	pids, err := processes(p)
	if err != nil {
		return err
	}
	if err := sendSignal(syscall.SIGKILL, pids...); err != nil {
		return err
	}
	_, err = c.members[k.cluster].lab.kubectl(ctx, nil, "delete", "pod", p.Name, "--namespace="+k.namespace, "--grace-period=0", "--force")
	return err
}

// killProcess kills a process of a pod, and waits until its container starts again.
func (c *chaos) killProcess(ctx context.Context, h hand, s *strike) error {
	return c.suddenly(ctx, h, s, func(k component, p corev1.Pod) error {
		pids, err := processes(p)
		if err != nil {
			return err
		}
		pid := pids[h.IntN(len(pids))]
		s.Target = command(pid) + " of " + s.Target
		if err := sendSignal(syscall.SIGKILL, pid); err != nil {
			return err
		}
		return silent().until(ctx, recovery, func(ctx context.Context) (string, error) {
			pods, err := c.listPods(ctx, k)
			if err != nil {
				return "", err
			}
			for _, current := range pods {
				if current.UID == p.UID && restarts(current) == restarts(p) {
					return "no container has started again", nil
				}
			}
			return "", nil
		})
	})
}

// cutLink drops all packets of a pod for a while. The pod sees a link that is up.
func (c *chaos) cutLink(ctx context.Context, h hand, s *strike) error {
	return c.suddenly(ctx, h, s, func(k component, p corev1.Pod) error {
		link, err := c.link(ctx, k, p)
		if err != nil {
			return err
		}
		length := h.duration()
		s.Target += " for " + length.Round(time.Second).String()
		switch {
		case s.Blind[wayVIP].IsZero():
		case k.hosts:
			s.blind(wayVIP, silenceDetection+controlDetection+newsTime)
		default:
			// Kubelet probes the pods of users less often.
			s.blind(wayVIP, length+newsTime)
		}
		// Ports of a bridge have states of 802.1D: 0 is disabled, and 3 is forwarding.
		if err := c.setLink(ctx, k, link, 0); err != nil {
			return err
		}
		elapsed := elapse(ctx, length)
		err = c.setLink(context.WithoutCancel(ctx), k, link, 3)
		s.Ended = time.Now()
		return errors.Join(elapsed, err)
	})
}

// link returns the name of the bridge's port to which a pod is connected.
func (c *chaos) link(ctx context.Context, k component, p corev1.Pod) (string, error) {
	pids, err := processes(p)
	if err != nil {
		return "", err
	}
	index, err := os.ReadFile(fmt.Sprintf("/proc/%d/root/sys/class/net/eth0/iflink", pids[0]))
	if err != nil {
		return "", errors.Wrapf(err, "cannot read the link of pod %s", p.Name)
	}
	links, err := c.lab(ctx, "--cluster="+k.cluster, "exec", "ip", "-oneline", "link")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(links) {
		number, rest, _ := strings.Cut(line, ": ")
		if name, _, ok := strings.Cut(rest, "@"); ok && number == strings.TrimSpace(string(index)) {
			return name, nil
		}
	}
	return "", errors.Errorf("pod %s has no link %s", p.Name, strings.TrimSpace(string(index)))
}

// setLink sets the state of a bridge's port.
func (c *chaos) setLink(ctx context.Context, k component, link string, state int) error {
	_, err := c.lab(ctx, "--cluster="+k.cluster, "exec", "bridge", "link", "set", "dev", link, "state", strconv.Itoa(state))
	return err
}

// cutCluster drops all packets between a cluster and the others for a while.
func (c *chaos) cutCluster(ctx context.Context, h hand, s *strike) error {
	return c.cutOff(ctx, h, s, func(string) (func() error, error) { return func() error { return nil }, nil })
}

// cutClusterStopped does the same while the cluster's controllers are stopped.
func (c *chaos) cutClusterStopped(ctx context.Context, h hand, s *strike) error {
	return c.cutOff(ctx, h, s, func(cluster string) (func() error, error) {
		var stopped []int
		for _, k := range controllerComponents() {
			if k.cluster != cluster {
				continue
			}
			pods, err := c.listPods(ctx, k)
			if err != nil {
				return nil, err
			}
			for _, p := range pods {
				pids, err := processes(p)
				if err != nil {
					return nil, err
				}
				stopped = append(stopped, pids...)
			}
		}
		return func() error { return sendSignal(syscall.SIGCONT, stopped...) }, sendSignal(syscall.SIGSTOP, stopped...)
	})
}

// cutOff cuts off a cluster, while stop has stopped what else is to stand still there.
func (c *chaos) cutOff(ctx context.Context, h hand, s *strike, stop func(cluster string) (func() error, error)) error {
	cluster, length := egressClusters[h.IntN(len(egressClusters))], h.duration()
	if err := c.cutAlone(ctx, s, cluster, length, stop); err != nil {
		return err
	}
	for _, k := range slices.Concat(c.components(), egressComponents(), controllerComponents()) {
		if k.cluster != cluster {
			continue
		}
		// The holder of a component waits for it.
		m := c.unit(k)
		if !m.TryLock() {
			continue
		}
		err := c.recovered(ctx, k)
		m.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// cutAlone cuts off a cluster while no pod fails.
func (c *chaos) cutAlone(ctx context.Context, s *strike, cluster string, length time.Duration, stop func(cluster string) (func() error, error)) error {
	c.network.Lock()
	defer c.network.Unlock()
	primaries, err := c.primaries(ctx)
	if err != nil {
		return err
	}
	start, err := stop(cluster)
	if err != nil {
		return err
	}
	s.Began, s.Cluster, s.Direct, s.Target = time.Now(), cluster, true, fmt.Sprintf("cluster %s for %s", cluster, length.Round(time.Second))
	// The pods of the cluster have no other way to the tailnet.
	s.blind(wayEgress, length+readinessDetection)
	if slices.ContainsFunc(primaries, func(n podName) bool { return n.cluster == cluster }) {
		s.blind(wayVIP, silenceDetection+controlDetection+newsTime)
	}
	_, failed := c.lab(ctx, "--cluster="+cluster, "cluster-fault")
	if failed == nil {
		failed = elapse(ctx, length)
	}
	_, cleared := c.lab(context.WithoutCancel(ctx), "--cluster="+cluster, "cluster-fault", "--clear")
	s.Ended = time.Now()
	return errors.Join(failed, cleared, start())
}

// killController kills a pod of Crossplane, the provider or the functions.
func (c *chaos) killController(ctx context.Context, h hand, s *strike) error {
	ks := controllerComponents()
	h.Shuffle(len(ks), func(i, j int) { ks[i], ks[j] = ks[j], ks[i] })
	// No cluster is cut off meanwhile, whose controllers would be stopped.
	c.network.RLock()
	defer c.network.RUnlock()
	k, release := c.hold(ks)
	defer release()
	if err := c.recovered(ctx, k); err != nil {
		return err
	}
	pods, err := c.listPods(ctx, k)
	if err != nil {
		return err
	}
	p := choosePod(pods, "", h)
	s.begin(k, p)
	if err := c.kill(ctx, k, p); err != nil {
		return err
	}
	return c.recovered(ctx, k)
}

// refuseControl has the control server refuse requests of nodes for a while.
func (c *chaos) refuseControl(ctx context.Context, h hand, s *strike) error {
	length := h.duration()
	s.Target = "control for " + length.Round(time.Second).String()
	if err := c.tailnet.setFaults(ctx, tailnetsim.Fault{Path: tailnetsim.ControlPaths, Refuse: true}); err != nil {
		return err
	}
	elapsed := elapse(ctx, length)
	cleared := c.tailnet.setFaults(context.WithoutCancel(ctx))
	s.Ended = time.Now()
	return errors.Join(elapsed, cleared)
}

// failAPI spoils requests to the API while the user changes a service, and waits until the API has the change.
func (c *chaos) failAPI(ctx context.Context, h hand, s *strike, f tailnetsim.Fault) error {
	f.Count = 3 + h.IntN(6)
	cluster := clusterNames[h.IntN(len(clusterNames))]
	s.Target = fmt.Sprintf("%d requests while svc:%s changes", f.Count, ownService(cluster))
	if err := c.tailnet.setFaults(ctx, f); err != nil {
		return err
	}
	comment := fmt.Sprintf("change %x", h.Uint64())
	if err := c.members[cluster].patch(ctx, services, quickstart, ownService(cluster), fmt.Sprintf(`{"spec":{"vipService":{"comment":%q}}}`, comment)); err != nil {
		return err
	}
	err := silent().until(ctx, recovery, func(ctx context.Context) (string, error) {
		n, err := c.tailnet.remaining(ctx)
		if err != nil || n > 0 {
			return "not all requests were spoilt yet", err
		}
		return "", nil
	})
	s.Ended = time.Now()
	if err != nil {
		return errors.Join(err, c.tailnet.setFaults(context.WithoutCancel(ctx)))
	}
	return silent().until(ctx, recovery, func(ctx context.Context) (string, error) {
		v, err := c.tailnet.api.Services().Get(ctx, "svc:"+ownService(cluster))
		if err != nil {
			return "", errors.Wrap(err, "cannot get the service")
		}
		if v.Comment != comment {
			return fmt.Sprintf("the comment is %q, not yet %q", v.Comment, comment), nil
		}
		return "", nil
	})
}
