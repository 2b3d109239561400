// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package sidebyside

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	// drainRate is the number of new connections a second while pods are deleted, and drainWorkers
	// the maximum of open ones: enough to keep the rate while some hang.
	drainRate, drainWorkers = 25, 250

	// drainTimeout is how long a client waits for a response.
	drainTimeout = 10 * time.Second

	// watchEvery is the interval at which the machine with a service's addresses is read from the
	// tailnet.
	watchEvery = 100 * time.Millisecond

	// heard is how long a client may take to learn of a move of the addresses, on a busy machine.
	heard = 3 * time.Second

	// underWay is how long a request may take on a busy machine. A request that began earlier
	// before a move was lost for another reason.
	underWay = 2 * time.Second
)

// Drained holds the results for new connections while ingress pods were deleted.
type Drained struct {
	Deletions, Requests int

	// Lost are lost requests, and Moved those that were in flight while control moved the service's
	// addresses: only one peer of a client's map has an address (tailscale.com v1.102.5
	// net/routemanager, SetScore). Packets of the connection then go to a machine without its
	// state, independently of the old machine.
	Lost, Moved []Failure

	// Moves of the addresses.
	Moves int

	// Longest deletion.
	Longest time.Duration
}

// Add adds the results of another set of proxies.
func (d *Drained) Add(o Drained) {
	d.Deletions += o.Deletions
	d.Requests += o.Requests
	d.Lost = append(d.Lost, o.Lost...)
	d.Moved = append(d.Moved, o.Moved...)
	d.Moves += o.Moves
	d.Longest = max(d.Longest, o.Longest)
}

// A span of time.
type span struct{ from, to time.Time }

// moves records the machine with a service's addresses.
type moves struct {
	mu    sync.Mutex
	seen  []span
	cause error
}

func (m *moves) add(s span) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = append(m.seen, s)
}

// during reports whether a request was in flight while addresses moved.
func (m *moves) during(f Failure) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.seen {
		if f.Began.After(s.from.Add(-underWay)) && f.Began.Before(s.to.Add(heard)) && !f.Ended.Before(s.from) {
			return true
		}
	}
	return false
}

// watch records moves until the context ends.
func (m *moves) watch(ctx context.Context, l *Lab, service string) {
	t := time.NewTicker(watchEvery)
	defer t.Stop()
	last, lastAt := "", time.Now()
	for {
		began := time.Now()
		now, err := l.primary(ctx, service)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			m.mu.Lock()
			m.cause = err
			m.mu.Unlock()
		case now != "":
			if last != "" && now != last {
				m.add(span{from: lastAt, to: time.Now()})
			}
			last, lastAt = now, began
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// primary returns the machine that has a service's addresses. It is empty if there is none.
func (l *Lab) primary(ctx context.Context, service string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.env["TAILNET_API"]+"/sim/state", http.NoBody)
	if err != nil {
		return "", errors.Wrap(err, "cannot create request")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", errors.Wrap(err, "cannot read the tailnet's state")
	}
	defer res.Body.Close()
	var st struct {
		Services []struct{ Name, Primary string }
	}
	if err := json.NewDecoder(res.Body).Decode(&st); err != nil {
		return "", errors.Wrap(err, "cannot decode the tailnet's state")
	}
	for _, s := range st.Services {
		if s.Name == "svc:"+service {
			return s.Primary, nil
		}
	}
	return "", errors.Errorf("the tailnet has no svc:%s", service)
}

// Drain deletes the two ingress pods in turn, each once both host a service, while new connections
// arrive.
func (o *Ours) Drain(ctx context.Context, deletions int) (Drained, error) {
	name := o.name + "-drained"
	if err := o.ApplyIngress(ctx, name); err != nil {
		return Drained{}, err
	}
	if err := o.hosting(ctx, name); err != nil {
		return Drained{}, err
	}
	out, m := Drained{}, &moves{}
	watching, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { m.watch(watching, o.lab, name) })
	defer wg.Wait()
	defer stop()
	t, err := o.lab.start(ctx, "tailnet", o.IngressURL(name), "--new-connections", "--workers="+strconv.Itoa(drainWorkers),
		"--rate="+strconv.Itoa(drainRate), "--timeout="+drainTimeout.String(), "--for="+(time.Duration(deletions)*upLimit).String())
	if err != nil {
		return out, err
	}
	failed := pause(ctx, settled)
	for i := 0; i < deletions && failed == nil; i++ {
		began := time.Now()
		failed = o.lab.rollPod(ctx, Namespace, fmt.Sprintf("%s-ingress-%d", o.ingress(), i%replicas))
		out.Longest = max(out.Longest, time.Since(began))
		if failed == nil {
			failed = o.hosting(ctx, name)
		}
		out.Deletions++
		o.lab.progress("drain: %s: deletion %d of %d after %s", o.name, out.Deletions, deletions, time.Since(began).Round(time.Second))
	}
	if failed == nil {
		failed = pause(ctx, settled)
	}
	stopped := t.stop()
	r, err := t.wait()
	stop()
	wg.Wait()
	out.Requests, out.Moves = r.Requests+r.Failed, len(m.seen)
	for _, f := range r.Failures {
		if m.during(f) {
			out.Moved = append(out.Moved, f)
		} else {
			out.Lost = append(out.Lost, f)
		}
	}
	return out, errors.Join(failed, stopped, err, m.cause)
}

// hosting waits until all machines host a service.
func (o *Ours) hosting(ctx context.Context, name string) error {
	return o.lab.until(ctx, "the hosts of "+name, func(ctx context.Context) error {
		out, err := o.lab.kubectl(ctx, "get", "--namespace="+Namespace, "tailscaleservices", name, "-o=jsonpath={.status.hostingMachines}")
		if err == nil && out != strconv.Itoa(replicas) {
			err = errors.Errorf("%q of %d machines host the service", out, replicas)
		}
		return err
	})
}
