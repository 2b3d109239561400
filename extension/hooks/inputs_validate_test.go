//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pb "github.com/envoyproxy/gateway/proto/extension"
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// A validator lets Envoy validate answers, many at once. Each answer is the whole configuration of
// an Envoy, so its clusters and listeners get unique names.
type validator struct {
	t     *testing.T
	envoy string

	// certs is the folder with the certificates that Envoy Gateway makes Envoys read.
	certs string

	cases []validated
	seen  map[string]bool

	// withoutFilters are the inputs whose filters Envoy refuses in the message: they name missing
	// files, have mistakes that Envoy Gateway does not detect, or crash Envoy in this mode.
	withoutFilters map[string]bool

	// validated counts answers, and refused those inputs that Envoy refuses in the message even
	// without filters.
	validated, refused int
}

type validated struct {
	input, name     string
	message, answer *pb.PostTranslateModifyRequest
}

// add adds an answer, unless it equals the message or another answer.
func (j *validator) add(input, name string, message, answer *pb.PostTranslateModifyRequest) {
	b := encodeRequest(j.t, answer)
	if j.seen == nil {
		j.seen = map[string]bool{}
	}
	if string(b) == string(encodeRequest(j.t, message)) || j.seen[string(b)] {
		return
	}
	j.seen[string(b)] = true
	j.cases = append(j.cases, validated{input, name, message, answer})
}

// validate validates the added answers, and finds the first one that Envoy refuses.
func (j *validator) validate() {
	j.t.Helper()
	j.validated += len(j.cases)
	j.part(j.cases)
	j.cases, j.seen = nil, nil
}

func (j *validator) part(cases []validated) {
	j.t.Helper()
	if len(cases) == 0 {
		return
	}
	var rs []*pb.PostTranslateModifyRequest
	for _, c := range cases {
		rs = append(rs, j.form(c.input, c.answer))
	}
	output, err := j.runEnvoy(rs...)
	switch {
	case err == nil:
		return
	case len(cases) > 1:
		j.part(cases[:len(cases)/2])
		j.part(cases[len(cases)/2:])
		return
	}
	c := cases[0]
	baseline, err := j.runEnvoy(j.form(c.input, c.message))
	switch {
	case err == nil:
		j.t.Errorf("%s: Envoy refuses the answer, and accepts the message: %s", c.name, output)
	case j.withoutFilters[c.input]:
		j.refused++
	default:
		j.t.Logf("%s: Envoy refuses the message: %s", c.name, firstLine(baseline))
		j.withoutFilters[c.input] = true
		j.part(cases)
	}
}

// form returns a message of an input, without filters if Envoy refuses these.
func (j *validator) form(input string, r *pb.PostTranslateModifyRequest) *pb.PostTranslateModifyRequest {
	if !j.withoutFilters[input] {
		return r
	}
	out := &pb.PostTranslateModifyRequest{Clusters: r.GetClusters(), Routes: r.GetRoutes()}
	for _, c := range r.GetRoutes() {
		c = proto.CloneOf(c)
		c.TypedPerFilterConfig = nil
		for _, v := range c.GetVirtualHosts() {
			v.TypedPerFilterConfig = nil
			for _, r := range v.GetRoutes() {
				r.TypedPerFilterConfig = nil
			}
		}
		out.Listeners = append(out.Listeners, &listenerv3.Listener{Name: c.GetName(), Address: address(0), FilterChains: []*listenerv3.FilterChain{{
			Filters: []*listenerv3.Filter{{Name: "hcm", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: toAny(&hcmv3.HttpConnectionManager{
				StatPrefix:     "http",
				RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: c},
				HttpFilters:    []*hcmv3.HttpFilter{{Name: "router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: toAny(&routerv3.Router{})}}},
			})}}},
		}}})
	}
	return out
}

func firstLine(s string) string {
	_, s, _ = strings.Cut(s, "bootstrap.pb': ")
	s, _, _ = strings.Cut(s, "\n")
	return cmp.Or(s, "Envoy crashes")
}

// newValidator returns a validator with a certificate for Envoys.
func newValidator(t *testing.T, envoy string) *validator {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	cert, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	j := &validator{t: t, envoy: envoy, certs: t.TempDir(), withoutFilters: map[string]bool{}}
	for name, b := range map[string]*pem.Block{
		"ca.crt": {Type: "CERTIFICATE", Bytes: cert}, "tls.crt": {Type: "CERTIFICATE", Bytes: cert}, "tls.key": {Type: "PRIVATE KEY", Bytes: der},
	} {
		if err := os.WriteFile(filepath.Join(j.certs, name), pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

// runEnvoy validates configurations together.
func (j *validator) runEnvoy(rs ...*pb.PostTranslateModifyRequest) (string, error) {
	j.t.Helper()
	flags, err := structpb.NewStruct(map[string]any{"re2.max_program_size.error_level": 4294967295})
	if err != nil {
		j.t.Fatal(err)
	}
	b := &bootstrapv3.Bootstrap{
		StaticResources: &bootstrapv3.Bootstrap_StaticResources{Clusters: []*clusterv3.Cluster{{Name: "ads"}}},
		DynamicResources: &bootstrapv3.Bootstrap_DynamicResources{AdsConfig: &corev3.ApiConfigSource{
			ApiType: corev3.ApiConfigSource_DELTA_GRPC, TransportApiVersion: corev3.ApiVersion_V3,
			GrpcServices: []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: "ads"}}}},
		}},
		LayeredRuntime: &bootstrapv3.LayeredRuntime{Layers: []*bootstrapv3.RuntimeLayer{{
			Name: "flags", LayerSpecifier: &bootstrapv3.RuntimeLayer_StaticLayer{StaticLayer: flags},
		}}},
	}
	port := uint32(0)
	for i, r := range rs {
		j.addConfig(b.GetStaticResources(), proto.CloneOf(r), i, &port)
	}
	file := filepath.Join(j.t.TempDir(), "bootstrap.pb")
	raw, err := proto.Marshal(b)
	if err != nil {
		j.t.Fatal(err)
	}
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		j.t.Fatal(err)
	}
	output, err := exec.CommandContext(j.t.Context(), j.envoy, "--mode", "validate", "--service-node", "test", "--service-cluster", "test", "--log-level", "error", "--config-path", file).CombinedOutput()
	return string(output), err
}

// addConfig adds a configuration to the static resources.
func (j *validator) addConfig(resources *bootstrapv3.Bootstrap_StaticResources, r *pb.PostTranslateModifyRequest, i int, port *uint32) {
	j.t.Helper()
	configs := map[string]*routev3.RouteConfiguration{}
	for _, c := range r.GetRoutes() {
		configs[c.GetName()] = c
	}
	names := map[string]string{}
	for _, c := range r.GetClusters() {
		names[c.GetName()] = fmt.Sprintf("%d|%s", i, c.GetName())
	}
	// Requests may go to clusters that do not exist, and get the answer 500.
	for n := range (&inputCheck{T: j.t}).sends(r) {
		if n != "" && names[n] == "" {
			names[n] = fmt.Sprintf("%d|%s", i, n)
			r.Clusters = append(r.Clusters, &clusterv3.Cluster{Name: n})
		}
	}
	for _, l := range r.GetListeners() {
		*port++
		l.Name = fmt.Sprintf("%d|%s", i, l.GetName())
		for _, f := range append([]*listenerv3.FilterChain{l.GetDefaultFilterChain()}, l.GetFilterChains()...) {
			j.inline(f, configs)
		}
		if a := l.GetAddress().GetSocketAddress(); a != nil {
			a.Address, a.PortSpecifier = fmt.Sprintf("127.0.%d.%d", *port>>8, *port&0xff), &corev3.SocketAddress_PortValue{}
		}
		l.AdditionalAddresses = nil
	}
	rename(j.t, r.ProtoReflect(), func(s string) string {
		if strings.HasPrefix(s, "/certs/") {
			return filepath.Join(j.certs, filepath.Base(s))
		}
		return cmp.Or(names[s], s)
	})
	resources.Clusters = append(resources.Clusters, r.GetClusters()...)
	resources.Listeners = append(resources.Listeners, r.GetListeners()...)
}

// inline replaces the RDS references of connection managers by their routes.
func (j *validator) inline(c *listenerv3.FilterChain, configs map[string]*routev3.RouteConfiguration) {
	j.t.Helper()
	for _, f := range c.GetFilters() {
		m := &hcmv3.HttpConnectionManager{}
		if !f.GetTypedConfig().MessageIs(m) {
			continue
		}
		if err := f.GetTypedConfig().UnmarshalTo(m); err != nil {
			j.t.Fatal(err)
		}
		if config := configs[m.GetRds().GetRouteConfigName()]; config != nil {
			m.RouteSpecifier = &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: config}
			f.ConfigType = &listenerv3.Filter_TypedConfig{TypedConfig: toAny(m)}
		}
	}
}
