// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// recovery is how long a busy machine may take to recover from a fault.
const recovery = 5 * time.Minute

// A component is a set of like pods in a cluster.
type component struct {
	name, cluster, namespace string

	// prefix is that of the pods' names, which no other pods have.
	prefix string

	// replicas are how many pods there are.
	replicas int

	// ways are those whose requests, or whose configuration, need the pods.
	ways []way

	// hosts reports that the pods host the shared service.
	hosts bool

	// carries reports that requests pass through the pods.
	carries bool
}

func (c component) String() string { return c.name + " in cluster " + c.cluster }

// components returns everything that carries or configures the requests of the loads. The Envoys are not ours, and
// nobody could answer for one that is killed: their pods stay.
func (c *chaos) components() []component {
	out := []component{
		{name: "proxies to other clusters", cluster: firstCluster, namespace: quickstart, prefix: "shared-egress-", replicas: 2, ways: []way{wayEnvoy}, carries: true},
		{name: "extension", cluster: firstCluster, namespace: envoyGatewayNamespace, prefix: extensionChart + "-", replicas: 2, ways: []way{wayEnvoy}},
		{name: "Envoy Gateway", cluster: firstCluster, namespace: envoyGatewayNamespace, prefix: "envoy-gateway-", replicas: 1, ways: []way{wayEnvoy}},
	}
	for _, name := range clusterNames {
		out = append(out,
			component{name: "web servers", cluster: name, namespace: quickstart, prefix: name + "-", replicas: 2, ways: []way{wayVIP, wayEnvoy}, carries: true},
			component{name: "servers of gRPC", cluster: name, namespace: quickstart, prefix: "grpc-", replicas: 2, ways: []way{wayVIP, wayEnvoy}, carries: true},
			component{name: "ingress proxies", cluster: name, namespace: quickstart, prefix: "shared-ingress-", replicas: 2, ways: []way{wayVIP, wayEnvoy}, hosts: true, carries: true},
		)
	}
	return out
}

// egressComponents returns the egress proxies.
func egressComponents() []component {
	var out []component
	for _, name := range egressClusters {
		out = append(out, component{name: "egress proxies", cluster: name, namespace: quickstart, prefix: egressName + "-egress-", replicas: 2, ways: []way{wayEgress}, carries: true})
	}
	return out
}

// controllerComponents returns the pods of Crossplane and of the provider and the functions.
func controllerComponents() []component {
	var out []component
	for _, name := range clusterNames {
		for controller, prefix := range map[string]string{
			"Crossplane": "crossplane-", "provider": "tailscale-gateway-provider-", "functions": "tailscale-gateway-function-",
		} {
			n := 1
			if controller == "Crossplane" {
				n = 2 // With its RBAC manager.
			}
			out = append(out, component{name: controller, cluster: name, namespace: crossplaneNamespace, prefix: prefix, replicas: n, ways: ways})
		}
	}
	slices.SortFunc(out, func(a, b component) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// A podName is a pod of a cluster.
type podName struct{ cluster, name string }

// ready reports whether a pod is ready and stays.
func ready(p corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// restarts returns how often the containers of a pod were started again.
func restarts(p corev1.Pod) int32 {
	var out int32
	for _, s := range p.Status.ContainerStatuses {
		out += s.RestartCount
	}
	return out
}

// listPods returns the pods of a component, without those of Jobs. A process of kubectl for each of the many reads would
// take the processor from what is tried.
func (c *chaos) listPods(ctx context.Context, k component) ([]corev1.Pod, error) {
	c.mu.Lock()
	kube := c.kubes[k.cluster]
	c.mu.Unlock()
	if kube == nil {
		config, err := clientcmd.BuildConfigFromFlags("", c.members[k.cluster].lab.kubeconfig)
		if err != nil {
			return nil, errors.Wrapf(err, "cannot read the kubeconfig of cluster %s", k.cluster)
		}
		config.QPS, config.Burst = 50, 100
		if kube, err = kubernetes.NewForConfig(config); err != nil {
			return nil, errors.Wrapf(err, "cannot make a client of cluster %s", k.cluster)
		}
		c.mu.Lock()
		c.kubes[k.cluster] = kube
		c.mu.Unlock()
	}
	list, err := kube.CoreV1().Pods(k.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, errors.Wrapf(err, "cannot list pods of cluster %s", k.cluster)
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		return !strings.HasPrefix(p.Name, k.prefix) || p.Status.Phase == corev1.PodSucceeded
	}), nil
}

// unready says which component lacks ready pods, or nothing.
func (c *chaos) unready(ctx context.Context, ks []component) (string, error) {
	for _, k := range ks {
		pods, err := c.listPods(ctx, k)
		if err != nil {
			return "", err
		}
		n := 0
		for _, p := range pods {
			if ready(p) {
				n++
			}
		}
		if n != k.replicas || len(pods) != k.replicas {
			return fmt.Sprintf("%s: %d of %d pods are ready, and there are %d", k, n, k.replicas, len(pods)), nil
		}
	}
	return "", nil
}

// recovered waits until all pods of a component are ready.
func (c *chaos) recovered(ctx context.Context, k component) error {
	return silent().until(ctx, recovery, func(ctx context.Context) (string, error) { return c.unready(ctx, []component{k}) })
}

// unit returns what keeps others from a component.
func (c *chaos) unit(k component) *sync.Mutex {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.units[k.String()]
	if m == nil {
		m = &sync.Mutex{}
		c.units[k.String()] = m
	}
	return m
}

// hold holds the first component that nobody holds, or else waits for the first one. The returned function releases it.
func (c *chaos) hold(ks []component) (component, func()) {
	for _, k := range ks {
		if m := c.unit(k); m.TryLock() {
			return k, m.Unlock
		}
	}
	m := c.unit(ks[0])
	m.Lock()
	return ks[0], m.Unlock
}

// choose chooses a component of a way, and holds it. For the VIP, it is the one with the addresses of a service half of
// the time.
func (c *chaos) choose(ctx context.Context, h hand) (component, corev1.Pod, func(), error) {
	candidates := slices.DeleteFunc(slices.Concat(c.components(), egressComponents()), func(k component) bool { return !slices.Contains(k.ways, h.way) })
	h.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
	primary := podName{}
	if h.way == wayVIP && h.IntN(2) == 0 {
		primaries, err := c.primaries(ctx)
		if err != nil {
			return component{}, corev1.Pod{}, nil, err
		}
		primary = primaries[h.IntN(len(primaries))]
		slices.SortStableFunc(candidates, func(a, b component) int {
			return cmp.Compare(rank(a, primary), rank(b, primary))
		})
	}
	k, release := c.hold(candidates)
	if err := c.recovered(ctx, k); err != nil {
		release()
		return k, corev1.Pod{}, nil, err
	}
	pods, err := c.listPods(ctx, k)
	if err != nil {
		release()
		return k, corev1.Pod{}, nil, err
	}
	preferred := ""
	if k.hosts && k.cluster == primary.cluster {
		preferred = primary.name
	}
	return k, choosePod(pods, preferred, h), release, nil
}

// rank returns 0 for the component with a host, and 1 for others.
func rank(k component, host podName) int {
	if k.hosts && k.cluster == host.cluster {
		return 0
	}
	return 1
}

// choosePod chooses the preferred pod, or one of those that have started again least often: kubelet waits longer
// each time.
func choosePod(pods []corev1.Pod, preferred string, h hand) corev1.Pod {
	if i := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Name == preferred }); i >= 0 {
		return pods[i]
	}
	fewest := restarts(slices.MinFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(restarts(a), restarts(b)) }))
	pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool { return restarts(p) > fewest })
	return pods[h.IntN(len(pods))]
}

// primaries returns the pods that have the addresses of the shared services.
func (c *chaos) primaries(ctx context.Context) ([]podName, error) {
	st, err := c.tailnet.state(ctx)
	if err != nil {
		return nil, err
	}
	var out []podName
	for _, s := range st.Services {
		if s.Name == "svc:"+sharedName || s.Name == "svc:"+grpcName {
			out = append(out, c.pods[s.Primary])
		}
	}
	if len(out) == 0 {
		return nil, errors.New("the tailnet has no shared services")
	}
	return out, nil
}

// isPrimary reports whether a pod has the addresses of a shared service.
func (c *chaos) isPrimary(ctx context.Context, k component, p corev1.Pod) (bool, error) {
	if !k.hosts {
		return false, nil
	}
	primaries, err := c.primaries(ctx)
	return slices.Contains(primaries, podName{cluster: k.cluster, name: p.Name}), err
}

// processes returns the processes of a pod's containers, without the one that holds its network.
func processes(p corev1.Pod) ([]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, errors.Wrap(err, "cannot list processes")
	}
	var out []int
	for _, f := range files {
		groups, err := os.ReadFile(f)
		if err != nil {
			continue // It has ended.
		}
		if !slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
			_, id, ok := strings.Cut(s.ContainerID, "://")
			return ok && strings.Contains(string(groups), "/pod"+string(p.UID)+"/"+id)
		}) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err != nil {
			return nil, errors.Wrap(err, "cannot read the number of a process")
		}
		out = append(out, pid)
	}
	if len(out) == 0 {
		return nil, errors.Errorf("pod %s has no processes", p.Name)
	}
	return out, nil
}

// sendSignal sends a signal to processes. One that has ended meanwhile is none.
func sendSignal(s syscall.Signal, pids ...int) error {
	for _, pid := range pids {
		if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			return errors.Wrapf(err, "cannot signal process %d", pid)
		}
	}
	return nil
}

// command returns the name of a process's program.
func command(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return "a process"
	}
	return strings.TrimSpace(string(b))
}
