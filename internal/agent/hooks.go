// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"io/fs"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
	"github.com/tailscale-gateway/tailscale-gateway/internal/sidecar"
)

const (
	// preStopTimeout bounds how long the agent's hook may take. A hook that fails begins no drain.
	preStopTimeout = time.Minute

	// beginWhileFailing replaces Pauses.Begin while the tailscale container fails its liveness probe: it
	// is probably restarted, and serves nobody.
	beginWhileFailing = 10 * time.Second

	// socketMode lets only the agent's user connect.
	socketMode fs.FileMode = 0o600
)

// ListenHooks returns a listener on a socket, for hooks that only processes of the pod can
// call. It removes the socket of an earlier run.
func ListenHooks(ctx context.Context, path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Wrap(err, "cannot remove old socket")
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot listen on %q", path)
	}
	return l, errors.Wrap(os.Chmod(path, socketMode), "cannot restrict socket")
}

// PreStop requests that the agent whose hooks are at a socket withdraws all services.
func PreStop(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, preStopTimeout)
	defer cancel()
	c := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://agent"+sidecar.PathPreStop, http.NoBody)
	if err != nil {
		return errors.Wrap(err, "cannot make request")
	}
	res, err := c.Do(req)
	if err != nil {
		return errors.Wrap(err, "cannot reach the agent")
	}
	if err := res.Body.Close(); err != nil {
		return errors.Wrap(err, "cannot read the agent's answer")
	}
	if res.StatusCode != http.StatusOK {
		return errors.Errorf("agent answered %s", res.Status)
	}
	return nil
}

// hooks returns the handler of the hooks that only processes of the pod can call.
func (a *Agent) hooks() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+sidecar.PathPreStop, a.preStop)
	return mux
}

// preStop withdraws all services. Kubelet runs the command that calls it when it stops the pod.
func (a *Agent) preStop(w http.ResponseWriter, r *http.Request) {
	started := make(chan struct{})
	a.do(r.Context(), func(l *loop) {
		l.startDrain(time.Now())
		close(started)
	})
	select {
	case <-r.Context().Done():
	case <-started:
		w.WriteHeader(http.StatusOK)
	}
}

// drained answers when clients have had time to move and connections into the tailnet have
// ended, or after a pause if no drain begins. It changes nothing, because any client that
// reaches the pod can call it. Kubelet calls it before it stops the tailscale container.
func (a *Agent) drained(w http.ResponseWriter, r *http.Request) {
	pause := a.opts.Pauses.Begin
	if a.health.failing(time.Now()) {
		pause = min(pause, beginWhileFailing)
	}
	ctx, cancel := context.WithTimeout(r.Context(), pause)
	defer cancel()
	begins := make(chan (<-chan struct{}), 1)
	a.do(ctx, func(l *loop) { begins <- l.drains.draining() })
	select {
	case <-ctx.Done():
	case begun := <-begins:
		select {
		case <-ctx.Done():
		case <-begun:
			a.awaitDrain(r.Context())
		}
	}
	w.WriteHeader(http.StatusOK)
}

// awaitDrain returns when no drain is under way.
func (a *Agent) awaitDrain(ctx context.Context) {
	ends := make(chan (<-chan struct{}), 1)
	a.do(ctx, func(l *loop) {
		d := l.drains.current
		if d == nil {
			close(ends)
			return
		}
		ends <- d.done
	})
	select {
	case <-ctx.Done():
	case done := <-ends:
		if done == nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-done:
		}
	}
}
