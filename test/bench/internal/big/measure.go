// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package big

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/harness"
	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/hops"
)

const (
	// deathLimit is how long a death may take to be seen.
	deathLimit = 5 * time.Minute

	// look is how often objects are looked at.
	look = 200 * time.Millisecond

	// joinLimit is how long a node may take to join a large tailnet.
	joinLimit = 5 * time.Minute

	stopGrace = 10 * time.Second
)

// A Poll is the mean cost of a poll at rest.
type Poll struct {
	// Bytes of all responses, and Took is how long the API worked until it had sent them.
	Bytes float64
	Took  time.Duration

	// Lists and Writes are calls.
	Lists, Writes float64

	// Processor is the provider's processor time.
	Processor time.Duration
}

// Polls returns the cost of a poll, of several after two that do not count: our provider reads the records of
// the other clusters in the first or the second, and then writes its copy of them.
func (t *Tailnet) Polls(ctx context.Context, n int, interval time.Duration) (Poll, error) {
	if err := harness.Pause(ctx, 2*interval); err != nil {
		return Poll{}, err
	}
	start := t.traffic.Since(harness.Responses{})
	t.sim.ResetCalls()
	used, err := harness.Processor(t.provider.Process)
	if err != nil {
		return Poll{}, err
	}
	if err := harness.Pause(ctx, time.Duration(n)*interval); err != nil {
		return Poll{}, err
	}
	if err := t.provider.Running(); err != nil {
		return Poll{}, err
	}
	end, err := harness.Processor(t.provider.Process)
	if err != nil {
		return Poll{}, err
	}
	total := t.traffic.Since(start)
	return Poll{
		Bytes: float64(total.Bytes) / float64(n), Took: total.Took / time.Duration(n),
		Lists: float64(t.sim.Counted().Lists) / float64(n), Writes: float64(total.Writes) / float64(n),
		Processor: (end - used) / time.Duration(n),
	}, nil
}

// Memory returns the provider's memory.
func (t *Tailnet) Memory() (harness.Memory, error) { return t.provider.Memory() }

// Annotations returns the size of the largest value of an annotation, and the mean size of all annotations
// of services that have some.
func (t *Tailnet) Annotations() (largest, mean int) {
	total, n := 0, 0
	for _, s := range t.sim.State().Services {
		if len(s.Annotations) == 0 {
			continue
		}
		n++
		for k, v := range s.Annotations {
			largest = max(largest, len(v))
			total += len(k) + len(v)
		}
	}
	return largest, total / max(n, 1)
}

// Deaths takes devices offline, with a pause between them, and returns how long each of their objects took
// to show it.
func (t *Tailnet) Deaths(ctx context.Context, n int, pause time.Duration) ([]time.Duration, error) {
	died := map[string]time.Time{}
	var out []time.Duration
	for began := time.Now(); len(out) < n; {
		if next := len(died) + len(out); next < n && time.Since(began) >= time.Duration(next)*pause {
			if !t.sim.SetOnline(t.nodes[next], false) {
				return nil, errors.New("the tailnet lacks a device")
			}
			died[fmt.Sprintf("node-%d", next)] = time.Now()
		}
		if err := harness.Pause(ctx, look); err != nil {
			return nil, err
		}
		offline, err := t.offline(ctx)
		if err != nil {
			return nil, err
		}
		for name, at := range died {
			if offline[name] {
				out = append(out, time.Since(at))
				delete(died, name)
			} else if time.Since(at) > deathLimit {
				return nil, errors.Errorf("Device %q does not show that it is offline", name)
			}
		}
	}
	return out, nil
}

// offline returns the names of the Devices whose status shows that they are offline.
func (t *Tailnet) offline(ctx context.Context) (map[string]bool, error) {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(harness.Kind(v1alpha1.DeviceKind))
	if err := t.env.Kube.List(ctx, l, client.InNamespace(t.name)); err != nil {
		return nil, errors.Wrap(err, "cannot list Devices")
	}
	out := map[string]bool{}
	for _, d := range l.Items {
		online, ok, err := unstructured.NestedBool(d.Object, "status", "atProvider", "online")
		if err != nil {
			return nil, errors.Wrap(err, "cannot read the status of a Device")
		}
		out[d.GetName()] = ok && !online
	}
	return out, nil
}

// Netmap joins a node, and takes devices offline one after the other. It returns how long after each death
// a client of tailscaled as an agent has it knew of it, and the node's memory.
func (t *Tailnet) Netmap(ctx context.Context, n int) (seen []time.Duration, m harness.Memory, err error) {
	root, err := apiserver.Root()
	if err != nil {
		return nil, m, err
	}
	program, err := apiserver.Program(ctx, root, "tailscaled", "TEST_ASSET_TAILSCALED")
	if err != nil {
		return nil, m, err
	}
	dir, err := os.MkdirTemp("", "tailscale-gateway-netmap-")
	if err != nil {
		return nil, m, errors.Wrap(err, "cannot create a folder")
	}
	defer os.RemoveAll(dir) // The folder is temporary.
	proc, err := t.join(ctx, program, filepath.Join(dir, "node"))
	if proc != nil {
		defer func() { err = errors.Join(err, proc.Stop(stopGrace)) }()
	}
	if err != nil {
		return nil, m, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	peers, changed := localapi.NewPeers(), make(chan struct{}, 1)
	w := localapi.NewWatcher(localapi.NewClient(hops.Socket(filepath.Join(dir, "node"))), logging.NewNopLogger(), func(localapi.State) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}, localapi.WithPeers(peers))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { w.Run(ctx) })

	addresses := t.addresses()
	for i := range n {
		// Not those of Deaths.
		id := t.nodes[len(t.nodes)-1-i]
		addr := addresses[id]
		if err := until(ctx, changed, func() bool { return online(peers, addr) }); err != nil {
			return nil, m, errors.Wrapf(err, "the node does not see device %s", id)
		}
		began := time.Now()
		t.sim.SetOnline(id, false)
		if err := until(ctx, changed, func() bool { return !online(peers, addr) }); err != nil {
			return nil, m, errors.Wrapf(err, "the node does not see that device %s is offline", id)
		}
		seen = append(seen, time.Since(began))
	}
	m, err = harness.MemoryOf(proc)
	return seen, m, err
}

// join starts a node of the tailnet.
func (t *Tailnet) join(ctx context.Context, program, dir string) (*apiserver.Process, error) {
	if err := t.sim.Start("127.0.0.1:0", "127.0.0.1:0"); err != nil {
		return nil, errors.Wrap(err, "cannot start the simulated tailnet")
	}
	api, err := tailscale.NewClient(harness.ClientConfig(t.url), tailscale.Options{Rate: 1, Burst: 1, Metrics: tailscale.NewMetrics()})
	if err != nil {
		return nil, errors.Wrap(err, "cannot create a client of the API")
	}
	key, err := api.Keys().CreateAuthKey(ctx, tailscale.AuthKeyRequest{Description: "netmap", Expiry: time.Hour, Preauthorized: true, Tags: []string{tag}})
	if err != nil {
		return nil, errors.Wrap(err, "cannot create an auth key")
	}
	return hops.Join(ctx, hops.Node{Program: program, Dir: dir, Hostname: "watcher", URL: t.sim.URL(), AuthKey: key.Key, UpLimit: joinLimit})
}

// addresses returns the IPv4 address of each device by its node ID.
func (t *Tailnet) addresses() map[string]string {
	out := map[string]string{}
	for _, d := range t.sim.State().Devices {
		addrs, ok := d["addresses"].([]string)
		if ok && len(addrs) > 0 {
			out[fmt.Sprint(d["nodeId"])] = addrs[0]
		}
	}
	return out
}

// online reports whether peers have a device with the address that is online.
func online(peers *localapi.Peers, addr string) bool {
	if _, err := netip.ParseAddr(strings.TrimSpace(addr)); err != nil {
		return false
	}
	ds := peers.Find(addr).Devices
	return len(ds) == 1 && !ds[0].Offline
}

// until waits until check holds, which it looks at after each change.
func until(ctx context.Context, changed <-chan struct{}, check func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, deathLimit)
	defer cancel()
	for !check() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
	return nil
}
