// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package eds

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

func TestAnswer(t *testing.T) {
	web, api := key("web").ClusterName(), key("api").ClusterName()
	unknown := key("gone").ClusterName()
	both := targets(target("web", "10.0.0.1"), target("api", "10.0.0.2", "10.0.0.3"))

	cases := map[string]struct {
		reason   string
		contents ir.Contents
		request  *discovery.DeltaDiscoveryRequest
		initial  map[string][]string
		later    map[string][]string
	}{
		"Known": {
			reason:   "A stream should get a known name at once, and no other.",
			contents: both,
			request:  &discovery.DeltaDiscoveryRequest{TypeUrl: TypeURL, ResourceNamesSubscribe: []string{api}},
			initial:  map[string][]string{api: {"10.0.0.2", "10.0.0.3"}},
			later:    map[string][]string{},
		},
		"Several": {
			reason:   "A stream may subscribe to several names.",
			contents: both,
			request:  &discovery.DeltaDiscoveryRequest{TypeUrl: TypeURL, ResourceNamesSubscribe: []string{api, web}},
			initial:  map[string][]string{api: {"10.0.0.2", "10.0.0.3"}, web: {"10.0.0.1"}},
			later:    map[string][]string{},
		},
		"Tuned": {
			reason:   "Lists with different tunings of policies should have separate bytes.",
			contents: both,
			request:  &discovery.DeltaDiscoveryRequest{TypeUrl: TypeURL, ResourceNamesSubscribe: []string{web, web + "+health=9090"}},
			initial:  map[string][]string{web: {"10.0.0.1"}, web + "+health=9090": {"10.0.0.1 checked at 9090"}},
			later:    map[string][]string{},
		},
		"TunedOtherwise": {
			reason:   "A name that only a newer replica knows should be unknown.",
			contents: both,
			request:  &discovery.DeltaDiscoveryRequest{TypeUrl: TypeURL, ResourceNamesSubscribe: []string{web + "+other"}},
			initial:  map[string][]string{},
			later:    map[string][]string{web + "+other": {}},
		},
		"NoEndpoints": {
			reason:   "A target without endpoints should be answered at once.",
			contents: targets(target("web")),
			request:  &discovery.DeltaDiscoveryRequest{TypeUrl: TypeURL, ResourceNamesSubscribe: []string{web}},
			initial:  map[string][]string{web: {}},
			later:    map[string][]string{},
		},
		"Unknown": {
			reason:   "An unknown name should be answered with an empty list after a while, so that Envoy continues.",
			contents: both,
			request:  &discovery.DeltaDiscoveryRequest{TypeUrl: TypeURL, ResourceNamesSubscribe: []string{unknown}},
			initial:  map[string][]string{},
			later:    map[string][]string{unknown: {}},
		},
		"UnknownButHeld": {
			reason:   "An Envoy that has endpoints for an unknown list should keep them: this replica may lag.",
			contents: both,
			request: &discovery.DeltaDiscoveryRequest{
				TypeUrl:                 TypeURL,
				ResourceNamesSubscribe:  []string{unknown},
				InitialResourceVersions: map[string]string{unknown: "0011"},
			},
			initial: map[string][]string{},
			later:   map[string][]string{},
		},
		"OldVersion": {
			reason:   "An Envoy that returns with an old version should get the new one.",
			contents: both,
			request: &discovery.DeltaDiscoveryRequest{
				TypeUrl:                 TypeURL,
				ResourceNamesSubscribe:  []string{web},
				InitialResourceVersions: map[string]string{web: "0011"},
			},
			initial: map[string][]string{web: {"10.0.0.1"}},
			later:   map[string][]string{},
		},
		"NoType": {
			reason:   "The service has only one type, so a request need not name it.",
			contents: both,
			request:  &discovery.DeltaDiscoveryRequest{ResourceNamesSubscribe: []string{web}},
			initial:  map[string][]string{web: {"10.0.0.1"}},
			later:    map[string][]string{},
		},
		"Nothing": {
			reason:   "A first request without names subscribes to nothing. It is no wildcard here.",
			contents: both,
			request:  &discovery.DeltaDiscoveryRequest{TypeUrl: TypeURL},
			initial:  map[string][]string{},
			later:    map[string][]string{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run(t, tc.contents, func(h *harness) {
				c := h.endpoints()
				c.request(tc.request)
				if diff := cmp.Diff(tc.initial, c.addresses()); diff != "" {
					t.Errorf("\n%s\nat once: -want, +got:\n%s", tc.reason, diff)
				}
				<-time.After(2 * defaultPatience)
				if diff := cmp.Diff(tc.later, c.addresses()); diff != "" {
					t.Errorf("\n%s\nlater: -want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestRejectedNames checks that names which cannot be served are answered as removed, and that the
// stream, which has names of other tenants, continues.
func TestRejectedNames(t *testing.T) {
	cases := map[string]struct {
		reason string
		name   string
	}{
		"Wildcard": {
			reason: "No client should get all lists.",
			name:   "*",
		},
		"Glob": {
			reason: "A collection of xdstp names is a wildcard too.",
			name:   xds.XDSTPName("tailscale/*"),
		},
		"Authority": {
			reason: "The server has no names of other authorities.",
			name:   "xdstp://other/envoy.config.endpoint.v3.ClusterLoadAssignment/a",
		},
		"Encoding": {
			reason: "The name cannot be decoded.",
			name:   xds.XDSTPName("tailscale/%zz"),
		},
	}
	web := key("web").ClusterName()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run(t, targets(target("web", "10.0.0.1")), func(h *harness) {
				c := h.aggregated()
				c.subscribe(tc.name, web)
				if diff := cmp.Diff(map[string][]string{web: {"10.0.0.1"}}, c.addresses()); diff != "" {
					t.Errorf("\n%s\nlists of other names: -want, +got:\n%s", tc.reason, diff)
				}
				if diff := cmp.Diff([]string{tc.name}, c.removed); diff != "" {
					t.Errorf("\n%s\nremoved: -want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

func TestOtherType(t *testing.T) {
	run(t, ir.Contents{}, func(h *harness) {
		c := h.aggregated()
		c.request(&discovery.DeltaDiscoveryRequest{TypeUrl: "type.googleapis.com/envoy.config.cluster.v3.Cluster", ResourceNamesSubscribe: []string{"a"}})
		if got := grpcstatus.Code(<-c.failed); got != codes.InvalidArgument {
			t.Errorf("want %s, got %s", codes.InvalidArgument, got)
		}
	})
}

func TestChange(t *testing.T) {
	web, api := key("web").ClusterName(), key("api").ClusterName()
	apiTarget := target("api", "10.0.0.9")
	run(t, targets(target("web", "10.0.0.1"), apiTarget), func(h *harness) {
		first, two, other := h.endpoints(), h.endpoints(), h.endpoints()
		first.subscribe(web)
		two.subscribe(web, api)
		other.subscribe(api)
		first.received()
		two.received()
		other.received()

		// The server sends several changes at once, and only to affected streams.
		h.change(targets(target("web", "10.0.0.1", "10.0.0.2"), apiTarget))
		h.change(targets(target("web", "10.0.0.2"), apiTarget))
		start := time.Now()
		<-time.After(2 * defaultDebounce)
		want := map[string][]string{web: {"10.0.0.2"}}
		if diff := cmp.Diff(want, first.addresses()); diff != "" {
			t.Errorf("first stream: -want, +got:\n%s", diff)
		}
		if diff := cmp.Diff(want, two.addresses()); diff != "" {
			t.Errorf("second stream: -want, +got:\n%s", diff)
		}
		if diff := cmp.Diff(map[string][]string{}, other.addresses()); diff != "" {
			t.Errorf("other stream: -want, +got:\n%s", diff)
		}
		if d := time.Since(start); d > 10*time.Millisecond {
			t.Errorf("the change came after %s", d)
		}

		// Equal contents in other objects are no change.
		h.change(targets(target("web", "10.0.0.2"), target("api", "10.0.0.9")))
		<-time.After(time.Minute)
		if got := two.received(); len(got) != 0 {
			t.Errorf("an unchanged list was sent again: %v", got)
		}

		// A list that disappears stays as it was: Envoy's routes are removed first.
		h.change(targets(apiTarget))
		<-time.After(time.Minute)
		if got := first.received(); len(got) != 0 {
			t.Errorf("a list without routes was sent: %v", got)
		}
		// A new stream gets the same lists.
		late := h.endpoints()
		late.subscribe(web)
		if diff := cmp.Diff(want, late.addresses()); diff != "" {
			t.Errorf("late stream: -want, +got:\n%s", diff)
		}

		if got := testutil.ToFloat64(h.server.metrics.streams); got != 4 {
			t.Errorf("want 4 streams, got %v", got)
		}
		if got := testutil.ToFloat64(h.server.metrics.lists); got != 2 {
			t.Errorf("want 2 lists, got %v", got)
		}
	})
}

func TestLateKnowledge(t *testing.T) {
	web := key("web").ClusterName()
	run(t, ir.Contents{}, func(h *harness) {
		c := h.endpoints()
		c.subscribe(web)
		// Another replica was ahead of this one: the name becomes known in time, and no empty list
		// is sent.
		<-time.After(defaultPatience / 2)
		h.change(targets(target("web", "10.0.0.1")))
		<-time.After(defaultPatience)
		if got := len(c.responses); got != 1 {
			t.Errorf("want one response, got %d", got)
		}
		if diff := cmp.Diff(map[string][]string{web: {"10.0.0.1"}}, c.addresses()); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
}

func TestAcknowledge(t *testing.T) {
	web := key("web").ClusterName()
	run(t, targets(target("web", "10.0.0.1")), func(h *harness) {
		c := h.endpoints()
		c.subscribe(web)
		synctest.Wait()
		r := <-c.responses
		c.request(&discovery.DeltaDiscoveryRequest{
			TypeUrl:       TypeURL,
			ResponseNonce: r.GetNonce(),
			ErrorDetail:   &status.Status{Code: int32(codes.Internal), Message: "no"},
		})
		<-time.After(time.Minute)
		if got := c.received(); len(got) != 0 {
			t.Errorf("a refused list was sent again unchanged: %v", got)
		}
		if got := testutil.ToFloat64(h.server.metrics.refused); got != 1 {
			t.Errorf("want 1 refusal counted, got %v", got)
		}
		h.change(targets(target("web", "10.0.0.2")))
		<-time.After(time.Minute)
		if diff := cmp.Diff(map[string][]string{web: {"10.0.0.2"}}, c.addresses()); diff != "" {
			t.Errorf("the next change was not sent after a refusal: -want, +got:\n%s", diff)
		}
	})
}

// TestRefusedTogether has an Envoy refuse each response that has the list of one tenant, as Envoy
// does: as a whole. The lists of others reach it, and so do their changes.
func TestRefusedTogether(t *testing.T) {
	bad := key("bad").ClusterName()
	contents := func(address string) ir.Contents {
		all := []*ir.Target{target("bad", address)}
		for i := range 40 {
			all = append(all, target("web-"+strconv.Itoa(i), address))
		}
		return targets(all...)
	}
	run(t, contents("10.0.0.1"), func(h *harness) {
		c := h.aggregated()
		names := []string{bad}
		for i := range 40 {
			names = append(names, key("web-"+strconv.Itoa(i)).ClusterName())
		}
		c.subscribe(names...)
		refused, responses := 0, 0
		answer := func() map[string]string {
			out := map[string]string{}
			for {
				synctest.Wait()
				select {
				case r := <-c.responses:
					responses++
					answer := &discovery.DeltaDiscoveryRequest{TypeUrl: TypeURL, ResponseNonce: r.GetNonce()}
					if slices.ContainsFunc(r.GetResources(), func(r *discovery.Resource) bool { return r.GetName() == bad }) {
						refused++
						answer.ErrorDetail = &status.Status{Code: int32(codes.Internal), Message: "malformed IP address"}
					} else {
						for _, r := range r.GetResources() {
							out[r.GetName()] = r.GetVersion()
						}
					}
					c.request(answer)
				default:
					return out
				}
			}
		}
		if got := len(answer()); got != 40 {
			t.Errorf("want the lists of 40 others, got %d", got)
		}
		if refused != 2 {
			t.Errorf("want the list refused twice, with others and alone, got %d", refused)
		}

		refused, responses = 0, 0
		h.change(contents("10.0.0.2"))
		<-time.After(time.Minute)
		if got := len(answer()); got != 40 {
			t.Errorf("want changes of 40 others, got %d", got)
		}
		if refused != 1 || responses != 2 {
			t.Errorf("want two responses, of which one is refused: others together, and the refused list alone; got %d, %d", responses, refused)
		}
	})
}

// TestTransport checks that endpoints never precede the TLS settings of their cluster.
func TestTransport(t *testing.T) {
	secure := func(addresses ...string) *ir.Target {
		out := target("web", addresses...)
		out.Shape.TLS = &ir.UpstreamTLS{ServerName: "web.example.com"}
		out.Transport = out.Shape.Transport()
		return out
	}
	plain := key("web").ClusterName()
	tls := ir.Tuning{Transport: secure().Transport}.Name(plain)
	run(t, targets(target("web")), func(h *harness) {
		c := h.endpoints()
		c.subscribe(plain)
		if diff := cmp.Diff(map[string][]string{plain: {}}, c.addresses()); diff != "" {
			t.Errorf("A target without endpoints: -want, +got:\n%s", diff)
		}
		// The policy can be applied now, and the cluster does not have it yet.
		h.change(targets(secure("10.0.0.1")))
		<-time.After(time.Minute)
		if got := c.addresses(); len(got) != 0 {
			t.Errorf("A list of a cluster without TLS gets endpoints that need it: %v", got)
		}
		c.subscribe(tls)
		if diff := cmp.Diff(map[string][]string{tls: {"10.0.0.1"}}, c.addresses()); diff != "" {
			t.Errorf("The list of the cluster with TLS: -want, +got:\n%s", diff)
		}
		// Another Envoy's cluster still has no TLS.
		late := h.endpoints()
		late.subscribe(plain)
		<-time.After(time.Minute)
		if diff := cmp.Diff(map[string][]string{plain: {}}, late.addresses()); diff != "" {
			t.Errorf("A cluster without TLS: -want, +got:\n%s", diff)
		}
		// Without the policy the list stays as it was until the cluster has followed.
		h.change(targets(target("web", "10.0.0.2")))
		<-time.After(time.Minute)
		if diff := cmp.Diff(map[string][]string{plain: {"10.0.0.2"}}, c.addresses()); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
}

// TestInventedTransport checks that a client that invents transports pays for them.
func TestInventedTransport(t *testing.T) {
	run(t, targets(target("web", "10.0.0.1")), func(h *harness) {
		c := h.endpoints()
		c.subscribe(ir.Tuning{Transport: "0123456789abcdef"}.Name(key("web").ClusterName()))
		synctest.Wait()
		if h.doubtful() == 0 {
			t.Error("A transport that no target has should be charged")
		}
	})
}

// TestPending checks that a replica that has just started takes no endpoints away before it has
// looked up their host.
func TestPending(t *testing.T) {
	web := key("web").ClusterName()
	pending := target("web")
	pending.Pending = true
	run(t, targets(pending), func(h *harness) {
		back, fresh := h.endpoints(), h.endpoints()
		back.request(&discovery.DeltaDiscoveryRequest{
			TypeUrl:                 TypeURL,
			ResourceNamesSubscribe:  []string{web},
			InitialResourceVersions: map[string]string{web: "of another"},
		})
		fresh.subscribe(web)
		if got := fresh.addresses(); len(got) != 0 {
			t.Errorf("An answer before the host is looked up: %v", got)
		}
		<-time.After(2 * defaultPatience)
		if got := back.addresses(); len(got) != 0 {
			t.Errorf("An Envoy loses its endpoints: %v", got)
		}
		if diff := cmp.Diff(map[string][]string{web: {}}, fresh.addresses()); diff != "" {
			t.Errorf("An Envoy without endpoints does not wait for long: -want, +got:\n%s", diff)
		}
		h.change(targets(target("web", "10.0.0.1")))
		<-time.After(time.Second)
		for _, c := range []*client{back, fresh} {
			if diff := cmp.Diff(map[string][]string{web: {"10.0.0.1"}}, c.addresses()); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		}
		// A further host of a known list does not hold it up.
		more := target("web", "10.0.0.2")
		more.Pending = true
		h.change(targets(more))
		<-time.After(time.Second)
		if diff := cmp.Diff(map[string][]string{web: {"10.0.0.2"}}, fresh.addresses()); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
}

func TestResubscribe(t *testing.T) {
	web := key("web").ClusterName()
	run(t, targets(target("web", "10.0.0.1")), func(h *harness) {
		c := h.endpoints()
		c.subscribe(web)
		version := c.received()[web].GetVersion()

		c.subscribe(web)
		if diff := cmp.Diff(map[string][]string{web: {"10.0.0.1"}}, c.addresses()); diff != "" {
			t.Errorf("a client that subscribes again should get the list again: -want, +got:\n%s", diff)
		}
		c.request(&discovery.DeltaDiscoveryRequest{TypeUrl: TypeURL, ResourceNamesUnsubscribe: []string{web}})
		synctest.Wait()
		h.change(targets(target("web", "10.0.0.2")))
		<-time.After(time.Minute)
		if got := c.received(); len(got) != 0 {
			t.Errorf("a list without subscriptions was sent: %v", got)
		}
		h.change(targets(target("web", "10.0.0.1")))

		// A client that returns with the current version does not get it again, even from another
		// replica: versions depend on contents only.
		back := h.endpoints()
		back.request(&discovery.DeltaDiscoveryRequest{
			TypeUrl:                 TypeURL,
			ResourceNamesSubscribe:  []string{web},
			InitialResourceVersions: map[string]string{web: version},
		})
		if got := back.received(); len(got) != 0 {
			t.Errorf("a client got the version that it has: %v", got)
		}
		if err := back.stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if err := <-back.failed; !errors.Is(err, io.EOF) {
			t.Errorf("want an orderly end, got %v", err)
		}
	})
}

func TestXDSTP(t *testing.T) {
	web := key("web").ClusterName()
	run(t, targets(target("web", "10.0.0.1")), func(h *harness) {
		c := h.aggregated()
		name, encoded := xds.XDSTPName(web), xds.XDSTPName("tailscale/services/shop/w%65b/80/http?xds.node.cluster=a")
		c.subscribe(name, encoded)
		want := map[string][]string{name: {"10.0.0.1"}, encoded: {"10.0.0.1"}}
		if diff := cmp.Diff(want, c.addresses()); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
}

func TestRuleOfMovedIndex(t *testing.T) {
	old := ir.Rule{Backends: []ir.BackendRef{ours("web", 1), ours("api", 3)}}
	inserted := ir.Rule{Backends: []ir.BackendRef{ours("admin", 1)}}
	route := func(rules ...ir.Rule) *ir.Route {
		return &ir.Route{Key: ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: named("web")}, Rules: rules}
	}
	contents := func(rules ...ir.Rule) ir.Contents {
		c := targets(target("web", "10.0.0.1"), target("api", "10.0.0.2"), target("admin", "10.0.0.3"))
		c.Routes = []*ir.Route{route(rules...)}
		return c
	}
	name := route(old).RuleName(0)
	run(t, contents(old), func(h *harness) {
		c := h.endpoints()
		c.subscribe(name)
		if diff := cmp.Diff(map[string][]string{name: {"10.0.0.1", "10.0.0.2"}}, c.addresses()); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
		h.change(contents(inserted, old))
		<-time.After(time.Minute)
		if got := c.received(); len(got) != 0 {
			t.Errorf("the list of a rule should not become that of another rule in its place: %v", got)
		}
		h.change(contents(inserted))
		<-time.After(time.Minute)
		if got := c.received(); len(got) != 0 {
			t.Errorf("the list of a removed rule should stay while Envoy's routes still use it: %v", got)
		}
	})
}

func TestManyNames(t *testing.T) {
	const n = 3000
	var c ir.Contents
	names := make([]string, 0, n)
	for i := range n {
		name := fmt.Sprintf("web-%d", i)
		// Some 700 bytes each.
		ts := target(name)
		for j := range 20 {
			ts.Localities[0].Endpoints = append(ts.Localities[0].Endpoints, ir.Endpoint{Address: fmt.Sprintf("10.0.1.%d", j), Port: 80})
		}
		c.Targets = append(c.Targets, ts)
		names = append(names, xds.XDSTPName(key(name).ClusterName()))
	}
	run(t, c, func(h *harness) {
		cl := h.aggregated()
		cl.subscribe(names...)
		synctest.Wait()
		if got := len(cl.responses); got < 2 {
			t.Errorf("want several responses, each within the client's limit, got %d", got)
		}
		if got := len(cl.received()); got != n {
			t.Errorf("want %d lists, got %d", n, got)
		}
	})
}

func TestReplicasAgree(t *testing.T) {
	web := key("web").ClusterName()
	answers := []map[string]*discovery.Resource{}
	for range 2 {
		run(t, targets(target("web", "10.0.0.2", "10.0.0.1")), func(h *harness) {
			c := h.endpoints()
			c.subscribe(web)
			answers = append(answers, c.received())
		})
	}
	if diff := cmp.Diff(answers[0], answers[1], protocmp.Transform()); diff != "" {
		t.Errorf("two replicas should answer alike: -first, +second:\n%s", diff)
	}
}

// TestSlowEnvoy has an Envoy that reads nothing: it must not delay the others, and does not get
// outdated lists when it reads again.
func TestSlowEnvoy(t *testing.T) {
	const changes = 30
	web := key("web").ClusterName()
	contents := func(i int) ir.Contents {
		// Some 70 kB: more than gRPC buffers for a client that does not read.
		c := targets(target("web", fmt.Sprintf("10.0.0.%d", i)))
		for j := range 2500 {
			c.Targets[0].Localities[0].Endpoints = append(c.Targets[0].Localities[0].Endpoints,
				ir.Endpoint{Address: fmt.Sprintf("10.1.%d.%d", j/250, j%250), Port: 80})
		}
		return c
	}
	run(t, contents(0), func(h *harness) {
		slow, err := endpointservice.NewEndpointDiscoveryServiceClient(h.conn).DeltaEndpoints(h.t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := slow.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: TypeURL, ResourceNamesSubscribe: []string{web}}); err != nil {
			t.Fatal(err)
		}
		fast := h.endpoints()
		fast.subscribe(web)
		fast.received()
		for i := 1; i <= changes; i++ {
			h.change(contents(i))
			<-time.After(2 * defaultDebounce)
			if got, want := fast.addresses()[web], fmt.Sprintf("10.0.0.%d", i); len(got) == 0 || got[0] != want {
				t.Fatalf("an Envoy that reads should have change %d", i)
			}
		}

		late := h.client(slow, nil)
		synctest.Wait()
		if n := len(late.responses); n >= changes/2 {
			t.Errorf("an Envoy that did not read got %d of %d changes", n, changes)
		}
		if got, want := late.addresses()[web], fmt.Sprintf("10.0.0.%d", changes); len(got) == 0 || got[0] != want {
			t.Error("an Envoy that reads again should have the newest")
		}
	})
}
