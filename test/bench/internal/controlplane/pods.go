// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"tailscale.com/ipn"
	"tailscale.com/kube/kubetypes"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
)

// step is the pause between two looks of the pods at their objects.
const step = 500 * time.Millisecond

// pods stand in for the pods of all proxies, and for the controller of StatefulSets: each logs in with its
// auth key, writes its state, and reports that it hosts the services of its endpoints.
type pods struct {
	sim   *tailnetsim.Server
	cache client.Reader
	kube  client.Client

	// nodes are node IDs by the machine's key, and advertised what each advertises.
	nodes      map[client.ObjectKey]string
	advertised map[client.ObjectKey][]string
}

// standIn runs pods until the control plane is closed.
func (c *ControlPlane) standIn(ctx context.Context) {
	ctx, c.stop = context.WithCancel(ctx)
	c.stopped = make(chan struct{})
	go func() {
		defer close(c.stopped)
		if err := c.runPods(ctx); err != nil && ctx.Err() == nil {
			panic(err) // Later measurements would be wrong.
		}
	}()
}

func (c *ControlPlane) runPods(ctx context.Context) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return errors.Wrap(err, "cannot build a scheme")
	}
	cfg := c.env.Config()
	cached, err := cache.New(cfg, cache.Options{Scheme: scheme})
	if err != nil {
		return errors.Wrap(err, "cannot create a cache")
	}
	kube, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return errors.Wrap(err, "cannot create a client")
	}
	ended := make(chan error, 1)
	go func() { ended <- cached.Start(ctx) }()
	p := &pods{sim: c.sim.Server, cache: cached, kube: kube, nodes: map[client.ObjectKey]string{}, advertised: map[client.ObjectKey][]string{}}
	tick := time.NewTicker(step)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-tick.C:
		}
		// The next step repeats what failed, because objects change meanwhile.
		_ = errors.Join(p.logIn(ctx), p.run(ctx), p.report(ctx))
	}
}

// logIn has each pod with an auth key join the tailnet, and writes its state Secret.
func (p *pods) logIn(ctx context.Context) error {
	l := &corev1.SecretList{}
	if err := p.cache.List(ctx, l, client.MatchingLabels{meta.LabelSecretType: meta.SecretTypeConfig}, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	var errs []error
	for i := range l.Items {
		s := &l.Items[i]
		key := client.ObjectKey{Namespace: s.GetNamespace(), Name: strings.TrimSuffix(s.GetName(), meta.ConfigSecretSuffix)}
		if p.nodes[key] == "" {
			errs = append(errs, p.join(ctx, key, s.Data[meta.ConfigKey]))
		}
	}
	return errors.Join(errs...)
}

// join has one pod join with tailscaled's config.
func (p *pods) join(ctx context.Context, key client.ObjectKey, config []byte) error {
	var c ipn.ConfigVAlpha
	if err := json.Unmarshal(config, &c); err != nil || c.AuthKey == nil || c.Hostname == nil {
		return err
	}
	state := &corev1.Secret{}
	if err := p.kube.Get(ctx, key, state); err != nil {
		return err
	}
	id, err := p.sim.Join(tailnetsim.Puppet{Hostname: *c.Hostname, AuthKey: *c.AuthKey})
	if err != nil {
		return err
	}
	p.nodes[key] = id
	original := state.DeepCopy()
	if state.Data == nil {
		state.Data = map[string][]byte{}
	}
	state.Data[kubetypes.KeyDeviceID] = []byte(id)
	return p.kube.Patch(ctx, state, client.MergeFrom(original))
}

// run writes that the pods of all StatefulSets are ready.
func (p *pods) run(ctx context.Context) error {
	l := &appsv1.StatefulSetList{}
	if err := p.cache.List(ctx, l); err != nil {
		return err
	}
	var errs []error
	for i := range l.Items {
		s := &l.Items[i]
		n := ptr.Deref(s.Spec.Replicas, 1)
		want := appsv1.StatefulSetStatus{
			ObservedGeneration: s.GetGeneration(), Replicas: n, ReadyReplicas: n, AvailableReplicas: n, CurrentReplicas: n, UpdatedReplicas: n,
			CurrentRevision: "1", UpdateRevision: "1",
		}
		if reflect.DeepEqual(want, s.Status) {
			continue
		}
		original := s.DeepCopy()
		s.Status = want
		errs = append(errs, p.kube.Status().Patch(ctx, s, client.MergeFrom(original)))
	}
	return errors.Join(errs...)
}

// report writes what agents report, and has their nodes advertise it.
func (p *pods) report(ctx context.Context) error {
	attachments := &v1alpha1.ServiceAttachmentList{}
	if err := p.cache.List(ctx, attachments, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	hosted := map[client.ObjectKey][]v1alpha1.HostedService{}
	for _, a := range attachments.Items {
		if a.Spec.Direction != v1alpha1.DirectionIngress || len(a.Spec.Addresses) == 0 || a.GetDeletionTimestamp() != nil {
			continue
		}
		h := v1alpha1.HostedService{Name: string(a.Spec.ServiceName), Advertised: true, Accepted: true, HealthyBackends: 1, TotalBackends: 1}
		for _, port := range a.Spec.Ports {
			h.Ports = append(h.Ports, string(port.Port))
		}
		key := client.ObjectKey{Namespace: a.GetNamespace(), Name: a.Spec.Endpoints}
		hosted[key] = append(hosted[key], h)
	}
	machines := &v1alpha1.MachineList{}
	if err := p.cache.List(ctx, machines); err != nil {
		return err
	}
	var errs []error
	for i := range machines.Items {
		m := &machines.Items[i]
		key := client.ObjectKeyFromObject(m)
		if meta.NodeIDOf(m) == "" || meta.NodeIDOf(m) != p.nodes[key] {
			continue // It is not known to be in the tailnet yet.
		}
		services := hosted[client.ObjectKey{Namespace: m.GetNamespace(), Name: m.GetLabels()[meta.LabelEndpoints]}]
		slices.SortFunc(services, func(a, b v1alpha1.HostedService) int { return strings.Compare(a.Name, b.Name) })
		errs = append(errs, p.reportOne(ctx, key, m, services, i))
	}
	return errors.Join(errs...)
}

// reportOne writes the report of one machine if it differs.
func (p *pods) reportOne(ctx context.Context, key client.ObjectKey, m *v1alpha1.Machine, services []v1alpha1.HostedService, i int) error {
	var names []string
	for _, s := range services {
		names = append(names, s.Name)
	}
	if !slices.Equal(names, p.advertised[key]) {
		var offers []tailnetsim.Offer
		for _, n := range names {
			offers = append(offers, tailnetsim.Offer{Service: n, Ports: []uint16{servedPort}})
		}
		if err := p.sim.SetOffers(p.nodes[key], offers...); err != nil {
			return err
		}
		p.advertised[key] = names
	}
	want := &v1alpha1.MachineAgentStatus{
		PodIP: fmt.Sprintf("10.%d.%d.%d", 1+i/65536, i/256%256, i%256), TailscaledVersion: "1.102.5", PrimaryRoutesSeen: true, Services: services,
	}
	if m.Status.Agent != nil {
		want.PodIP = m.Status.Agent.PodIP
	}
	if reflect.DeepEqual(want, m.Status.Agent) {
		return nil
	}
	original := m.DeepCopy()
	m.Status.Agent = want
	return p.kube.Status().Patch(ctx, m, client.MergeFrom(original))
}
