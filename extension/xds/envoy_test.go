//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"bufio"
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// TestEnvoyAcceptsPolicies lets Envoy validate the routes of the corpus of FuzzPolicy: of its seeds,
// and of the inputs in testdata that fuzzing has found.
func TestEnvoyAcceptsPolicies(t *testing.T) {
	root, err := apiserver.Root()
	if err != nil {
		t.Fatal(err)
	}
	envoy, err := apiserver.Program(t.Context(), root, "envoy", "TEST_ASSET_ENVOY")
	if err != nil {
		t.Fatal(err)
	}
	all := hostiles()
	maps.Copy(all, foundHostiles(t))
	var routes []*routev3.Route
	for _, name := range slices.Sorted(maps.Keys(all)) {
		batch := all[name].routes(t)
		if len(batch) == 0 {
			continue
		}
		for _, r := range batch {
			r.Name = name
		}
		routes = append(routes, batch...)
	}
	if len(routes) < 5 {
		t.Fatalf("the corpus makes only %d routes", len(routes))
	}
	if output := envoyRefuses(t, envoy, routes); output == "" {
		return
	}
	for _, r := range routes {
		if output := envoyRefuses(t, envoy, []*routev3.Route{r}); output != "" {
			t.Errorf("Envoy refuses the route of %s, %v:\n%s", r.GetName(), r, output)
		}
	}
}

// foundHostiles returns the inputs in testdata, one quoted text in each line after the first.
func foundHostiles(t *testing.T) map[string]hostile {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "fuzz", "FuzzPolicy", "*"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]hostile{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
			if quoted, ok := strings.CutPrefix(s.Text(), "string("); ok {
				text, err := strconv.Unquote(strings.TrimSuffix(quoted, ")"))
				if err != nil {
					t.Fatal(err)
				}
				texts = append(texts, text)
			}
		}
		if len(texts) != 10 {
			t.Fatalf("%s has %d texts, want 10", f, len(texts))
		}
		out[filepath.Base(f)] = hostile{texts[0], texts[1], texts[2], texts[3], texts[4], texts[5], texts[6], texts[7], texts[8], texts[9]}
	}
	return out
}

// envoyRefuses returns why Envoy refuses routes, and nothing if it accepts them.
func envoyRefuses(t *testing.T, envoy string, routes []*routev3.Route) string {
	t.Helper()
	router, err := packAny(&routerv3.Router{})
	if err != nil {
		t.Fatal(err)
	}
	manager, err := packAny(&hcmv3.HttpConnectionManager{
		StatPrefix:  "http",
		HttpFilters: []*hcmv3.HttpFilter{{Name: "router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: router}}},
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
			Name: "all", VirtualHosts: []*routev3.VirtualHost{{Name: "all", Domains: []string{"*"}, Routes: routes}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	// The runtime flag is that of Envoy Gateway's bootstrap.
	flags, err := structpb.NewStruct(map[string]any{"re2.max_program_size.error_level": 4294967295})
	if err != nil {
		t.Fatal(err)
	}
	text, err := protojson.Marshal(&bootstrapv3.Bootstrap{
		StaticResources: &bootstrapv3.Bootstrap_StaticResources{
			Clusters: []*clusterv3.Cluster{{Name: "c"}},
			Listeners: []*listenerv3.Listener{{
				Name: "all", Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{Address: "127.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{}}}},
				FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{Name: "hcm", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: manager}}}}},
			}},
		},
		LayeredRuntime: &bootstrapv3.LayeredRuntime{Layers: []*bootstrapv3.RuntimeLayer{{Name: "flags", LayerSpecifier: &bootstrapv3.RuntimeLayer_StaticLayer{StaticLayer: flags}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bootstrap.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	output, err := exec.CommandContext(t.Context(), envoy, "--mode", "validate", "--service-node", "test", "--service-cluster", "test", "--log-level", "error", "--config-path", file).CombinedOutput()
	if err == nil {
		return ""
	}
	return err.Error() + ": " + string(output)
}
