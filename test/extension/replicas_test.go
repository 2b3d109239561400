//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"bytes"
	"context"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
	"github.com/tailscale-gateway/tailscale-gateway/test/standalone"
)

const (
	// outage is the length of outages that must not affect traffic.
	outage = 3 * time.Second

	// observe2 is the observe address of the second replica.
	observe2 = "127.0.0.1:5009"

	// moved is the new address of two.
	moved = "192.0.2.34:8000"
)

// routes of rules.yaml.
var routes = []string{"shared", "own", "split", "sticky"}

// targets of rules.yaml, by name.
var targets = map[string]string{"one": "192.0.2.31:8000", "two": "192.0.2.32:8000", "new": "192.0.2.33:8000"}

// replicas are two replicas of the extension. Envoys dial both, and each replica announces the
// other first; Envoy Gateway calls one of them.
type replicas struct {
	*environment

	// second runs beside the first, and watches the API through watch.
	second *apiserver.Process
	watch  *standalone.Passage

	// hooks directs Envoy Gateway to the socket in current.
	hooks            *standalone.Passage
	current          atomic.Pointer[string]
	socket1, socket2 string
}

// TestReplicas makes one of two replicas of the extension lag, freeze and crash while routes
// change.
func TestReplicas(t *testing.T) {
	r := newReplicas(t)
	for _, addr := range append(slices.Collect(maps.Values(targets)), moved) {
		r.serve(t, addr, respond(addr))
	}
	r.apply(t, "rules.yaml")
	for _, route := range routes {
		r.answers(t, route+".example.com/one", targets["one"])
		r.answers(t, route+".example.com/two", targets["two"])
	}

	t.Run("HooksLag", r.hooksLag)
	t.Run("EndpointsLag", r.endpointsLag)
	t.Run("Frozen", r.frozen)
	t.Run("FrozenAndKilled", r.frozenAndKilled)
	t.Run("PacketsDropped", r.packetsDropped)
	t.Run("EndpointsFrozen", r.endpointsFrozen)
	t.Run("EndpointsKilled", r.endpointsKilled)
	t.Run("OneDown", r.oneDown)
}

func newReplicas(t *testing.T) *replicas {
	t.Helper()
	return newReplicasOf(t, standalone.Options{})
}

// newReplicasOf is like newReplicas, with additional options of Envoy Gateway.
func newReplicasOf(t *testing.T, o standalone.Options) *replicas {
	t.Helper()
	dir := t.TempDir()
	r := &replicas{socket1: filepath.Join(dir, "1.sock"), socket2: filepath.Join(dir, "2.sock")}
	r.environment = newEnvironmentOf(t, o, "--hooks-address=unix:"+r.socket1, "--eds-target=ipv4:127.0.0.1:5008,127.0.0.1:5006", "--direct-targets")

	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", r.socket)
	if err != nil {
		t.Fatal(err)
	}
	r.current.Store(&r.socket2)
	r.hooks = standalone.NewPassage(t.Context(), l, func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", *r.current.Load())
	})
	t.Cleanup(func() { check(t, r.hooks.Close()) })

	at, err := url.Parse(r.api.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	lagging := r.listen(t, "127.0.0.1:0")
	r.watch = standalone.NewPassage(t.Context(), lagging, func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", at.Host)
	})
	t.Cleanup(func() { check(t, r.watch.Close()) })
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, bytes.ReplaceAll(r.api.Kubeconfig, []byte(at.Host), []byte(lagging.Addr().String())), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := append(slices.Clone(r.command[1:]), "--hooks-address=unix:"+r.socket2, "--eds-address=127.0.0.1:5008",
		"--eds-target=ipv4:127.0.0.1:5006,127.0.0.1:5008", "--observe-address="+observe2, "--kubeconfig="+kubeconfig)
	if r.second, err = r.Run(r.log, r.command[0], flags...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, r.second.Kill()) })
	if err := r.Answers(within(t), "http://"+observe2+"/ready", ""); err != nil {
		t.Fatal(err)
	}
	return r
}

// hooksLag inserts rules while the replica that answers hooks lags, and Envoy has its endpoints
// from the other.
func (r *replicas) hooksLag(t *testing.T) {
	r.inserts(t)
}

// endpointsLag inserts rules while the replica with Envoy's endpoints lags.
func (r *replicas) endpointsLag(t *testing.T) {
	r.turn(t, r.socket1)
	r.inserts(t)
}

// turn directs hooks to the replica with that socket, from the next change on.
func (r *replicas) turn(t *testing.T, socket string) {
	t.Helper()
	r.current.Store(&socket)
	r.hooks.Cut()
}

// inserts inserts a rule before the others of each route while the second replica lags, and removes
// it: no request may reach another rule's target, and no request to the existing rules may be lost.
func (r *replicas) inserts(t *testing.T) {
	for _, route := range routes {
		t.Run(route, func(t *testing.T) { r.insertsInto(t, route) })
	}
}

func (r *replicas) insertsInto(t *testing.T, route string) {
	host := route + ".example.com"
	l := r.load(t, host+"/one", host+"/two", host+"/new")
	for _, rules := range [][]string{{"new", "one", "two"}, {"one", "two"}} {
		r.watch.Hold()
		r.patch(t, objectOf("HTTPRoute", route), rulesPatch(route, rules...))
		r.until(t, func(ctx context.Context) error {
			got, err := r.paths(ctx)
			if err == nil && len(got[host]) != len(rules) {
				err = errors.Errorf("Envoy has the paths %v of %s, want %v", got[host], host, rules)
			}
			return err
		})
		// The replica still lags.
		l.more(t, r.environment)
		r.watch.Release()
		for _, name := range rules {
			r.answers(t, host+"/"+name, targets[name])
		}
	}
	l.more(t, r.environment)
	all := l.end()
	failed, counts := 0, map[string]int{}
	for _, q := range all {
		switch {
		case q.Err != nil && q.path == "new":
			// Requests to the new rule fail until it exists.
			failed++
		case q.Err != nil:
			t.Errorf("a request to %s/%s is lost: %v", q.host, q.path, q.Err)
		case q.Answer != targets[q.path]:
			t.Errorf("a request to %s/%s got a response from %s", q.host, q.path, q.Answer)
		default:
			counts[q.path]++
		}
	}
	// Otherwise the test proves nothing.
	if counts["one"] == 0 || counts["two"] == 0 || counts["new"] == 0 {
		t.Errorf("want responses of all targets, got %v", counts)
	}
	t.Logf("of %d requests, %d to the new rule got no response", len(all), failed)
}

// rulesPatch returns a patch with the rules of a route: the path of each is its target's name.
// Rules that split name their target twice.
func rulesPatch(route string, names ...string) string {
	rules := make([]string, len(names))
	for i, n := range names {
		refs := `{"group":"gateway.tailscale.com","kind":"TailscaleServices","name":"` + n + `","port":80}`
		rules[i] = `{"matches":[{"path":{"type":"PathPrefix","value":"/` + n + `"}}],"backendRefs":[` + refs
		if route == "split" || route == "sticky" {
			rules[i] += `,` + refs
		}
		rules[i] += `]`
		if route == "sticky" {
			rules[i] += `,"sessionPersistence":{"sessionName":"sticky"}`
		}
		rules[i] += `}`
	}
	return `{"spec":{"rules":[` + strings.Join(rules, ",") + `]}}`
}

// renames renames the first route's host during an outage of the replica that answers hooks.
// Traffic must continue, and the new name must answer in the end.
func (r *replicas) renames(t *testing.T, host string, outage func()) {
	t.Helper()
	l := r.load(t, "own.example.com/one")
	outage()
	began := time.Now()
	r.answers(t, host+"/one", targets["one"])
	t.Logf("the new name answers %s after the replica recovers", time.Since(began).Round(time.Millisecond))
	r.undisturbed(t, l)
}

// rename renames the first route's host while Envoy Gateway cannot translate, once Envoy Gateway
// has processed the last change.
func (r *replicas) rename(t *testing.T, host string) {
	t.Helper()
	r.patch(t, objectOf("HTTPRoute", "shared"), `{"spec":{"hostnames":["`+host+`"]}}`)
	pause(t, outage)
	if _, err := r.get(t.Context(), host+"/one"); err == nil {
		t.Errorf("%s answers although no hook can have run", host)
	}
}

// frozen freezes a replica, which keeps its connections. Envoy Gateway waits for it.
func (r *replicas) frozen(t *testing.T) {
	r.renames(t, "frozen.example.com", func() {
		signal(t, r.extension, syscall.SIGSTOP)
		r.rename(t, "frozen.example.com")
		signal(t, r.extension, syscall.SIGCONT)
	})
}

// frozenAndKilled kills a frozen replica, as kubelet does after failed liveness probes. Envoy
// Gateway's call is lost.
func (r *replicas) frozenAndKilled(t *testing.T) {
	r.renames(t, "killed.example.com", func() {
		signal(t, r.extension, syscall.SIGSTOP)
		r.rename(t, "killed.example.com")
		if err := r.extension.Kill(); err != nil {
			t.Fatal(err)
		}
		r.startExtension(t)
	})
}

// packetsDropped drops packets between Envoy Gateway and the replica for a while.
func (r *replicas) packetsDropped(t *testing.T) {
	r.renames(t, "dropped.example.com", func() {
		r.hooks.Hold()
		r.rename(t, "dropped.example.com")
		r.hooks.Release()
	})
}

func signal(t *testing.T, p *apiserver.Process, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(p.PID(), s); err != nil {
		t.Fatal(err)
	}
}

// endpointsFrozen freezes the replica with Envoy's endpoints. Envoy notices by HTTP/2 pings,
// because the connection does not end.
func (r *replicas) endpointsFrozen(t *testing.T) {
	if n, err := r.metrics(t.Context(), observe2, "tailscale_gateway_eds_streams"); err != nil || n == "" || n == "0" {
		t.Fatalf("Envoy has no stream to the second replica: %q, %v", n, err)
	}
	signal(t, r.second, syscall.SIGSTOP)
	r.moves(t, "192.0.2.34", moved)
	signal(t, r.second, syscall.SIGCONT)
}

// endpointsKilled kills the other replica, to which Envoy has connected.
func (r *replicas) endpointsKilled(t *testing.T) {
	if err := r.extension.Kill(); err != nil {
		t.Fatal(err)
	}
	r.moves(t, "192.0.2.32", targets["two"])
	r.startExtension(t)
}

// moves moves a target. Envoy gets the change from the remaining replica, and traffic continues.
func (r *replicas) moves(t *testing.T, host, backend string) {
	t.Helper()
	l := r.load(t, "own.example.com/one")
	u := objectOf(v1alpha1.TailscaleServicesKind, "two")
	u.SetAPIVersion(v1alpha1.SchemeGroupVersion.String())
	began := time.Now()
	r.patch(t, u, `{"spec":{"backends":[{"kind":"External","name":"two","host":"`+host+`","port":8000}]}}`)
	r.answers(t, "own.example.com/two", backend)
	t.Logf("new endpoints answer after %s, from the remaining replica", time.Since(began).Round(time.Millisecond))
	r.undisturbed(t, l)
}

// undisturbed checks that a load to one target has lost nothing.
func (r *replicas) undisturbed(t *testing.T, l *traffic) {
	t.Helper()
	l.more(t, r.environment)
	all := l.end()
	for _, q := range all {
		if q.Err != nil || q.Answer != targets["one"] {
			t.Errorf("%q answered a request: %v", q.Answer, q.Err)
		}
	}
	t.Logf("%d requests meanwhile", len(all))
}

// oneDown starts an Envoy while the replica is down that it dials first.
func (r *replicas) oneDown(t *testing.T) {
	if err := r.second.Kill(); err != nil {
		t.Fatal(err)
	}
	// A network has room for one Envoy.
	r.remove(t, objectOf("Gateway", "gw"))
	r.until(t, func(ctx context.Context) error {
		if c, err := r.Dial(ctx, "tcp", "127.0.0.1:8888"); err == nil {
			return errors.Join(errors.New("Envoy is still running"), c.Close())
		}
		return nil
	})
	began := time.Now()
	r.apply(t, "second.yaml")
	if err := r.Answers(within(t), "http://127.0.0.1:8889/", ""); err != nil {
		t.Fatal(err)
	}
	t.Logf("an Envoy that starts meanwhile answers %s after the creation of its Gateway", time.Since(began).Round(time.Millisecond))
}

// paths returns the paths of Envoy's routes, by domain.
func (w *environment) paths(ctx context.Context) (map[string][]string, error) {
	out := map[string][]string{}
	return out, w.routes(ctx, func(domain string, r envoyRoute) {
		if p := r.Match.Prefix + r.Match.Separated; !slices.Contains(out[domain], p) {
			out[domain] = append(out[domain], p)
		}
	})
}
