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
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/standalone"
)

var (
	blastFor     = flag.Duration("blast", 0, "length of TestBlastRadius, after the start of its programs; with 0 it does not compare times and sizes, which need a machine without other tests")
	blastWithout = flag.String("blast-without", "", "kinds that the hostile tenant does not write, separated by commas, to find the cause of a failure")
	blastSeed    = flag.Uint64("blast-seed", 0, "seed of the hostile tenant in TestBlastRadius; 0 selects the kept seeds, and then random ones")
)

const (
	// honestTenants is the number of honest tenants, and honestServices that of each tenant's services.
	// The sizes of replicas are compared with manyTenants and manyServices, as many as a cluster in
	// production has.
	honestTenants, honestServices = 20, 1
	manyTenants, manyServices     = 100, 10

	// morePods is the number of further pods of services that get no requests.
	morePods = 9

	// grownBy is the largest factor by which a hostile tenant may increase the time of an update and
	// the memory of a replica.
	grownBy = 1.2

	// mostHeap are the bytes of a replica's heap that a hostile tenant may bring it to among few honest
	// tenants.
	mostHeap = 64 << 20

	// samples of a phase, and hostileWrites before the first and before each further one.
	samples, hostileWrites, hostileEdits = 24, 150, 3

	// honestList is the name of a tenant's endpoint list and cluster, and honestLists matches all.
	honestList, honestLists = "tailscale/services/%s/web/80/http", "tailscale/services/tenant[0-9]+/.*"
)

// TestBlastRadius checks that what a hostile tenant writes costs only that tenant: in the presence of
// its objects, all others have the same clusters, endpoints and routes, an update of an endpoint arrives
// and takes no longer, and the replicas need no more memory. Envoy restarts meanwhile.
//
// It measures what the extension is responsible for. An update is measured from the API server's answer
// to a write until a replica has sent the endpoints to a stream. Envoy Gateway and Envoy have no part in
// that, and are stopped meanwhile, because they share the processors: a hostile tenant's routes can keep
// both busy without the extension. A heap is measured after garbage collections.
func TestBlastRadius(t *testing.T) {
	// Profiles collect garbage on demand.
	t.Setenv("PPROF", "true")
	// Profiles have one allocation in 64 KiB, instead of one in 512 KiB.
	t.Setenv("GODEBUG", "memprofilerate=65536")
	r := newReplicasOf(t, standalone.Options{OwnEnvoy: true})
	addresses := []string{"192.0.2.31", "192.0.2.32"}
	for _, a := range addresses {
		r.serve(t, a+":8000", respond(a))
	}
	b := &blast{replicas: r, addresses: addresses, indexes: map[string]int{}, certificate: string(newAuthority(t, "hostile").pem())}
	if *blastFor == 0 {
		b.honest(t, honestTenants, honestServices)
	} else {
		b.honest(t, manyTenants, manyServices)
	}
	if err := r.StartEnvoy(within(t)); err != nil {
		t.Fatal(err)
	}
	var lists []string
	for _, n := range b.tenants {
		r.answers(t, n+".example.com", addresses[0])
		lists = append(lists, fmt.Sprintf(honestList, n))
	}
	b.lists = r.subscribe(t, "127.0.0.1:5006", lists...)
	if *blastFor == 0 {
		seed := blastSeeds(t)[0]
		previous := b.honestResources(t)
		h := b.hostile(t, seed)
		b.bounded(t, b.measure(t, h))
		b.same(t, seed, "with the hostile tenant", previous)
		return
	}
	// The first changes of all programs take longer.
	b.measure(t, nil)

	var quiet, hostile []phase
	end, seeds := time.Now().Add(*blastFor), blastSeeds(t)
	for round := 0; round < 2 || time.Now().Before(end); round++ {
		seed := rand.Uint64()
		switch {
		case *blastSeed != 0:
			seed = *blastSeed
		case round < len(seeds):
			seed = seeds[round]
		}
		quiet = append(quiet, b.measure(t, nil))
		previous := b.honestResources(t)
		h := b.hostile(t, seed)
		hostile = append(hostile, b.measure(t, h))
		t.Logf("updates took %v ms without the hostile tenant, and %v ms with it; heaps %.0f and %.0f bytes",
			median(quiet[round].took), median(hostile[round].took), quiet[round].heap, hostile[round].heap)
		b.same(t, seed, "with the hostile tenant", previous)
		if round == 0 {
			if err := r.KillEnvoy(); err != nil {
				t.Fatal(err)
			}
			if err := r.StartEnvoy(within(t)); err != nil {
				t.Fatal(err)
			}
			b.same(t, seed, "after a restart of Envoy", previous)
		}
		t.Logf("seed %d: accepted %v, refused %v", seed, h.written, h.refused)
		h.remove(t.Context(), t)
		b.same(t, seed, "without the hostile tenant again", previous)
		if t.Failed() {
			t.Fatalf("failed with seed %d; add it to testdata/blast-seeds once the fault is corrected", seed)
		}
	}
	judge(t, "time of an update, in ms", quiet, hostile, func(p phase) []float64 { return p.took })
	judge(t, "heap of the replica that has Envoy's endpoints, in bytes", quiet, hostile, func(p phase) []float64 { return p.heap[:1] })
	judge(t, "heap of the replica that answers hooks, in bytes", quiet, hostile, func(p phase) []float64 { return p.heap[1:] })
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

	tenants     []string
	addresses   []string
	certificate string

	// phases is the number of finished phases.
	phases int

	// lists are the endpoints of honest tenants, from the replica that Envoy has them from.
	lists *subscriber

	// indexes has the index of each tenant's current address, and next the tenant that changes next.
	indexes map[string]int
	next    int
}

// A phase holds the results of some updates: how many milliseconds each took, and the heap of each
// replica.
type phase struct {
	took []float64
	heap []float64
}

// honest creates the Gateway and the honest tenants with their services.
func (b *blast) honest(t *testing.T, tenants, services int) {
	t.Helper()
	b.create(t, objectFrom(t, "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: gw, namespace: default}\nspec:\n  gatewayClassName: envoy\n  listeners: [{name: http, protocol: HTTP, port: 8888, allowedRoutes: {namespaces: {from: All}}}]"))
	b.create(t, objectFrom(t, "apiVersion: gateway.tailscale.com/v1alpha1\nkind: TailscaleGateway\nmetadata: {name: gw, namespace: default}\nspec:\n  gatewayRef: {name: gw}\n  tailnets: [{name: corp, listeners: [{name: http}]}]"))
	b.create(t, objectFrom(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+hostileNamespace+"}"))
	for i := range tenants {
		n := fmt.Sprintf("tenant%02d", i)
		b.tenants = append(b.tenants, n)
		b.create(t, objectFrom(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+n+"}"))
		for j := range services {
			// The first service is the one that changes and gets requests.
			name, host, ip := "web", n+".example.com", ""
			pods := []string{b.addresses[0]}
			if j > 0 {
				for k := range morePods {
					pods = append(pods, fmt.Sprintf("198.51.100.%d", 1+k))
				}
				// The API server's range has few addresses.
				name, ip = fmt.Sprintf("web%d", j), "clusterIP: None, "
				host = name + "." + host
			}
			meta := "metadata: {name: " + name + ", namespace: " + n
			for _, o := range []string{
				"apiVersion: v1\nkind: Service\n" + meta + "}\nspec: {" + ip + "ports: [{name: http, port: 80, targetPort: 8000}]}",
				"apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n" + meta + ", labels: {kubernetes.io/service-name: " + name + "}}\naddressType: IPv4\nports: [{name: http, port: 8000, protocol: TCP}]\nendpoints: [{conditions: {ready: true}, addresses: [" + strings.Join(pods, "]}, {conditions: {ready: true}, addresses: [") + "]}]",
				"apiVersion: gateway.tailscale.com/v1alpha1\nkind: TailscaleServices\n" + meta + "}\nspec: {selector: {}, vipService: {ports: [\"tcp:80\"]}, backends: [{name: " + name + ", port: 80}], loadBalancing: {healthCheck: {enabled: false}}}",
				"apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\n" + meta + "}\nspec:\n  parentRefs: [{name: gw, namespace: default}]\n  hostnames: [" + host + "]\n  rules: [{backendRefs: [{group: gateway.tailscale.com, kind: TailscaleServices, name: " + name + ", port: 80}]}]",
				"apiVersion: gateway.tailscale.com/v1alpha1\nkind: TailscaleRoutePolicy\n" + meta + "}\nspec:\n  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: " + name + "}]\n  rules: [{name: a, matches: [{path: {type: PathPrefix, value: /a}}], actions: [{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: X-A, value: a}]}}]}]",
			} {
				b.create(t, objectFrom(t, o))
			}
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

// hostile returns a hostile tenant that has written objects.
func (b *blast) hostile(t *testing.T, seed uint64) *hostile {
	t.Helper()
	h := newHostile(b.kube, seed, b.certificate, b.tenants)
	h.excluded = strings.Split(*blastWithout, ",")
	for range hostileWrites {
		h.write(t.Context(), t)
	}
	return h
}

// measure changes endpoints of honest tenants while Envoy Gateway and Envoy are stopped and a hostile
// tenant writes, if there is one. Envoy must have all changes afterwards.
func (b *blast) measure(t *testing.T, h *hostile) phase {
	t.Helper()
	var out phase
	b.signal(t, syscall.SIGSTOP)
	// A failure ends the test, but processes that are stopped would not end.
	resume := sync.OnceFunc(func() { b.signal(t, syscall.SIGCONT) })
	defer resume()
	for range samples {
		if h != nil {
			for range hostileEdits {
				h.write(t.Context(), t)
			}
		}
		out.took = append(out.took, b.move(t).Seconds()*1000)
	}
	resume()
	for i, url := range []string{"http://127.0.0.1:5007", "http://" + observe2} {
		size, profile := b.heap(t, url)
		out.heap = append(out.heap, size)
		// The profile says what a failure is about.
		if err := os.WriteFile(filepath.Join(t.ArtifactDir(), fmt.Sprintf("heap-%d-%d", b.phases, i+1)), []byte(profile), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.phases++
	return out
}

// signal sends a signal to Envoy Gateway and to Envoy.
func (b *blast) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	for _, p := range b.Processes() {
		signal(t, p, s)
	}
}

// move changes the endpoint of the next tenant, and returns how long it takes until a replica has sent
// it.
func (b *blast) move(t *testing.T) time.Duration {
	t.Helper()
	n := b.tenants[b.next%len(b.tenants)]
	b.next++
	b.indexes[n] = 1 - b.indexes[n]
	addr := b.addresses[b.indexes[n]]
	u := objectFrom(t, "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: web, namespace: "+n+"}")
	if err := b.kube.Patch(t.Context(), u, client.RawPatch("application/merge-patch+json", []byte(`{"endpoints":[{"addresses":["`+addr+`"],"conditions":{"ready":true}}]}`))); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	err := b.lists.until(within(t), func(lists map[string]*endpointv3.ClusterLoadAssignment) bool {
		return slices.Equal(addressesOf(lists[fmt.Sprintf(honestList, n)]), []string{addr})
	})
	if err != nil {
		t.Fatalf("The new endpoint of %s is lost: %v", n, err)
	}
	return time.Since(began)
}

// heap returns the smallest size of a replica's heap in some seconds, and its profile: without garbage, and
// without the messages of a hook or of Envoy, which are transient.
func (b *blast) heap(t *testing.T, url string) (size float64, profile string) {
	t.Helper()
	for range 10 {
		n, p := b.collected(t, url)
		if size == 0 || n < size {
			size, profile = n, p
		}
		pause(t, 300*time.Millisecond)
	}
	return size, profile
}

// collected returns the size of a replica's heap after a garbage collection, and its profile.
func (b *blast) collected(t *testing.T, url string) (size float64, profile string) {
	t.Helper()
	profile, err := b.get(t.Context(), url+"/debug/pprof/heap?gc=1")
	if err != nil {
		t.Fatal(err)
	}
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
			return n, profile
		}
	}
	t.Fatalf("%s has no size of the heap", url)
	return 0, ""
}

// bounded checks the heaps of a phase.
func (b *blast) bounded(t *testing.T, p phase) {
	t.Helper()
	for i, n := range p.heap {
		if n > mostHeap {
			t.Errorf("The heap of replica %d has %.0f bytes with the hostile tenant, want at most %d", i+1, n, mostHeap)
		}
	}
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
func (b *blast) same(t *testing.T, seed uint64, stage string, previous map[string]string) {
	t.Helper()
	err := b.Until(within(t), func(ctx context.Context) error {
		current, err := b.resources(ctx)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(previous, current); diff != "" {
			return errors.Errorf("-want, +got:\n%s", diff)
		}
		return nil
	})
	if err != nil {
		t.Errorf("%s (seed %d), Envoy has other resources of honest tenants: %v", stage, seed, err)
	}
}

func (b *blast) honestResources(t *testing.T) map[string]string {
	t.Helper()
	out, err := b.resources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 3*len(b.tenants) {
		t.Fatalf("Envoy has only %d resources of %d tenants", len(out), len(b.tenants))
	}
	return out
}

// resources returns what Envoy does for honest tenants: their clusters, as JSON, and the responses to a
// request that no policy applies to and to another that one does. It also returns the endpoints that a
// replica sends; the addresses in all are replaced by the fact that they are the current ones. Envoy's
// dump of routes has those of all tenants in one resource, and takes longer than a test may.
func (b *blast) resources(ctx context.Context) (map[string]string, error) {
	dump, err := b.Admin(ctx, "/config_dump?resource=dynamic_active_clusters&name_regex="+url.QueryEscape(honestLists))
	if err != nil {
		return nil, err
	}
	var all struct {
		Configs []struct {
			Cluster map[string]any `json:"cluster"`
		} `json:"configs"`
	}
	if err := json.Unmarshal(dump, &all); err != nil {
		return nil, errors.Wrap(err, "cannot read Envoy's configuration")
	}
	out := map[string]string{}
	for _, c := range all.Configs {
		// Maps are encoded with sorted keys.
		text, err := json.Marshal(c.Cluster)
		if err != nil {
			return nil, errors.Wrap(err, "cannot encode a cluster")
		}
		out[fmt.Sprint("cluster ", c.Cluster["name"])] = string(text)
	}
	client := b.Client()
	defer client.CloseIdleConnections()
	for _, n := range b.tenants {
		list, err := b.lists.text(fmt.Sprintf(honestList, n))
		if err != nil {
			return nil, err
		}
		out["endpoints "+n] = strings.ReplaceAll(list, b.addresses[b.indexes[n]], "current")
		for _, path := range []string{"", "a"} {
			got, err := responseOf(ctx, client, n, path)
			if err != nil {
				return nil, err
			}
			out["route "+n+" /"+path] = strings.ReplaceAll(got, b.addresses[b.indexes[n]], "current")
		}
	}
	return out, nil
}

// responseOf returns the status, the policy's header and the body of a response to a tenant's host.
func responseOf(ctx context.Context, c *http.Client, tenant, path string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, gateway+path, nil)
	if err != nil {
		return "", errors.Wrap(err, "cannot create a request")
	}
	req.Host = tenant + ".example.com"
	rsp, err := c.Do(req)
	if err != nil {
		return "", errors.Wrap(err, "cannot send a request")
	}
	defer rsp.Body.Close() // The body is only read.
	body, err := io.ReadAll(rsp.Body)
	return fmt.Sprintf("%d %q %s", rsp.StatusCode, rsp.Header.Get("X-A"), body), errors.Wrap(err, "cannot read a response")
}

func median(all []float64) float64 { return slices.Sorted(slices.Values(all))[len(all)/2] }

// judge compares the medians of phases with a hostile tenant to those without.
func judge(t *testing.T, metric string, quiet, hostile []phase, values func(p phase) []float64) {
	t.Helper()
	gather := func(ps []phase) float64 {
		var all []float64
		for _, p := range ps {
			all = append(all, values(p)...)
		}
		return median(all)
	}
	less, more := gather(quiet), gather(hostile)
	t.Logf("%s: %.1f without the hostile tenant, %.1f with it: %.2f times (%d phases)", metric, less, more, more/less, len(hostile))
	if more > grownBy*less {
		t.Errorf("%s: %.1f with the hostile tenant, want at most %.1f times the %.1f without", metric, more, grownBy, less)
	}
}
