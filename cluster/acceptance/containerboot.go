// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"tailscale.com/client/local"
	"tailscale.com/ipn"
	"tailscale.com/types/opt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/atomicdir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
)

const (
	// configFile is the file that containerboot reads in its config folder, as in a proxy pod.
	configFile = "cap-106.hujson"

	serveFile = "serve-config.json"

	// usualSocket is the path of containerboot's link to its socket.
	usualSocket = "/var/run/tailscale/tailscaled.sock"

	// stopTimeout is how long containerboot may take to drain: 20 seconds for clients to move, and a
	// margin.
	stopTimeout = 40 * time.Second
)

// A proxy is containerboot with its tailscaled, as processes of this machine.
type proxy struct {
	node

	dir      string
	config   *atomicdir.Dir
	base     []byte
	health   string
	socket   string
	program  string
	env      []string
	cmd      *exec.Cmd
	output   *tail
	done     chan error
	restarts int

	// linkDir reports that containerboot creates the folder of its link.
	linkDir bool
}

// containerbootProgram finds containerboot, with tailscaled beside it.
func (t *turn) containerbootProgram(ctx context.Context) (string, error) {
	path := t.run.opts.Containerboot
	if path == "" {
		out, err := exec.CommandContext(ctx, "go", "run", "./cluster/lab", "bin", "containerboot").Output()
		if err != nil {
			return "", skipf(skipMissing, "containerboot is not built: run go run ./cluster/lab build tailscale, or pass --containerboot")
		}
		path = strings.TrimSpace(string(out))
	}
	for _, p := range []string{path, filepath.Join(filepath.Dir(path), "tailscaled")} {
		if _, err := os.Stat(p); err != nil {
			return "", skipf(skipMissing, "%s is missing: run go run ./cluster/lab build tailscale", filepath.Base(p))
		}
	}
	return path, nil
}

// proxyOptions are the options of a proxy. Without any, it only joins the tailnet.
type proxyOptions struct {
	// serve is the serve config, and empty in egress pods.
	serve []byte

	// acceptRoutes is on in egress pods.
	acceptRoutes bool

	// control is the coordination server's URL, if it differs from the run's, and env are additional
	// environment variables.
	control string
	env     []string
}

// startProxy runs containerboot as the tailscale container of a proxy pod does
// (internal/proxy/containers.go), without a cluster: its state is in a folder.
func (t *turn) startProxy(ctx context.Context, suffix string, o proxyOptions) (*proxy, error) {
	program, err := t.containerbootProgram(ctx)
	if err != nil {
		return nil, err
	}
	key, err := t.mint(ctx, suffix, false)
	if err != nil {
		return nil, err
	}
	p := &proxy{dir: filepath.Join(os.TempDir(), t.name(suffix)), program: program, output: &tail{}}
	p.hostname = t.name(suffix)
	if _, err := t.run.ledger.intend("", kindDir, p.dir, ""); err != nil {
		return nil, err
	}
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		return nil, errors.Wrap(err, "cannot create a folder")
	}
	disabled, control := opt.NewBool(false), cmp.Or(o.control, t.run.opts.ControlURL)
	cfg := ipn.ConfigVAlpha{
		Version: "alpha0", Locked: disabled, AcceptDNS: disabled, AcceptRoutes: opt.NewBool(o.acceptRoutes), Hostname: &p.hostname, AuthKey: &key.secret, ServerURL: &control,
	}
	if p.base, err = json.Marshal(cfg); err != nil { //nolint:gosec // The key is what the file is for; its mode is 0600.
		return nil, errors.Wrap(err, "cannot encode tailscaled's config")
	}
	p.config = atomicdir.New(filepath.Join(p.dir, "config"), configFile)
	proxies := atomicdir.New(filepath.Join(p.dir, "proxies"), serveFile)
	if _, err := p.config.Write(p.base); err != nil {
		return nil, err
	}
	if len(o.serve) > 0 {
		if _, err := proxies.Write(o.serve); err != nil {
			return nil, err
		}
	}
	if p.health, err = freeAddress(ctx); err != nil {
		return nil, err
	}
	// The path of a socket must be short.
	p.socket = filepath.Join(p.dir, "s")
	if p.seq, err = t.run.ledger.intend("", kindDevice, p.hostname, ""); err != nil {
		return nil, err
	}
	p.env = append([]string{
		"PATH=" + filepath.Dir(program) + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME=" + p.dir,
		"TS_EXPERIMENTAL_VERSIONED_CONFIG_DIR=" + filepath.Join(p.dir, "config"),
		"TS_EXPERIMENTAL_SERVICE_AUTO_ADVERTISEMENT=false",
		"TS_USERSPACE=true",
		"TS_SOCKET=" + p.socket,
		"TS_STATE_DIR=" + filepath.Join(p.dir, "state"),
		"TS_ENABLE_HEALTH_CHECK=true",
		"TS_ENABLE_METRICS=true",
		"TS_LOCAL_ADDR_PORT=" + p.health,
	}, o.env...)
	if len(o.serve) > 0 {
		p.env = append(p.env, "TS_SERVE_CONFIG="+filepath.Join(p.dir, "proxies", serveFile))
	}
	if !t.run.opts.real() {
		for k, v := range simulatorEnv {
			p.env = append(p.env, k+"="+v)
		}
		// Nodes of the run get the lab's certificate authority from the environment.
		for _, k := range []string{"TS_DEBUG_ACME_DIRECTORY_URL", "SSL_CERT_FILE"} {
			if v := os.Getenv(k); v != "" {
				p.env = append(p.env, k+"="+v)
			}
		}
	}
	if _, err := os.Stat(filepath.Dir(usualSocket)); err != nil {
		p.linkDir = true
	}
	p.local = &local.Client{Socket: p.socket, UseSocketOnly: true}
	return p, p.launch()
}

// launch starts containerboot. It must drain when the run is stopped, so no context ends it.
func (p *proxy) launch() error {
	p.cmd, p.done = exec.Command(p.program), make(chan error, 1) //nolint:noctx // See above.
	p.cmd.Env = p.env
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	endWithParent(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return errors.Wrap(err, "cannot start containerboot")
	}
	cmd, done := p.cmd, p.done
	go func() { done <- cmd.Wait() }()
	return nil
}

func freeAddress(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", errors.Wrap(err, "cannot find a free port")
	}
	return ln.Addr().String(), errors.Wrap(ln.Close(), "cannot find a free port")
}

// joined waits until containerboot is healthy, and records the device's ID.
func (p *proxy) joined(ctx context.Context, t *turn) error {
	took, err := t.until(ctx, "containerboot is healthy", func(ctx context.Context) (string, error) {
		select {
		case err := <-p.done:
			p.done <- err
			return "", errors.Errorf("containerboot ended (%v): %s", err, p.output.last())
		default:
		}
		return p.unhealthy(ctx), nil
	})
	if err != nil {
		return err
	}
	t.measure("healthy", took)
	st, err := p.status(ctx)
	if err != nil {
		return err
	}
	p.id = string(st.Self.ID)
	return t.run.ledger.made(p.seq, p.id)
}

func (p *proxy) unhealthy(ctx context.Context) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.health+"/healthz", http.NoBody)
	if err != nil {
		return err.Error()
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		return "no answer"
	}
	_ = r.Body.Close() // Only the status counts.
	if r.StatusCode != http.StatusOK {
		return r.Status
	}
	return ""
}

// offer writes the config with the services to advertise, as the agent does.
func (p *proxy) offer(services ...string) error {
	b, err := plan.TailscaledConfig(p.base, services)
	if err != nil {
		return err
	}
	_, err = p.config.Write(b)
	return err
}

// stop lets containerboot drain and end, and returns how long that took.
func (p *proxy) stop() (time.Duration, error) {
	began := time.Now()
	defer p.unlink()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return 0, errors.Wrap(err, "cannot stop containerboot")
	}
	select {
	case err := <-p.done:
		p.done <- err
		return time.Since(began), errors.Wrapf(err, "containerboot failed: %s", p.output.last())
	case <-time.After(stopTimeout):
		return time.Since(began), errors.Join(errors.Errorf("containerboot did not end within %s", stopTimeout), p.cmd.Process.Kill())
	}
}

// unlink removes the link to this containerboot's socket, and the folder that containerboot created
// for the link.
func (p *proxy) unlink() {
	if target, err := os.Readlink(usualSocket); err == nil && target == p.socket {
		_ = os.Remove(usualSocket) // Its target is gone.
	}
	if p.linkDir {
		_ = os.Remove(filepath.Dir(usualSocket)) // It fails if the folder is not empty.
	}
}

// A tail keeps the end of what a program prints.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailSize = 4 << 10

// Write implements io.Writer.
func (w *tail) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b = append(w.b, p...)
	if len(w.b) > tailSize {
		w.b = bytes.Clone(w.b[len(w.b)-tailSize:])
	}
	return len(p), nil
}

func (w *tail) last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.b)
}

func containerboot(ctx context.Context, t *turn) (err error) {
	client, err := t.client(ctx)
	if err != nil {
		return err
	}
	s, err := t.made(ctx, t.service("boot"))
	if err != nil {
		return err
	}
	v4, _, err := addresses(s)
	if err != nil {
		return err
	}
	backend := &host{node: &node{hostname: "backend"}, conns: map[net.Conn]bool{}}
	defer backend.close()
	addr, err := backend.listen(ctx, 0)
	if err != nil {
		return err
	}
	serve, err := plan.ServeConfig(map[string]plan.Handlers{s.Name: {80: {Forward: addr}}})
	if err != nil {
		return err
	}
	p, err := t.startProxy(ctx, "boot-proxy", proxyOptions{serve: serve})
	if err != nil {
		return err
	}
	stopped := false
	defer func() {
		if !stopped {
			_, stopErr := p.stop()
			err = errors.Join(err, stopErr)
		}
	}()
	if err := p.joined(ctx, t); err != nil {
		return err
	}
	if err := t.certificates(ctx, &p.node, s.Name, "joined"); err != nil {
		return err
	}
	if _, err := t.settled(ctx, s.Name, &p.node, "1 served, not advertised", func(hostState) bool { return true }); err != nil {
		return err
	}
	if err := p.offer(s.Name); err != nil {
		return err
	}
	if err := t.awaitAcceptance(ctx, s.Name, &p.node); err != nil {
		return err
	}
	if _, err := t.settled(ctx, s.Name, &p.node, "2 advertised", func(h hostState) bool { return h.listed && configuredOf(h) }); err != nil {
		return err
	}
	if err := t.certificates(ctx, &p.node, s.Name, "accepted"); err != nil {
		return err
	}
	if err := t.reaches(ctx, client, v4, "backend"); err != nil {
		return err
	}
	if err := p.offer(); err != nil {
		return err
	}
	if _, err := t.settled(ctx, s.Name, &p.node, "3 withdrawn", func(h hostState) bool { return !h.listed || !configuredOf(h) }); err != nil {
		return err
	}
	if err := p.offer(s.Name); err != nil {
		return err
	}
	if err := t.awaitAcceptance(ctx, s.Name, &p.node); err != nil {
		return err
	}
	// It drains first, because it advertises a service.
	stopped = true
	took, err := p.stop()
	t.measure("drained and stopped", took)
	return err
}
