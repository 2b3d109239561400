// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed" // For the egress of the trial.
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
	"github.com/tailscale-gateway/tailscale-gateway/test/load"
)

// Egress is an object of clusters two and three, which reach the lab's client of the tailnet by it.
const (
	egressName   = "out"
	egressTarget = "device"
	grpcTarget   = "grpc"
	devicePort   = 8080
	grpcPort     = 5000

	// grpcName is the service of the servers of gRPC, and tcpPort that of the Gateway's listener for TCP.
	grpcName = "shared-grpc"
	tcpPort  = 9000
)

// Protocols of loads, as lab load names them.
const (
	protocolHTTP = "http"
	protocolGRPC = "grpc"
	protocolTCP  = "tcp"
)

// egressClusters are the clusters with egress, and those that are cut off: the Gateway's client is in cluster one.
var egressClusters = []string{secondCluster, thirdCluster}

// Manifests of the trial: egress of two clusters, the servers of gRPC in each one, and the Gateway of the first one.
var (
	//go:embed chaos.yaml
	egressManifest string
	//go:embed chaos-servers.yaml
	serversManifest []byte
	//go:embed chaos-routes.yaml
	routesManifest []byte
)

type chaosCmd struct {
	options

	Seed     uint64        `help:"Seed of the random choices. It repeats the order of the faults, and the choices between pods that no other fault holds. By default, a new one, which is printed."`
	Duration time.Duration `default:"20m" help:"How long faults happen, at least: the run goes on until each fault has hit each way --hits times."`
	Control  time.Duration `default:"2m" help:"How long the same loads run without faults, before the faults."`
	Limit    time.Duration `default:"90m" help:"How long faults happen, at most: on a slow machine, the goal for --hits may be missed."`
	Hits     int           `default:"10" help:"How many times each fault hits each way, at least."`
	Faults   []string      `placeholder:"NAME" help:"Faults to choose from, instead of all. An unknown name prints all names."`
	Rate     float64       `default:"12" help:"Requests a second on each way: half of them by HTTP, and the others by gRPC and TCP."`
	Log      string        `help:"File for all faults and all lost requests, as JSON."`
	Reuse    bool          `help:"Use the clusters that an earlier run with --keep has prepared."`
	Keep     bool          `help:"Keep the objects at the end, instead of deleting them and checking that nothing of ours is left in the tailnet."`
}

// Run brings everything up, and then has faults happen under load.
func (o *chaosCmd) Run(ctx context.Context) error {
	if o.Seed == 0 {
		o.Seed = rand.Uint64() //nolint:gosec // No secret.
	}
	c := &chaos{
		trial:    &trial{members: map[string]*demo{}, stopped: map[string][]controller{}, options: o.options},
		settings: *o, units: map[string]*sync.Mutex{}, kubes: map[string]kubernetes.Interface{}, pods: map[string]podName{},
	}
	var err error
	if c.deck, err = newDeck(c.faults(), o.Faults, o.Hits); err != nil {
		return err
	}
	steps := append(c.steps(), c.prepareSteps()...)
	if o.Reuse {
		steps = []step{{name: "find the clusters", action: c.find}}
	}
	steps = append(steps,
		step{name: "list what there is", action: c.takeStock},
		step{name: fmt.Sprintf("send requests for %s without faults", o.Control), action: c.control},
		step{name: fmt.Sprintf("send requests for %s with faults: --seed=%d", o.Duration, o.Seed), action: c.play},
		step{name: "wait until everything is as it was", action: c.settle},
	)
	if !o.Keep {
		steps = append(steps, step{name: "delete everything of ours", action: c.clean})
	}
	failed := run(ctx, os.Stdout, steps)
	if c.struck == nil {
		return failed
	}
	return errors.Join(failed, c.writeLog(), c.print(os.Stdout))
}

// A chaos is a trial in which faults happen at random.
type chaos struct {
	*trial

	settings chaosCmd
	deck     deck

	// tailnet is the lab's tailnet, and foreign what others have in it and in the clusters.
	tailnet *tailnetView

	// calm has faults begin in turn.
	calm calm

	// start is what there was before the faults, and findings are the differences at the end.
	start    inventory
	findings []string

	// quiet and struck are the results of the loads without and with faults.
	quiet, struck []flowResult

	// network is held by a fault that cuts off a cluster, and shared by those that hit one pod without a warning:
	// together they could take every host of a way.
	network sync.RWMutex

	// mu guards the following fields.
	mu      sync.Mutex
	strikes []strike
	busiest float64 // The machine's load average at most.
	units   map[string]*sync.Mutex
	kubes   map[string]kubernetes.Interface

	// pods are the pods of proxies by the IDs of their devices.
	pods map[string]podName
}

// A way is a path of requests.
type way string

const (
	wayVIP    way = "VIP"
	wayEnvoy  way = "Envoy"
	wayEgress way = "egress"
)

var ways = []way{wayVIP, wayEnvoy, wayEgress}

// A flow is a load on a way.
type flow struct {
	way      way
	protocol string

	// client is the cluster of the client, or empty for a client in the tailnet.
	client string
	url    string

	// share is its part of the requests on the way.
	share float64
}

func (f flow) String() string {
	if f.client == "" {
		return fmt.Sprintf("%s, %s", f.way, f.protocol)
	}
	return fmt.Sprintf("%s of %s, %s", f.way, f.client, f.protocol)
}

// A flowResult is what a load found.
type flowResult struct {
	flow

	report load.Report
}

// prepareSteps returns the steps between the installation and the loads.
func (c *chaos) prepareSteps() []step {
	return []step{
		{name: "add servers of gRPC, and a second pod to each set of proxies", action: c.addPods},
		{name: "reach a device of the tailnet from clusters two and three", action: c.addEgress},
		{name: "balance requests that change nothing over all clusters", action: c.balanceAll},
		{name: "create objects that are not ours", action: c.addForeign},
	}
}

// find finds the clusters of an earlier run.
func (c *chaos) find(ctx context.Context, p *progress) error {
	if err := c.findLabs(ctx); err != nil {
		return err
	}
	if err := c.findGateway(ctx, p); err != nil {
		return err
	}
	var err error
	c.tailnet, err = findTailnet(c.first().lab)
	return err
}

// addPods adds the servers of gRPC, and scales the proxies of the shared services.
func (c *chaos) addPods(ctx context.Context, p *progress) error {
	for _, name := range clusterNames {
		if _, err := c.members[name].lab.kubectl(ctx, serversManifest, "apply", "--server-side", "-f", "-"); err != nil {
			return err
		}
		if err := c.members[name].patch(ctx, endpoints, quickstart, sharedName, `{"spec":{"proxy":{"replicas":2}}}`); err != nil {
			return err
		}
	}
	return p.until(ctx, 5*time.Minute, func(ctx context.Context) (string, error) { return c.unready(ctx, c.components()) })
}

// addEgress applies the egress of two clusters.
func (c *chaos) addEgress(ctx context.Context, p *progress) error {
	var err error
	if c.tailnet, err = findTailnet(c.first().lab); err != nil {
		return err
	}
	manifest := strings.ReplaceAll(egressManifest, "DEVICE", "client."+c.tailnet.domain)
	for _, name := range egressClusters {
		if _, err := c.members[name].lab.kubectl(ctx, []byte(manifest), "apply", "--server-side", "-f", "-"); err != nil {
			return err
		}
	}
	return p.until(ctx, 5*time.Minute, func(ctx context.Context) (string, error) {
		for _, name := range egressClusters {
			found, err := c.members[name].field(ctx, endpoints, egressName, "{.status.egressTargets[*].readyProxies}")
			if err != nil {
				return "", err
			}
			if found != "2 2" {
				return fmt.Sprintf("ready proxies to the device in cluster %s: %q", name, found), nil
			}
		}
		return "", nil
	})
}

// balanceAll has the Gateway send requests to all clusters, by routes of each protocol.
func (c *chaos) balanceAll(ctx context.Context, p *progress) error {
	if _, err := c.first().lab.kubectl(ctx, routesManifest, "apply", "--server-side", "--force-conflicts", "-f", "-"); err != nil {
		return err
	}
	if err := c.balance(ctx, `"affinity":"Global"`); err != nil {
		return err
	}
	if _, err := c.answeredFrom(ctx, p, clusterNames...); err != nil {
		return err
	}
	return p.until(ctx, 5*time.Minute, func(ctx context.Context) (string, error) {
		for _, f := range c.flows() {
			if err := c.answersOnce(ctx, f); err != nil {
				return "", errors.Wrapf(err, "%s", f)
			}
		}
		return "", nil
	})
}

// flows returns the loads on all ways.
func (c *chaos) flows() []flow {
	vip := func(name string, port int) string {
		return fmt.Sprintf("http://%s.%s:%d/", name, c.tailnet.domain, port)
	}
	gateway := func(port int) string { return fmt.Sprintf("%s:%d/", strings.TrimSuffix(c.url, "/"), port) }
	out := []flow{
		{way: wayVIP, protocol: protocolHTTP, url: vip(sharedName, 80)},
		{way: wayVIP, protocol: protocolGRPC, url: vip(grpcName, grpcPort)},
		{way: wayVIP, protocol: protocolTCP, url: vip(sharedName, 80)},
		{way: wayEnvoy, protocol: protocolHTTP, client: firstCluster, url: gateway(80)},
		{way: wayEnvoy, protocol: protocolGRPC, client: firstCluster, url: gateway(grpcPort)},
		{way: wayEnvoy, protocol: protocolTCP, client: firstCluster, url: gateway(tcpPort)},
	}
	for _, name := range egressClusters {
		at := func(target string, port int) string {
			return fmt.Sprintf("http://%s.%s.svc.cluster.local:%d/hostname", names.EndpointService(egressName, target), quickstart, port)
		}
		out = append(out,
			flow{way: wayEgress, protocol: protocolHTTP, client: name, url: at(egressTarget, devicePort)},
			flow{way: wayEgress, protocol: protocolGRPC, client: name, url: at(grpcTarget, grpcPort)},
			flow{way: wayEgress, protocol: protocolTCP, client: name, url: at(egressTarget, devicePort)},
		)
	}
	for i, f := range out {
		out[i].share = 0.25
		if f.protocol == protocolHTTP {
			out[i].share = 0.5
		}
		if f.way == wayEgress {
			out[i].share /= float64(len(egressClusters))
		}
	}
	return out
}

// loadArgs returns the arguments of lab load for a flow.
func (f flow) loadArgs() []string {
	place := "cluster"
	if f.client == "" {
		place = "tailnet"
	}
	return []string{"--from=" + place, "--protocol=" + f.protocol, f.url}
}

// answersOnce returns an error unless a request of a flow is answered soon.
func (c *chaos) answersOnce(ctx context.Context, f flow) error {
	l, err := load.StartClusterProcess(ctx, c.first().lab.labBin, f.client, append(f.loadArgs(), "--first", "--for=5s")...)
	if err != nil {
		return err
	}
	_, err = l.Wait()
	return err
}

// requestTimeout is how long clients wait for an answer.
const requestTimeout = 10 * time.Second

// underLoads runs fn under the loads of all ways, and returns what they found.
func (c *chaos) underLoads(ctx context.Context, fn func(ctx context.Context) error) ([]flowResult, error) {
	var loads []*load.Process
	flows := c.flows()
	for _, f := range flows {
		// Enough clients to keep the rate while all of them wait.
		rate := f.share * c.settings.Rate
		args := append(f.loadArgs(), fmt.Sprintf("--workers=%d", int(math.Ceil(rate*requestTimeout.Seconds()))), fmt.Sprintf("--rate=%g", rate),
			fmt.Sprintf("--timeout=%s", requestTimeout), "--for=24h")
		// An interrupt ends the faults first.
		l, err := load.StartClusterProcess(context.WithoutCancel(ctx), c.first().lab.labBin, f.client, args...)
		if err != nil {
			return nil, err
		}
		loads = append(loads, l)
	}
	failed := fn(ctx)
	// All end at once: the last requests of each may take until their timeout.
	for _, l := range loads {
		failed = errors.Join(failed, l.Stop())
	}
	out := make([]flowResult, 0, len(loads))
	for i, l := range loads {
		r, err := l.Wait()
		if err != nil {
			return nil, errors.Join(failed, err)
		}
		out = append(out, flowResult{flow: flows[i], report: r})
	}
	return out, failed
}

// control sends the requests without faults.
func (c *chaos) control(ctx context.Context, _ *progress) error {
	var err error
	c.quiet, err = c.underLoads(ctx, func(ctx context.Context) error { return c.calm.learn(ctx, c.settings.Control) })
	return err
}

// play sends the requests while all faults of the deck happen.
func (c *chaos) play(ctx context.Context, p *progress) error {
	var err error
	c.struck, err = c.underLoads(ctx, func(ctx context.Context) error { return c.playDeck(ctx, p) })
	return err
}

// elapse returns after a time that is part of what is tried, such as the length of a fault.
func elapse(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return errors.Wrap(ctx.Err(), "interrupted")
	case <-t.C:
		return nil
	}
}
