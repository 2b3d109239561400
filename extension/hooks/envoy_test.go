//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"unicode"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// TestEnvoyAccepts lets Envoy validate the results of all cases over several varied snapshots.
// Fields that are missing in a message may be missing in the result.
func TestEnvoyAccepts(t *testing.T) {
	t.Parallel()
	root, err := apiserver.Root()
	if err != nil {
		t.Fatal(err)
	}
	envoy, err := apiserver.Program(t.Context(), root, "envoy", "TEST_ASSET_ENVOY")
	if err != nil {
		t.Fatal(err)
	}
	const seeds = 16
	for seed := range uint64(seeds) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			b := &staticConfig{t: t, out: &bootstrapv3.Bootstrap_StaticResources{}}
			for _, name := range sortedCases() {
				tc := translateCases()[name]
				out, _ := Translate(ir.NewSnapshot(permitted(vary(tc.contents, seed))), testSource, clone(tc.resources))
				if validate(tc.resources) == nil {
					b.add(name, tc.resources, out)
				}
			}
			b.lists(seed)
			b.validate(envoy)
		})
	}
}

// TestEnvoyAcceptsExpressions lets Envoy validate the expressions that the index accepts, including
// the largest. The runtime flags are those of Envoy Gateway's bootstrap.
func TestEnvoyAcceptsExpressions(t *testing.T) {
	t.Parallel()
	root, err := apiserver.Root()
	if err != nil {
		t.Fatal(err)
	}
	envoy, err := apiserver.Program(t.Context(), root, "envoy", "TEST_ASSET_ENVOY")
	if err != nil {
		t.Fatal(err)
	}
	repeated := []string{".", "[^a]", `\pL`, `\p{Greek}`, "(?i:k)", "(?i:[a-z])", "(a|b|cd)", `[\x{80}-\x{10FFFF}]`, "é"}
	tried := []string{`\Qa.b\E`, `\Q/x`, "[[:word:]]+", `\_`, `(?P<n>a)`, `(?<n>a)`, `^/a$`, `\A/a\z`, `(?sU)a.*?`, `[^\x00-\x{10FFFF}]`, `\p{Letter}`, `\p{Kawi}`, `\C`, `(?i)ſ`, `\b\B`, `a{0}`, `a{2,1}`, `()`, `|`, `\07`, `\x{10FFFF}`}
	for _, unit := range repeated {
		for _, e := range []func(n int) string{
			func(n int) string { return fmt.Sprintf("%s{%d}", unit, n) },
			func(n int) string { return strings.Repeat(unit+"{100}", n) },
		} {
			// first is the first length that is too large, or longer than the value of a header may
			// be.
			first := sort.Search(1000, func(n int) bool {
				return n > 0 && (len(e(n)) > 4096 || ir.CheckExpression(ir.PathExpression("RegularExpression", e(n))) != nil)
			})
			tried = append(tried, e(max(first-1, 1)))
		}
	}
	for _, class := range "CLMNPSZ" {
		for _, sub := range "acdefiklmnopstu" {
			tried = append(tried, fmt.Sprintf(`\p{%c%c}`, class, sub))
		}
	}
	for name := range unicode.Scripts {
		tried = append(tried, `\p{`+name+`}`)
	}
	b := &staticConfig{t: t, out: &bootstrapv3.Bootstrap_StaticResources{}, runtime: map[string]any{"re2.max_program_size.error_level": 4294967295}}
	host := &routev3.VirtualHost{Name: "all", Domains: []string{"*"}}
	for _, e := range tried {
		expression := ir.PathExpression("RegularExpression", e)
		if ir.CheckExpression(expression) != nil {
			continue
		}
		ins, err := xds.NewInsertion(&ir.PolicyRule{Deny: true}, &ir.PolicyMatch{Match: ir.Match{PathType: "RegularExpression", Path: e}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := ins.Route(&routev3.Route{Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}}, Action: xds.Answer(200)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		host.Routes = append(host.Routes, r)
	}
	t.Logf("Envoy accepts %d of %d expressions", len(host.GetRoutes()), len(tried))
	b.add("expressions", Resources{}, Resources{Routes: []*routev3.RouteConfiguration{{Name: "all", VirtualHosts: []*routev3.VirtualHost{host}}}})
	b.validate(envoy)
}

// permitted reduces weights to those that Gateway API permits: Envoy adds weights in 32 bits.
func permitted(c ir.Contents) ir.Contents {
	const most = 1_000_000
	for _, r := range c.Routes {
		for _, rule := range r.Rules {
			for i := range rule.Backends {
				rule.Backends[i].Weight = min(rule.Backends[i].Weight, most)
			}
		}
	}
	return c
}

// A staticConfig holds the static resources of one Envoy.
type staticConfig struct {
	t    *testing.T
	out  *bootstrapv3.Bootstrap_StaticResources
	port uint32

	// runtime flags of the bootstrap.
	runtime map[string]any
}

// add adds the result of a case, with a prefix that makes its names unique.
func (b *staticConfig) add(name string, resources, out Resources) {
	b.t.Helper()
	defined := map[string]bool{}
	for _, c := range out.Clusters {
		defined[c.GetName()] = true
		// Envoy Gateway's own lists come from Envoy Gateway's configuration source.
		if c.GetEdsClusterConfig().GetEdsConfig().GetAds() != nil {
			c.EdsClusterConfig.EdsConfig = testSource.EDS("").GetEdsConfig()
		}
	}
	lacks := referenced(resources)
	lacks[invalidCluster] = true
	for _, n := range slices.Sorted(maps.Keys(lacks)) {
		if n != "" && !defined[n] {
			defined[n] = true
			out.Clusters = append(out.Clusters, &clusterv3.Cluster{Name: n})
		}
	}
	for _, c := range out.Routes {
		out.Listeners = append(out.Listeners, &listenerv3.Listener{Name: c.GetName(), Address: address(0), FilterChains: []*listenerv3.FilterChain{{
			Filters: []*listenerv3.Filter{{Name: "hcm", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: toAny(&hcmv3.HttpConnectionManager{
				StatPrefix:     "http",
				RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: c},
				HttpFilters:    []*hcmv3.HttpFilter{{Name: "router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: toAny(&routerv3.Router{})}}},
			})}}},
		}}})
	}
	for _, l := range out.Listeners {
		b.port++
		l.Name = fmt.Sprintf("%s %d", name, b.port)
		l.GetAddress().GetSocketAddress().PortSpecifier = address(0).GetSocketAddress().GetPortSpecifier()
		l.GetAddress().GetSocketAddress().Address = fmt.Sprintf("127.0.%d.%d", b.port>>8, b.port&0xff)
	}
	all := &bootstrapv3.Bootstrap_StaticResources{Clusters: out.Clusters, Listeners: out.Listeners}
	text, err := protojson.Marshal(all)
	if err != nil {
		b.t.Fatal(err)
	}
	// Several cases have clusters of the same name.
	pairs := make([]string, 0, 2*len(defined))
	for n := range defined {
		pairs = append(pairs, `"`+n+`"`, `"`+name+"|"+n+`"`)
	}
	all.Reset()
	if err := protojson.Unmarshal([]byte(strings.NewReplacer(pairs...).Replace(string(text))), all); err != nil {
		b.t.Fatal(err)
	}
	b.out.Clusters = append(b.out.Clusters, all.GetClusters()...)
	b.out.Listeners = append(b.out.Listeners, all.GetListeners()...)
}

// lists adds random endpoint lists, with all settings that policies support.
func (b *staticConfig) lists(seed uint64) {
	b.t.Helper()
	r := rand.New(rand.NewPCG(seed, seed))
	for i := range 50 {
		name := fmt.Sprintf("list %d", i)
		tuning := ir.Tuning{HealthPort: r.Uint32N(2) * 9090, PreferLocal: r.IntN(2) == 0}
		for _, z := range []string{"a", "b"}[:r.IntN(3)] {
			tuning.Zones = append(tuning.Zones, ir.ZoneWeight{Zone: z, Weight: []uint32{0, 1, 7, 1<<32 - 1}[r.IntN(4)]})
		}
		var ls []ir.Locality
		for range r.IntN(6) {
			l := ir.Locality{
				Name: string(rune('a' + r.IntN(3))), Zone: []string{"", "a", "b", "c"}[r.IntN(4)],
				Priority: r.Uint32N(3), Remote: r.IntN(4) == 0, Weight: []uint32{0, 1, 1000, 1 << 29}[r.IntN(4)],
			}
			for range r.IntN(4) {
				l.Endpoints = append(l.Endpoints, ir.Endpoint{Address: fmt.Sprintf("10.0.0.%d", r.IntN(9)), Port: 80, Health: ir.Health(r.IntN(5)), Weight: r.Uint32N(3)})
			}
			ls = append(ls, l)
		}
		c := egCluster(name)
		c.ClusterDiscoveryType, c.EdsClusterConfig = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}, nil
		c.LoadAssignment = xds.Assignment(name, ls, r.Uint32N(101), tuning)
		b.out.Clusters = append(b.out.Clusters, c)
	}
}

// validate runs Envoy's validation mode.
func (b *staticConfig) validate(envoy string) {
	b.t.Helper()
	flags, err := structpb.NewStruct(b.runtime)
	if err != nil {
		b.t.Fatal(err)
	}
	text, err := protojson.Marshal(&bootstrapv3.Bootstrap{StaticResources: b.out, LayeredRuntime: &bootstrapv3.LayeredRuntime{Layers: []*bootstrapv3.RuntimeLayer{{
		Name: "flags", LayerSpecifier: &bootstrapv3.RuntimeLayer_StaticLayer{StaticLayer: flags},
	}}}})
	if err != nil {
		b.t.Fatal(err)
	}
	file := filepath.Join(b.t.TempDir(), "bootstrap.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		b.t.Fatal(err)
	}
	output, err := exec.CommandContext(b.t.Context(), envoy, "--mode", "validate", "--service-node", "test", "--service-cluster", "test", "--log-level", "error", "--config-path", file).CombinedOutput()
	if err != nil {
		b.t.Errorf("Envoy refuses %d clusters and %d listeners: %v\n%s", len(b.out.GetClusters()), len(b.out.GetListeners()), err, output)
	}
}
