// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package big

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/harness"
)

const (
	// managed is the number of our VIPServices, and of our Devices.
	managed = 100

	// others is the number of other clusters that share a service with ours, and everywhere its name without
	// svc:.
	others     = 19
	everywhere = "everywhere"

	// fillers is the number of parallel writes.
	fillers = 8

	// readyLimit is how long all objects may take to become ready.
	readyLimit = 15 * time.Minute

	tag = "tag:k8s"
)

// A Size is the size of a tailnet.
type Size struct {
	// Devices and Services of the whole tailnet.
	Devices, Services int
}

// A Tailnet is a provider in a simulated tailnet. The caller must call Close.
type Tailnet struct {
	env      *harness.Env
	sim      *harness.Tailnet
	traffic  *harness.Traffic
	provider *harness.Provider
	url      string

	// name is our namespace, and our cluster ID.
	name string

	// nodes are the node IDs of all devices.
	nodes []string

	devices *harness.Tracker
}

// Start fills a tailnet, starts a provider, and waits until its objects are ready.
func Start(ctx context.Context, env *harness.Env, name string, size Size) (*Tailnet, error) {
	sim, err := harness.NewTailnet()
	if err != nil {
		return nil, err
	}
	t := &Tailnet{env: env, sim: sim, traffic: &harness.Traffic{}, name: name}
	if err := t.start(ctx, size); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (t *Tailnet) start(ctx context.Context, size Size) error {
	var err error
	if t.url, err = t.sim.Serve(t.traffic.Observe); err != nil {
		return err
	}
	for i := range size.Devices {
		id, err := t.sim.Join(tailnetsim.Puppet{Hostname: fmt.Sprintf("node-%d", i), Tags: []string{tag}})
		if err != nil {
			return errors.Wrap(err, "cannot add a device")
		}
		t.nodes = append(t.nodes, id)
	}
	if err := t.env.Configure(ctx, t.name, t.name, t.url); err != nil {
		return err
	}
	t.provider, err = t.env.StartProvider("provider", "provider-"+t.name, harness.AllowTailnets,
		"--namespace="+t.name, "--watch-namespaces="+t.name, "--pprof-address="+PprofAddress)
	if err != nil {
		return err
	}
	if err := t.manage(ctx); err != nil {
		return err
	}
	return t.fill(ctx, size.Services)
}

// PprofAddress is where the provider serves profiles.
const PprofAddress = "127.0.0.1:6061"

// manage creates our objects, and waits until they are ready: services, of which other clusters will share
// one, and devices.
func (t *Tailnet) manage(ctx context.Context) error {
	services, err := t.env.Track(ctx, harness.Kind(v1alpha1.VIPServiceKind))
	if err != nil {
		return err
	}
	if t.devices, err = t.env.Track(ctx, harness.Kind(v1alpha1.DeviceKind)); err != nil {
		return err
	}
	// Those of an earlier tailnet stay.
	earlier, earlierDevices := len(services.States()), len(t.devices.States())
	if err := t.host(ctx); err != nil {
		return err
	}
	objects := []*unstructured.Unstructured{vipService(t.name, everywhere)}
	for i := range managed {
		objects = append(objects,
			vipService(t.name, fmt.Sprintf("ours-%d", i)),
			harness.Object(v1alpha1.DeviceKind, t.name, fmt.Sprintf("node-%d", i), map[string]any{"nodeID": t.nodes[i]}),
		)
	}
	if err := t.env.Create(ctx, fillers, objects); err != nil {
		return err
	}
	return harness.Eventually(ctx, readyLimit, "all objects", func(context.Context) error {
		return errors.Join(t.provider.Running(), services.AllReady(earlier+managed+1), t.devices.AllReady(earlierDevices+managed))
	})
}

// host creates the Machine that hosts our services. This process replaces its agent.
func (t *Tailnet) host(ctx context.Context) error {
	id := t.nodes[managed]
	m := harness.Object(v1alpha1.MachineKind, t.name, "proxy-0", map[string]any{"hostname": "proxy-0", "tags": []any{tag}})
	m.SetAnnotations(map[string]string{xpmeta.AnnotationKeyReconciliationPaused: "true", meta.AnnotationNodeID: id})
	if err := t.env.Kube.Create(ctx, m); err != nil {
		return errors.Wrap(err, "cannot create a Machine")
	}
	names := []string{everywhere}
	for i := range managed {
		names = append(names, fmt.Sprintf("ours-%d", i))
	}
	var services []any
	var offers []tailnetsim.Offer
	for _, n := range names {
		offers = append(offers, tailnetsim.Offer{Service: "svc:" + n, Ports: []uint16{443}})
		services = append(services, map[string]any{
			"name": "svc:" + n, "advertised": true, "accepted": true, "healthyBackends": int64(1), "totalBackends": int64(1),
		})
	}
	if err := t.sim.SetOffers(id, offers...); err != nil {
		return err
	}
	original := m.DeepCopy()
	m.Object["status"] = map[string]any{"atProvider": map[string]any{"nodeID": id}, "agent": map[string]any{"services": services}}
	return errors.Wrap(t.env.Kube.Status().Patch(ctx, m, client.MergeFrom(original)), "cannot write the status of a Machine")
}

// vipService returns a VIPService that clusters share.
func vipService(namespace, name string) *unstructured.Unstructured {
	return harness.Object(v1alpha1.VIPServiceKind, namespace, name, map[string]any{
		"name": "svc:" + name, "sharing": string(v1alpha1.SharingShared), "ports": []any{"tcp:443"}, "tags": []any{tag},
	})
}

// fill adds services of other clusters until there are n. They have the annotations of ours.
func (t *Tailnet) fill(ctx context.Context, n int) error {
	api, err := tailscale.NewPool(tailscale.Options{Rate: 1, Burst: 10, Metrics: tailscale.NewMetrics()}).Client("others", harness.ClientConfig(t.url))
	if err != nil {
		return errors.Wrap(err, "cannot create a client of the API")
	}
	existing, err := api.Services().Services(ctx, tailscale.Current)
	if err != nil {
		return errors.Wrap(err, "cannot list services")
	}
	var models, shared []tailscale.Service
	for _, svc := range existing {
		switch {
		case svc.Name == registry.RecordName("svc:"+everywhere, t.name):
			shared = append(shared, svc)
		case strings.HasPrefix(svc.Name, "svc:ours-1"):
			models = append(models, svc)
		}
	}
	if len(models) == 0 || len(shared) == 0 {
		return errors.New("the provider has created no service")
	}
	var foreign []tailnetsim.Definition
	for i := range n - len(existing) {
		svc := t.foreign(models[i%len(models)], i)
		if i < others {
			svc = t.foreign(shared[0], i)
			svc.Name = registry.RecordName("svc:"+everywhere, cluster(i))
		}
		foreign = append(foreign, svc)
	}
	return t.sim.Define(foreign...)
}

// cluster returns the cluster ID of another cluster.
func cluster(i int) string { return fmt.Sprintf("cluster-%d", i) }

// foreign returns a copy of a service of ours as another cluster's.
func (t *Tailnet) foreign(s tailscale.Service, i int) tailnetsim.Definition {
	ours := strings.NewReplacer("ours-", fmt.Sprintf("theirs-%d-", i))
	r := strings.NewReplacer("ours-", fmt.Sprintf("theirs-%d-", i), t.name+"/", cluster(i)+"/", `"`+t.name+`"`, `"`+cluster(i)+`"`)
	annotations := maps.Clone(s.Annotations)
	for k, v := range annotations {
		annotations[k] = r.Replace(v)
	}
	return tailnetsim.Definition{Name: ours.Replace(s.Name), Annotations: annotations, Ports: s.Ports, Tags: s.Tags}
}

// Close stops the provider and the tailnet.
func (t *Tailnet) Close() error {
	var err error
	if t.provider != nil {
		err = t.provider.Stop()
	}
	return errors.Join(err, t.sim.Close())
}
