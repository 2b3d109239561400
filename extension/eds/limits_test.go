// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package eds

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// TestHostileNames has a client invent names without end. The client reaches its limit: further
// names are answered as removed, and its honest name and other clients are served as before.
func TestHostileNames(t *testing.T) {
	const most = 64 << 10
	web := key("web").ClusterName()
	cases := map[string]struct {
		reason string
		name   func(i int) string
	}{
		"Unknown": {
			reason: "No snapshot has such a list.",
			name:   func(i int) string { return key("none-" + strconv.Itoa(i)).ClusterName() },
		},
		"Tuned": {
			reason: "A client may subscribe to a list with any port for health checks.",
			name:   func(i int) string { return ir.Tuning{HealthPort: uint32(i%65535) + 1}.Name(web) },
		},
		"Parameters": {
			reason: "A name may have any parameters.",
			name:   func(i int) string { return xds.XDSTPName(web) + "?of=" + strconv.Itoa(i) },
		},
		"Encoded": {
			reason: "One name may be written in many ways.",
			name: func(i int) string {
				out := &strings.Builder{}
				for j, c := range []byte(web) {
					if j < 32 && i>>j&1 == 1 {
						fmt.Fprintf(out, "%%%02x", c)
						continue
					}
					out.WriteByte(c)
				}
				return xds.XDSTPName(out.String())
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			runWithin(t, Limits{Doubtful: most}, targets(target("web", "10.0.0.1")), func(h *harness) {
				good := h.endpoints()
				good.subscribe(web)
				good.received()

				hostile := h.aggregated()
				hostile.subscribe(web)
				hostile.received()
				for i := 0; testutil.ToFloat64(h.server.metrics.limited) < 10; i++ {
					if i > most {
						t.Fatalf("%s\n%d names remain", tc.reason, i)
					}
					hostile.subscribe(tc.name(i + 1))
					synctest.Wait()
					h.server.mu.Lock()
					if got := h.server.usage.all.doubtful; got > most/2 {
						t.Fatalf("%s\n%d bytes remain for one client, of %d", tc.reason, got, most/2)
					}
					h.server.mu.Unlock()
				}
				hostile.received()
				if got := len(hostile.removed); got != 10 {
					t.Errorf("%s\nwant 10 names answered as removed, got %d", tc.reason, got)
				}

				h.change(targets(target("web", "10.0.0.2")))
				<-time.After(time.Minute)
				for subject, c := range map[string]*client{"another client": good, "the client's honest name": hostile} {
					if diff := cmp.Diff([]string{"10.0.0.2"}, c.addresses()[web]); diff != "" {
						t.Errorf("%s should be served as before: -want, +got:\n%s", subject, diff)
					}
				}
			})
		})
	}
}

// TestExpectedTunings checks that many policies of one target do not exhaust the limit of invented
// names.
func TestExpectedTunings(t *testing.T) {
	const most, lists = 64 << 10, 1200
	c := targets(target("web", "10.0.0.1"))
	c.Tunings = map[ir.RouteKey]map[string]ir.Tuning{}
	var names []string
	for i := range lists {
		tuning := ir.Tuning{HealthPort: uint32(i + 1), Zones: []ir.ZoneWeight{{Zone: "a", Weight: 3}}}
		c.Tunings[ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: named(strconv.Itoa(i))}] = map[string]ir.Tuning{"": tuning}
		tuning.PreferLocal = i%2 == 0
		names = append(names, tuning.Name(key("web").ClusterName()))
	}
	runWithin(t, Limits{Doubtful: most}, c, func(h *harness) {
		envoy := h.aggregated()
		envoy.subscribe(names...)
		if got := len(envoy.received()); got != lists {
			t.Errorf("want %d lists, got %d", lists, got)
		}
		if got := h.doubtful(); got != 0 {
			t.Errorf("lists that policies tune should not be charged, got %d bytes", got)
		}
	})
}

// TestDoubtfulBecomesKnown checks a replica that lags: a name that becomes known is no longer
// charged.
func TestDoubtfulBecomesKnown(t *testing.T) {
	run(t, ir.Contents{}, func(h *harness) {
		c := h.endpoints()
		c.subscribe(key("web").ClusterName())
		synctest.Wait()
		if h.doubtful() == 0 {
			t.Error("an unknown name should be charged")
		}
		h.change(targets(target("web", "10.0.0.1")))
		<-time.After(time.Minute)
		if got := h.doubtful(); got != 0 {
			t.Errorf("a known name should not be charged, got %d bytes", got)
		}
	})
}

// TestHostileStreams has a client open streams and subscriptions without end.
func TestHostileStreams(t *testing.T) {
	const streams, subscriptions = 8, 20
	var all []*ir.Target
	var names []string
	for i := range subscriptions {
		all = append(all, target("web-"+strconv.Itoa(i), "10.0.0.1"))
		names = append(names, key("web-"+strconv.Itoa(i)).ClusterName())
	}
	runWithin(t, Limits{Streams: 2 * streams, Subscriptions: 2 * subscriptions}, targets(all...), func(h *harness) {
		for range streams {
			c := h.endpoints()
			c.subscribe(names[0])
			c.received()
		}
		extra := h.endpoints()
		if got := grpcstatus.Code(<-extra.failed); got != codes.ResourceExhausted {
			t.Errorf("a stream too many: want %s, got %s", codes.ResourceExhausted, got)
		}
		if got := testutil.ToFloat64(h.server.metrics.streams); got != streams {
			t.Errorf("want %d streams, got %v", streams, got)
		}
	})
	runWithin(t, Limits{Subscriptions: 2 * subscriptions}, targets(all...), func(h *harness) {
		c := h.endpoints()
		c.subscribe(names...)
		if got := len(c.received()); got != subscriptions {
			t.Errorf("want %d lists, got %d", subscriptions, got)
		}
		other := h.endpoints()
		other.subscribe(names[0])
		if diff := cmp.Diff(map[string]*discovery.Resource{}, other.received()); diff != "" {
			t.Errorf("a subscription too many: -want, +got:\n%s", diff)
		}
		if diff := cmp.Diff(names[:1], other.removed); diff != "" {
			t.Errorf("a subscription too many: removed: -want, +got:\n%s", diff)
		}
		c.request(&discovery.DeltaDiscoveryRequest{TypeUrl: TypeURL, ResourceNamesUnsubscribe: names[1:]})
		synctest.Wait()
		late := h.endpoints()
		late.subscribe(names[0])
		if got := len(late.received()); got != 1 {
			t.Errorf("want one list after a stream has closed, got %d", got)
		}
	})
}

// TestHostileSizes has clients send messages of the greatest size, of which the server keeps
// nothing.
func TestHostileSizes(t *testing.T) {
	web := key("web").ClusterName()
	run(t, targets(target("web", "10.0.0.1")), func(h *harness) {
		long := h.aggregated()
		long.subscribe(strings.Repeat("a", maxName+1), web)
		if diff := cmp.Diff(map[string][]string{web: {"10.0.0.1"}}, long.addresses()); diff != "" {
			t.Errorf("a name beside one that is too long: -want, +got:\n%s", diff)
		}
		if diff := cmp.Diff([]string{strings.Repeat("a", maxName+1)}, long.removed); diff != "" {
			t.Errorf("a name that is too long: removed: -want, +got:\n%s", diff)
		}

		const clients, size = 64, 1 << 20
		baseline := memory()
		huge := strings.Repeat("é", size/2)
		for range clients {
			c := h.endpoints()
			c.request(&discovery.DeltaDiscoveryRequest{
				TypeUrl:                 TypeURL,
				Node:                    &corev3.Node{Id: huge, Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{"a": structpb.NewStringValue(huge)}}},
				ResourceNamesSubscribe:  []string{web},
				InitialResourceVersions: map[string]string{web: huge},
			})
			if got := len(c.received()); got != 1 {
				t.Fatalf("want one list, got %d", got)
			}
		}
		// Their streams are open.
		if current := memory(); current > baseline+clients*size/4 {
			t.Errorf("%d clients that send %d bytes each three times leave %d bytes", clients, size, current-baseline)
		}
	})
}

// TestChurn has a client subscribe to names and drop them at once, for longer than the patience
// with an unknown name.
func TestChurn(t *testing.T) {
	run(t, ir.Contents{}, func(h *harness) {
		c := h.aggregated()
		for i := range 10000 {
			name := key("none-" + strconv.Itoa(i)).ClusterName()
			c.subscribe(name)
			c.request(&discovery.DeltaDiscoveryRequest{TypeUrl: TypeURL, ResourceNamesUnsubscribe: []string{name}})
		}
		synctest.Wait()
		h.server.mu.Lock()
		defer h.server.mu.Unlock()
		if n := len(h.server.entries); n != 0 {
			t.Errorf("%d lists without subscriptions remain", n)
		}
	})
}
