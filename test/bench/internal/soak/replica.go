// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/gateway"
	"github.com/tailscale-gateway/tailscale-gateway/test/standalone"
)

const (
	// With the chart, kubelet probes readiness with these settings.
	readyPeriod   = 2 * time.Second
	readyTimeout  = time.Second
	readyFailures = 2

	observeTimeout = 10 * time.Second
)

// A replica of the extension, in a separate pod.
type replica struct {
	w       *Environment
	index   int
	program string
	pod     *standalone.Pod
	// toAPI leads to the API server, which listens on an address of the machine only.
	toAPI      *standalone.Passage
	kubeconfig string

	mu      sync.Mutex
	process *apiserver.Process
}

func (w *Environment) newReplica(ctx context.Context, i int, program string) (*replica, error) {
	r := &replica{w: w, index: i, program: program}
	at, err := url.Parse(w.api.Config.Host)
	if err != nil {
		return nil, errors.Wrap(err, "cannot parse the API server's URL")
	}
	if r.pod, err = w.gateway.NewPod(i); err != nil {
		return nil, err
	}
	l, err := w.gateway.Listen(ctx, "tcp", netip.AddrPortFrom(standalone.NodeAddress(), 0).String())
	if err != nil {
		return nil, errors.Wrap(err, "cannot listen for connections to the API server")
	}
	r.toAPI = standalone.NewPassage(ctx, l, func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", at.Host)
	})
	return r, r.writeKubeconfig(l.Addr().String(), at.Hostname())
}

func (r *replica) writeKubeconfig(address, name string) error {
	c, err := clientcmd.Load(r.w.api.Kubeconfig)
	if err != nil {
		return errors.Wrap(err, "cannot read kubeconfig")
	}
	for _, cluster := range c.Clusters {
		cluster.Server, cluster.TLSServerName = "https://"+address, name
	}
	path, err := r.w.api.WriteKubeconfig()
	if err != nil {
		return err
	}
	r.kubeconfig = filepath.Join(filepath.Dir(path), fmt.Sprintf("replica-%d", r.index))
	return errors.Wrap(clientcmd.WriteToFile(*c, r.kubeconfig), "cannot write kubeconfig")
}

// start starts the replica and waits until it is ready.
func (r *replica) start(ctx context.Context) error {
	eds := netip.AddrPortFrom(standalone.ServiceAddress(), edsPort)
	p, err := r.pod.Run(r.w.log, r.program, append(r.w.certs.Flags(),
		fmt.Sprintf("--hooks-address=:%d", hooksPort), fmt.Sprintf("--eds-address=:%d", edsPort), "--eds-target=ipv4:"+eds.String(),
		fmt.Sprintf("--observe-address=:%d", observePort), "--kubeconfig="+r.kubeconfig, "--namespace="+gateway.Namespace, "--pprof")...)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.process = p
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return errors.Wrapf(until(ctx, r.ready), "replica %d does not become ready", r.index)
}

func (r *replica) running() *apiserver.Process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.process
}

func (r *replica) signal(s syscall.Signal) error {
	return errors.Wrapf(syscall.Kill(r.running().PID(), s), "cannot signal replica %d", r.index)
}

func (r *replica) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	_, err := r.get(ctx, "/ready", "")
	return err
}

// get returns a page of the replica's server for metrics and profiles.
func (r *replica) get(ctx context.Context, path, accept string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s%s", netip.AddrPortFrom(r.pod.Address, observePort), path), nil)
	if err != nil {
		return nil, errors.Wrap(err, "cannot create request")
	}
	req.Header.Set("Accept", accept)
	c := r.w.gateway.Client()
	defer c.CloseIdleConnections()
	rsp, err := c.Do(req)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot send a request to replica %d", r.index)
	}
	b, err := io.ReadAll(rsp.Body)
	if err = errors.Join(err, rsp.Body.Close()); err != nil {
		return nil, errors.Wrapf(err, "cannot read the response of replica %d", r.index)
	}
	if rsp.StatusCode != http.StatusOK {
		return nil, errors.Errorf("replica %d returns %s for %q", r.index, rsp.Status, path)
	}
	return b, nil
}

// heap returns a profile of live memory after two collections: sync.Pool releases its objects in
// the second one only.
func (r *replica) heap(ctx context.Context, query string) ([]byte, error) {
	const collect = "/debug/pprof/heap?gc=1"
	if _, err := r.get(ctx, collect, ""); err != nil {
		return nil, err
	}
	return r.get(ctx, collect+query, "")
}

// keepHeap writes a heap profile to the folder of logs, to find the cause of growth.
func (r *replica) keepHeap(ctx context.Context, logs string, elapsed time.Duration) error {
	b, err := r.heap(ctx, "")
	if err != nil {
		return err
	}
	name := fmt.Sprintf("heap-%04.0fs.pb.gz", elapsed.Seconds())
	return errors.Wrap(os.WriteFile(filepath.Join(logs, name), b, 0o600), "cannot keep a profile of the heap")
}

// hooks returns the number of hooks that the replica has answered.
func (r *replica) hooks(ctx context.Context) (uint64, error) {
	b, err := r.get(ctx, "/metrics", "application/json")
	if err != nil {
		return 0, err
	}
	var m struct {
		Hooks map[string]struct {
			Total uint64 `json:"total"`
		} `json:"hooks"`
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return 0, errors.Wrapf(err, "cannot read the metrics of replica %d", r.index)
	}
	n := uint64(0)
	for _, h := range m.Hooks {
		n += h.Total
	}
	return n, nil
}

func (r *replica) close() error {
	var errs []error
	if p := r.running(); p != nil {
		errs = append(errs, p.Stop(stopLimit))
	}
	if r.toAPI != nil {
		errs = append(errs, r.toAPI.Close())
	}
	if r.pod != nil {
		errs = append(errs, r.pod.Close())
	}
	if err := os.Remove(r.kubeconfig); err != nil && !os.IsNotExist(err) {
		errs = append(errs, errors.Wrap(err, "cannot delete a kubeconfig"))
	}
	return errors.Join(errs...)
}

// serving returns the replica that answers hooks, which run all the time because routes change.
func (w *Environment) serving(ctx context.Context) (*replica, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	var counts [2]uint64
	for i, r := range w.replicas {
		err := until(ctx, func(ctx context.Context) error {
			var err error
			counts[i], err = r.hooks(ctx)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	var found *replica
	return found, until(ctx, func(ctx context.Context) error {
		for i, r := range w.replicas {
			n, err := r.hooks(ctx)
			if err != nil {
				return err
			}
			if n > counts[i] {
				found = r
				return nil
			}
		}
		return errors.New("no replica gets hooks")
	})
}

// A leader directs connections to ready replicas, as kubelet and kube-proxy do.
type leader struct {
	*Environment

	// failures counts consecutive failed probes of each replica.
	failures [2]int
	// pods are the destinations of connections.
	pods map[uint16]netip.AddrPort
}

// lead directs Envoy Gateway to the first ready replica, and Envoy to the last, so that both have
// work.
func (l *leader) lead(ctx context.Context) error {
	var ready []netip.Addr
	for i, r := range l.replicas {
		l.failures[i]++
		if r.ready(ctx) == nil {
			l.failures[i] = 0
		}
		if l.failures[i] < readyFailures {
			ready = append(ready, r.pod.Address)
		}
	}
	pods := map[uint16]netip.AddrPort{}
	if len(ready) > 0 {
		pods[hooksPort] = netip.AddrPortFrom(ready[0], hooksPort)
		pods[edsPort] = netip.AddrPortFrom(ready[len(ready)-1], edsPort)
	}
	if l.pods != nil && maps.Equal(l.pods, pods) {
		return nil
	}
	if err := l.gateway.Services(pods); err != nil {
		return err
	}
	l.pods = pods
	return nil
}

// run directs connections until ctx ends.
func (l *leader) run(ctx context.Context) error {
	tick := time.NewTicker(readyPeriod)
	defer tick.Stop()
	for {
		if err := l.lead(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
