// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pb "github.com/envoyproxy/gateway/proto/extension"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// goldenFolders are the folders of Envoy Gateway's module with the output of its translator.
var goldenFolders = []string{"xds-ir", "extension-xds-ir"}

// TestGoldens passes all goldens of Envoy Gateway's tests to the hook. No rule names a Tailscale
// backend, so the hook must return them byte for byte. The snapshot has the rules, with Services as
// backends.
func TestGoldens(t *testing.T) {
	root := goldens(t)
	n := 0
	for _, folder := range goldenFolders {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.clusters.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			base := strings.TrimSuffix(f, ".clusters.yaml")
			n++
			t.Run(folder+"/"+filepath.Base(base), func(t *testing.T) { echoes(t, goldenRequest(t, base)) })
		}
	}
	// The module has hundreds of goldens; a low count means that they have moved.
	if n < 200 {
		t.Errorf("read %d goldens of Envoy Gateway, want 200 at least", n)
	}
}

func echoes(t *testing.T, req *pb.PostTranslateModifyRequest) {
	t.Helper()
	want := requestBytes(t, req)
	s := NewServer(fixed{ir.NewSnapshot(ir.Contents{
		Routes: plainRoutes(req.GetRoutes()),
		// Another Gateway's listener adds identity headers.
		IdentityListeners: map[types.NamespacedName][]ir.IdentityListener{nn("elsewhere", "gateway-1"): {{Name: "listener-1", Port: 80}}},
	})}, testSources)
	rsp, err := s.PostTranslateModify(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	got := requestBytes(t, &pb.PostTranslateModifyRequest{
		Clusters: rsp.GetClusters(), Secrets: rsp.GetSecrets(), Listeners: rsp.GetListeners(), Routes: rsp.GetRoutes(),
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("PostTranslateModify(...): -want, +got:\n%s", diff)
	}
}

// fixed is a snapshot that stays the newest.
type fixed struct{ s *ir.Snapshot }

func (f fixed) Snapshot() *ir.Snapshot { return f.s }

// plainRoutes returns the routes that a message names, each with a Service as backend.
func plainRoutes(configs []*routev3.RouteConfiguration) []*ir.Route {
	var out []*ir.Route
	for _, c := range configs {
		for _, v := range c.GetVirtualHosts() {
			for _, r := range v.GetRoutes() {
				if k, _, ok := parseRule(r.GetName()); ok {
					out = append(out, &ir.Route{Key: k.route, Rules: []ir.Rule{rule(svc(0, 1))}})
				}
			}
		}
	}
	return out
}

// goldens returns the folder with Envoy Gateway's goldens. Its module is in go.mod, so the folder
// exists.
func goldens(t *testing.T) string {
	t.Helper()
	dir, err := apiserver.ModuleDir(t.Context(), "github.com/envoyproxy/gateway")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "internal", "xds", "translator", "testdata", "out")
}

func goldenRequest(t *testing.T, base string) *pb.PostTranslateModifyRequest {
	t.Helper()
	return &pb.PostTranslateModifyRequest{
		Clusters:  readAll(t, base+".clusters.yaml", func() *clusterv3.Cluster { return &clusterv3.Cluster{} }),
		Secrets:   readAll(t, base+".secrets.yaml", func() *tlsv3.Secret { return &tlsv3.Secret{} }),
		Listeners: readAll(t, base+".listeners.yaml", func() *listenerv3.Listener { return &listenerv3.Listener{} }),
		Routes:    readAll(t, base+".routes.yaml", func() *routev3.RouteConfiguration { return &routev3.RouteConfiguration{} }),
	}
}

func readAll[T proto.Message](t *testing.T, file string, empty func() T) []T {
	t.Helper()
	b, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var items []json.RawMessage
	if err := yaml.Unmarshal(b, &items); err != nil {
		t.Fatal(err)
	}
	out := make([]T, 0, len(items))
	for _, i := range items {
		m := empty()
		if err := protojson.Unmarshal(i, m); err != nil {
			t.Fatalf("cannot read %s: %v", filepath.Base(file), err)
		}
		out = append(out, m)
	}
	return out
}

func requestBytes(t *testing.T, req *pb.PostTranslateModifyRequest) []string {
	t.Helper()
	return append(marshal(t, Resources{Clusters: req.GetClusters(), Listeners: req.GetListeners(), Routes: req.GetRoutes()}), marshalAll(t, req.GetSecrets())...)
}
