// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package daemon implements the process of a lab that owns all others: it creates
// the networks, starts components and restarts them, serves the registry, and
// forwards connections from the host's loopback into the lab. The command line
// connects to it with Client, over a unix socket.
package daemon

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/component"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/host"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/netns"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/plan"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/wire"
)

// A Config is the configuration that the command line passes to the daemon, in a file.
type Config struct {
	Paths host.Paths `json:"paths"`
	// Clusters and Tailnets are the numbers of clusters and tailnets to create.
	Clusters int `json:"clusters"`
	Tailnets int `json:"tailnets"`
	// IPFamily is the address families of the clusters' networks.
	IPFamily plan.IPFamily `json:"ipFamily"`
	// Bin are the paths of built binaries by name, including the simulator's.
	Bin map[string]string `json:"bin"`
	// Crossplane is the folder of Crossplane's module.
	Crossplane string `json:"crossplane"`
	// Policy is a file with the initial policy of each tailnet. Empty means the default one.
	Policy string `json:"policy,omitempty"`
	// Path is the path of clusters and clients to the hub and each other. Nil means no emulation.
	Path *wire.Path `json:"path,omitempty"`
}

// ConfigFile returns the file of the configuration, which the command line writes.
func ConfigFile(p host.Paths) string { return filepath.Join(p.State, "lab.json") }

// hub returns the addresses that the clusters reach outside of themselves.
func (c Config) hub() plan.Hub { return c.IPFamily.Hub() }

// A Daemon runs one lab.
type Daemon struct {
	cfg      Config
	plans    []plan.Cluster
	tailnets []plan.Tailnet
	progress *progress

	// mu guards the fields below.
	mu         sync.Mutex
	namespaces map[string]*netns.Namespace
	components []*supervised
	forwards   []Forward
	ready      bool
	failed     bool

	// clients serializes the creation of tailnet clients.
	clients sync.Mutex
}

// Run runs the lab that the file describes until SIGTERM or SIGINT.
func Run(ctx context.Context, file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return errors.Wrap(err, "cannot read configuration")
	}
	var cfg Config
	if err := json.Unmarshal(b, &cfg); err != nil {
		return errors.Wrap(err, "cannot decode configuration")
	}
	plans, err := plan.Clusters(cfg.Clusters, cfg.IPFamily)
	if err != nil {
		return err
	}
	tailnets, err := plan.Tailnets(cfg.Tailnets, cfg.IPFamily)
	if err != nil {
		return err
	}
	d := &Daemon{cfg: cfg, plans: plans, tailnets: tailnets, progress: &progress{clock: time.Now}, namespaces: map[string]*netns.Namespace{}}
	ctx, cancel := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	for _, dir := range []string{cfg.Paths.Run, cfg.Paths.Logs()} {
		if err := os.MkdirAll(dir, 0o755); err != nil { // Sockets have stricter modes.
			return errors.Wrap(err, "cannot make folder")
		}
	}
	if err := cfg.Paths.WritePIDFile(); err != nil {
		return err
	}
	if err := adopt(); err != nil {
		return err
	}
	go reap(ctx)
	stop, err := d.serve(ctx)
	if err != nil {
		return err
	}
	defer stop()
	go func() {
		err := d.up(ctx)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.ready, d.failed = err == nil, err != nil
	}()
	<-ctx.Done()
	d.stopAll()
	return finish(context.WithoutCancel(ctx))
}

// stopAll stops components in the reverse order of their start.
func (d *Daemon) stopAll() {
	d.mu.Lock()
	all := append([]*supervised(nil), d.components...)
	d.mu.Unlock()
	for i := len(all) - 1; i >= 0; i-- {
		all[i].Stop()
	}
}

// serve serves the command line on the unix socket.
func (d *Daemon) serve(ctx context.Context) (func(), error) {
	socket := d.cfg.Paths.Socket()
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		return nil, errors.Wrap(err, "cannot remove old socket")
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return nil, errors.Wrap(err, "cannot listen for the command line")
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return nil, errors.Wrap(err, "cannot restrict access to the socket")
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(d.status(r.Context(), r.URL.Query().Has("components"))) // If this fails, the client has disconnected.
	})
	mux.HandleFunc("POST /tailnets/{tailnet}/clients/{name}", func(w http.ResponseWriter, r *http.Request) {
		t, err := d.findTailnet(r.PathValue("tailnet"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		as := ClientOptions{Owner: r.URL.Query().Has("owner"), Routes: r.URL.Query()["route"]}
		if err := d.ensureClient(r.Context(), t, r.PathValue("name"), as, func(string) {}); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
	})
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go s.Serve(l) //nolint:errcheck // Close ends it.
	return func() { _ = s.Close() }, nil
}

func (d *Daemon) status(ctx context.Context, components bool) Status {
	d.mu.Lock()
	st := Status{Clusters: d.cfg.Clusters, Tailnets: d.cfg.Tailnets, IPFamily: d.cfg.IPFamily.WithDefault(), SlowPaths: d.cfg.Path != nil, Ready: d.ready, Failed: d.failed, Steps: d.progress.list(), Forwards: append([]Forward(nil), d.forwards...)}
	all := append([]*supervised(nil), d.components...)
	d.mu.Unlock()
	if !components {
		return st
	}
	st.Components = make([]ComponentStatus, len(all))
	var wg sync.WaitGroup
	for i, s := range all {
		wg.Go(func() { st.Components[i] = s.status(ctx) })
	}
	wg.Wait()
	return st
}

// start supervises a component and waits until its check succeeds.
func (d *Daemon) start(ctx context.Context, c component.Component, limit time.Duration, say func(string)) error {
	s, err := supervise(ctx, c, d.madeNamespace(c.Namespace), d.cfg.Paths.Logs())
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.components = append(d.components, s)
	d.mu.Unlock()
	err = until(ctx, limit, say, func(ctx context.Context) error {
		if st := s.status(ctx); !st.Healthy {
			return errors.Errorf("%s: %s", c.Name, st.Detail)
		}
		return nil
	})
	return errors.Wrapf(err, "cannot start %q, see `lab logs %s`", c.Name, c.Name)
}

// addForward creates a forward that lasts as long as the daemon.
func (d *Daemon) addForward(ctx context.Context, name string, port int, namespace, target string) (Forward, error) {
	f, err := forward(ctx, name, port, namespace, target)
	if err != nil {
		return Forward{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forwards = append(d.forwards, f)
	return f, nil
}

// forwardTo returns the loopback address of the forward of that name.
func (d *Daemon) forwardTo(name string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range d.forwards {
		if f.Name == name {
			return f.From
		}
	}
	return ""
}

// findTailnet returns one of the lab's tailnets.
func (d *Daemon) findTailnet(name string) (plan.Tailnet, error) {
	for _, t := range d.tailnets {
		if t.Name == name {
			return t, nil
		}
	}
	return plan.Tailnet{}, errors.Errorf("cannot find tailnet %q: the lab was brought up with --tailnets=%d", name, len(d.tailnets))
}

// ensureClient creates a client of that name in a tailnet, unless it exists, and waits
// until it has joined.
func (d *Daemon) ensureClient(ctx context.Context, t plan.Tailnet, name string, as ClientOptions, say func(string)) error {
	if !clientName.MatchString(name) {
		return errors.Errorf("cannot create tailnet client %q: the name must be a DNS label", name)
	}
	d.clients.Lock()
	defer d.clients.Unlock()
	p := d.cfg.Paths
	c := client(p, t, d.cfg.Bin, name)
	d.mu.Lock()
	exists := false
	for _, s := range d.components {
		exists = exists || s.Name == c.Name
	}
	d.mu.Unlock()
	if !exists {
		key, err := d.mintKey(ctx, t, name, as.tags())
		if err != nil {
			return err
		}
		if err := writeClient(p, t, name, key, as.Routes); err != nil {
			return err
		}
		if err := d.start(ctx, c, time.Minute, say); err != nil {
			return err
		}
	}
	if err := joined(ctx, p.ClientSocket(t.Name, name), name, say); err != nil || len(as.Routes) == 0 {
		return err
	}
	return d.enableRoutes(ctx, t, name, as.Routes)
}

// Log returns the path of a component's log; name may also be "daemon".
func Log(p host.Paths, name string) string {
	return filepath.Join(p.Logs(), strings.ReplaceAll(name, "/", "")+".log")
}
