//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/standalone"
)

var (
	blastFor     = flag.Duration("blast", 0, "length of TestBlastRadius, after the start of its programs; 0 skips it")
	blastWithout = flag.String("blast-without", "", "kinds that the hostile tenant does not write, separated by commas, to find the cause of a failure")
	blastSeed    = flag.Uint64("blast-seed", 0, "seed of the hostile tenant in TestBlastRadius; 0 selects the kept seeds, and then random ones")
)

const (
	// honestTenants is the number of honest tenants.
	honestTenants = 20

	// grownBy is the largest factor by which a hostile tenant may increase the time of an update and
	// the memory of a replica.
	grownBy = 1.2

	// samples of a phase, and hostileWrites before the first and before each further one.
	samples, hostileWrites, hostileEdits = 24, 150, 3
)

// TestBlastRadius checks that what a hostile tenant writes costs only that tenant: in the presence of
// its objects, Envoy has the same clusters, endpoints and routes of all others, an update of an
// endpoint takes no longer, and the replicas need no more memory. Envoy restarts meanwhile.
func TestBlastRadius(t *testing.T) {
	if *blastFor == 0 {
		t.Skip("make test-blast runs it")
	}
	r := newReplicasOf(t, standalone.Options{OwnEnvoy: true})
	addresses := []string{"192.0.2.31", "192.0.2.32"}
	for _, a := range addresses {
		r.serve(t, a+":8000", respond(a))
	}
	b := &blast{replicas: r, addresses: addresses, at: map[string]int{}}
	b.honest(t)
	if err := r.StartEnvoy(within(t)); err != nil {
		t.Fatal(err)
	}
	for _, n := range b.tenants {
		r.answers(t, n+".example.com", addresses[0])
	}
	// The first changes of all programs take longer.
	b.measure(t, nil)

	var without, with []phase
	end, kept := time.Now().Add(*blastFor), blastSeeds(t)
	for round := 0; round < 2 || time.Now().Before(end); round++ {
		without = append(without, b.measure(t, nil))
		before := b.honestResources(t)
		seed := rand.Uint64()
		switch {
		case *blastSeed != 0:
			seed = *blastSeed
		case round < len(kept):
			seed = kept[round]
		}
		h := newHostile(r.kube, seed, string(newAuthority(t, "hostile").pem()), b.tenants)
		h.without = strings.Split(*blastWithout, ",")
		for range hostileWrites {
			h.write(t.Context(), t)
		}
		with = append(with, b.measure(t, h))
		t.Logf("updates took %v without the hostile tenant and %v with it; heaps %.0f and %.0f", median(without[len(without)-1].took), median(with[len(with)-1].took), without[len(without)-1].heap, with[len(with)-1].heap)
		b.same(t, seed, "with the hostile tenant", before)
		if round == 0 {
			if err := r.KillEnvoy(); err != nil {
				t.Fatal(err)
			}
			if err := r.StartEnvoy(within(t)); err != nil {
				t.Fatal(err)
			}
			b.same(t, seed, "after a restart of Envoy", before)
		}
		t.Logf("seed %d: accepted %v, refused %v", seed, h.written, h.refused)
		h.remove(t.Context(), t)
		b.same(t, seed, "without the hostile tenant again", before)
		if t.Failed() {
			t.Fatalf("failed with seed %d; add it to testdata/blast-seeds once the fault is corrected", seed)
		}
	}
	b.judge(t, without, with)
}

// blastSeeds returns the kept seeds, which found faults.
func blastSeeds(t *testing.T) []uint64 {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "blast-seeds"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() // The file is only read.
	var out []uint64
	for s := bufio.NewScanner(f); s.Scan(); {
		line, _, _ := strings.Cut(s.Text(), "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		n, err := strconv.ParseUint(line, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, n)
	}
	return out
}

// A blast is the state of TestBlastRadius.
type blast struct {
	*replicas

	tenants   []string
	addresses []string

	// at is the index of each tenant's current address, and next the tenant that changes next.
	at   map[string]int
	next int
}

// A phase holds the results of some updates: how long each took until Envoy had it, and the heap of
// each replica.
type phase struct {
	took []time.Duration
	heap []float64
}

// honest creates the Gateway and the honest tenants.
func (b *blast) honest(t *testing.T) {
	t.Helper()
	b.create(t, objectFrom(t, "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: gw, namespace: default}\nspec:\n  gatewayClassName: envoy\n  listeners: [{name: http, protocol: HTTP, port: 8888, allowedRoutes: {namespaces: {from: All}}}]"))
	b.create(t, objectFrom(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+hostileNamespace+"}"))
	for i := range honestTenants {
		n := fmt.Sprintf("tenant%02d", i)
		b.tenants = append(b.tenants, n)
		for _, o := range []string{
			"apiVersion: v1\nkind: Namespace\nmetadata: {name: " + n + "}",
			"apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: " + n + "}\nspec: {ports: [{name: http, port: 80, targetPort: 8000}]}",
			"apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: web, namespace: " + n + ", labels: {kubernetes.io/service-name: web}}\naddressType: IPv4\nports: [{name: http, port: 8000, protocol: TCP}]\nendpoints: [{addresses: [" + b.addresses[0] + "], conditions: {ready: true}}]",
			"apiVersion: gateway.tailscale.com/v1alpha1\nkind: TailscaleServices\nmetadata: {name: web, namespace: " + n + "}\nspec: {selector: {}, vipService: {ports: [\"tcp:80\"]}, backends: [{name: web, port: 80}], loadBalancing: {healthCheck: {enabled: false}}}",
			"apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: web, namespace: " + n + "}\nspec:\n  parentRefs: [{name: gw, namespace: default}]\n  hostnames: [" + n + ".example.com]\n  rules: [{backendRefs: [{group: gateway.tailscale.com, kind: TailscaleServices, name: web, port: 80}]}]",
			"apiVersion: gateway.tailscale.com/v1alpha1\nkind: TailscaleRoutePolicy\nmetadata: {name: web, namespace: " + n + "}\nspec:\n  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web}]\n  rules: [{name: a, matches: [{path: {type: PathPrefix, value: /a}}], actions: [{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: X-A, value: a}]}}]}]",
		} {
			b.create(t, objectFrom(t, o))
		}
	}
}

// objectFrom returns the object of a manifest.
func objectFrom(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), u); err != nil {
		t.Fatal(err)
	}
	return u
}

// measure changes endpoints of honest tenants, while a hostile tenant writes, if there is one.
func (b *blast) measure(t *testing.T, h *hostile) phase {
	t.Helper()
	var out phase
	for range samples {
		if h != nil {
			for range hostileEdits {
				h.write(t.Context(), t)
			}
		}
		out.took = append(out.took, b.move(t))
	}
	for _, url := range []string{"http://127.0.0.1:5007", "http://" + observe2} {
		out.heap = append(out.heap, b.heap(t, url))
	}
	return out
}

// move changes the endpoint of the next tenant, and returns how long it takes until Envoy sends
// requests there.
func (b *blast) move(t *testing.T) time.Duration {
	t.Helper()
	n := b.tenants[b.next%len(b.tenants)]
	b.next++
	b.at[n] = 1 - b.at[n]
	to := b.addresses[b.at[n]]
	u := objectFrom(t, "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: web, namespace: "+n+"}")
	c := b.Client()
	defer c.CloseIdleConnections()
	if err := b.kube.Patch(t.Context(), u, client.RawPatch("application/merge-patch+json", []byte(`{"endpoints":[{"addresses":["`+to+`"],"conditions":{"ready":true}}]}`))); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for ctx := within(t); ; {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, gateway, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = n + ".example.com"
		rsp, err := c.Do(req)
		if err != nil {
			t.Fatalf("Envoy does not have the new endpoint of %s: %v", n, err)
		}
		body, err := io.ReadAll(rsp.Body)
		_ = rsp.Body.Close() // The body is only read.
		if err == nil && string(body) == to {
			return time.Since(began)
		}
		time.Sleep(time.Millisecond)
	}
}

// heap returns the smallest heap of a replica in some seconds: after a garbage collection.
func (b *blast) heap(t *testing.T, url string) float64 {
	t.Helper()
	out := 0.0
	for range 10 {
		rsp, err := b.get(t.Context(), url+"/metrics")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(rsp, "\n") {
			if text, ok := strings.CutPrefix(line, "go_memstats_heap_alloc_bytes "); ok {
				n, err := strconv.ParseFloat(text, 64)
				if err != nil {
					t.Fatal(err)
				}
				if out == 0 || n < out {
					out = n
				}
			}
		}
		pause(t, 200*time.Millisecond)
	}
	if out == 0 {
		t.Fatalf("%s has no size of the heap", url)
	}
	return out
}

func (b *blast) get(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	c := b.Client()
	defer c.CloseIdleConnections()
	rsp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer rsp.Body.Close() // The body is only read.
	body, err := io.ReadAll(rsp.Body)
	return string(body), err
}

// same waits until Envoy has the same resources of honest tenants as before, apart from the addresses
// that these have changed.
func (b *blast) same(t *testing.T, seed uint64, when string, before map[string]string) {
	t.Helper()
	err := b.Until(within(t), func(ctx context.Context) error {
		now, err := b.resources(ctx)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(before, now); diff != "" {
			return errors.Errorf("-want, +got:\n%s", diff)
		}
		return nil
	})
	if err != nil {
		t.Errorf("%s (seed %d), Envoy has other resources of honest tenants: %v", when, seed, err)
	}
}

func (b *blast) honestResources(t *testing.T) map[string]string {
	t.Helper()
	out, err := b.resources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 3*honestTenants {
		t.Fatalf("Envoy has only %d resources of %d tenants", len(out), honestTenants)
	}
	return out
}

// resources returns Envoy's clusters, endpoints and virtual hosts of honest tenants as JSON. The
// address of an endpoint is replaced by the fact that it is the current one.
func (b *blast) resources(ctx context.Context) (map[string]string, error) {
	dump, err := b.Admin(ctx, "/config_dump?include_eds")
	if err != nil {
		return nil, err
	}
	var all struct {
		Configs []map[string]any `json:"configs"`
	}
	if err := json.Unmarshal(dump, &all); err != nil {
		return nil, errors.Wrap(err, "cannot read Envoy's configuration")
	}
	out := map[string]string{}
	for _, c := range all.Configs {
		b.collect(out, c)
	}
	return out, nil
}

// collect adds the resources in a value that belong to honest tenants.
func (b *blast) collect(out map[string]string, v any) {
	switch v := v.(type) {
	case []any:
		for _, of := range v {
			b.collect(out, of)
		}
	case map[string]any:
		name := ""
		kind, _ := v["@type"].(string)
		switch {
		case strings.HasSuffix(kind, ".Cluster"):
			name, _ = v["name"].(string)
		case strings.HasSuffix(kind, ".ClusterLoadAssignment"):
			name, _ = v["cluster_name"].(string)
		case v["domains"] != nil:
			kind, name = "VirtualHost", fmt.Sprint(v["name"])
		}
		i := slices.IndexFunc(b.tenants, func(n string) bool {
			return strings.Contains(name, "/"+n+"/") || strings.HasSuffix(name, "/"+n+"_example_com")
		})
		if name != "" && i >= 0 {
			// Maps are encoded with sorted keys.
			text, _ := json.Marshal(v)
			n := b.tenants[i]
			out[kind+" "+name] = strings.ReplaceAll(string(text), `"`+b.addresses[b.at[n]]+`"`, `"current"`)
			return
		}
		for _, of := range v {
			b.collect(out, of)
		}
	}
}

func median(ds []time.Duration) time.Duration { return slices.Sorted(slices.Values(ds))[len(ds)/2] }

// judge compares the phases with a hostile tenant to those without.
func (b *blast) judge(t *testing.T, without, with []phase) {
	t.Helper()
	gather := func(ps []phase, of func(p phase) []float64) float64 {
		var all []float64
		for _, p := range ps {
			all = append(all, of(p)...)
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	took := func(p phase) []float64 {
		out := make([]float64, 0, len(p.took))
		for _, d := range p.took {
			out = append(out, d.Seconds()*1000)
		}
		return out
	}
	for what, of := range map[string]func(p phase) []float64{
		"time of an update, in ms":                                 took,
		"heap of the replica that has Envoy's endpoints, in bytes": func(p phase) []float64 { return p.heap[:1] },
		"heap of the replica that answers hooks, in bytes":         func(p phase) []float64 { return p.heap[1:] },
	} {
		less, more := gather(without, of), gather(with, of)
		t.Logf("%s: %.1f without the hostile tenant, %.1f with it: %.2f times (%d phases)", what, less, more, more/less, len(with))
		if more > grownBy*less {
			t.Errorf("%s: %.1f with the hostile tenant, want at most %.1f times the %.1f without", what, more, grownBy, less)
		}
	}
}
