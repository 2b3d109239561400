// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// laterBy moves the API's clock forward, so that no test waits.
type laterBy struct{ offset atomic.Int64 }

func (l *laterBy) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		resp.Header.Set("Date", at.Add(time.Duration(l.offset.Load())).UTC().Format(http.TimeFormat))
	}
	return resp, nil
}

// A tailnet is a simulated tailnet with the providers of several clusters.
type tailnet struct {
	*simtest.Running
	t     *testing.T
	api   *laterBy
	local *clocktesting.FakePassiveClock
}

func newTailnet(t *testing.T) *tailnet {
	t.Helper()
	return &tailnet{Running: simtest.StartAPI(t), t: t, api: &laterBy{}, local: clocktesting.NewFakePassiveClock(time.Now())}
}

// later advances the time of the API and of lists.
func (n *tailnet) later(d time.Duration) {
	n.api.offset.Add(int64(d))
	n.local.SetTime(n.local.Now().Add(d))
}

// A provider is the provider of one cluster.
type provider struct {
	*tailnet
	*connector
	cluster string
	events  *recorder
}

type recorder struct {
	mu     sync.Mutex
	events []event.Event
}

func (r *recorder) Event(_ runtime.Object, e event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) WithAnnotations(...string) event.Recorder { return r }

// take returns the reasons of the events since the last call.
func (r *recorder) take() []event.Reason {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []event.Reason
	for _, e := range r.events {
		out = append(out, e.Reason)
	}
	r.events = nil
	return out
}

func (r *recorder) has(reason event.Reason) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Reason == reason {
			return true
		}
	}
	return false
}

// provider returns the provider of a cluster. Each provider has a separate client, and so separate
// lists.
func (n *tailnet) provider(cluster string) *provider {
	n.t.Helper()
	rs, err := tailscale.NewClient(tailscale.Config{URL: n.URL, ClientID: simtest.ClientID, ClientSecret: simtest.ClientSecret},
		tailscale.Options{Rate: 1000, Burst: 1000, ListMaxAge: time.Minute, Metrics: tailscale.NewMetrics(), Transport: n.api, Clock: n.local})
	if err != nil {
		n.t.Fatal(err)
	}
	rec, product := &recorder{}, new(memo)
	return &provider{tailnet: n, cluster: cluster, events: rec, connector: &connector{
		connect: func(context.Context, resource.ModernManaged) (connection, error) {
			return connection{api: &api{services: rs.Services(), devices: rs.Devices(), tailnet: rs.Tailnet()}, clusterID: cluster, tailnet: "example", memory: product}, nil
		},
		reports: func(context.Context, string, string) (reports, error) {
			return reports{"node-" + cluster: {Advertised: true, Accepted: true, Healthy: 1, Total: 2}}, nil
		},
		hosts: newHostsCache(time.Minute, n.local), ports: newPortsCache(), detaching: newDetaching(), record: rec,
	}}
}

// share creates a shared VIPService in this cluster.
func (p *provider) share(change ...func(*v1alpha1.VIPService)) *v1alpha1.VIPService {
	v := &v1alpha1.VIPService{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: types.UID(p.cluster)},
		Spec: v1alpha1.VIPServiceSpec{ForProvider: v1alpha1.VIPServiceParameters{
			Name: "svc:web", Ports: []v1alpha1.ServicePort{"tcp:443"}, Tags: []v1alpha1.Tag{"tag:k8s"}, Sharing: v1alpha1.SharingShared,
		}},
	}
	for _, f := range change {
		f(v)
	}
	return v
}

// reconcile runs the managed reconciler's steps once.
func (p *provider) reconcile(mg *v1alpha1.VIPService) (managed.ExternalObservation, error) {
	ctx := context.Background()
	e, err := p.Connect(ctx, mg)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	o, err := e.Observe(ctx, mg)
	if err != nil {
		return o, err
	}
	switch {
	case xpmeta.WasDeleted(mg) && o.ResourceExists:
		_, err = e.Delete(ctx, mg)
	case xpmeta.WasDeleted(mg):
	case !o.ResourceExists:
		xpmeta.SetExternalCreatePending(mg, time.Now())
		_, err = e.Create(ctx, mg)
	case !o.ResourceUpToDate:
		_, err = e.Update(ctx, mg)
	}
	return o, err
}

// settle reconciles until there is nothing to do.
func (p *provider) settle(mg *v1alpha1.VIPService) {
	p.t.Helper()
	var o managed.ExternalObservation
	var err error
	for range 20 {
		if o, err = p.reconcile(mg); err == nil && o.ResourceExists && o.ResourceUpToDate {
			return
		}
		p.later(3 * time.Second)
	}
	p.t.Fatalf("cluster %s does not settle: %+v, %v", p.cluster, o, err)
}

// leave deletes the object and reconciles until it is gone.
func (p *provider) leave(mg *v1alpha1.VIPService) {
	p.t.Helper()
	deleted(mg)
	var o managed.ExternalObservation
	var err error
	for range 40 {
		if o, err = p.reconcile(mg); err == nil && !o.ResourceExists {
			return
		}
		p.later(5 * time.Second)
	}
	p.t.Fatalf("cluster %s does not leave: %+v, %v", p.cluster, o, err)
}

// find returns a service of the tailnet, or nil.
func (n *tailnet) find(name string) *tailnetsim.ServiceView {
	for _, s := range n.State().Services {
		if s.Name == name {
			return &s
		}
	}
	return nil
}

func (n *tailnet) delete(name string) {
	n.t.Helper()
	if err := n.Client(n.t).VIPServices().Delete(n.t.Context(), name); err != nil {
		n.t.Fatal(err)
	}
}
