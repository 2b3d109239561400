//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// An object is decoded YAML.
type object = map[string]any

// An input holds the resources of one of Envoy Gateway's translator tests, by section.
type input struct {
	name     string
	sections map[string][]object

	// single are the sections that hold one object.
	single map[string]object

	features map[string]bool
}

// routeSections returns the sections with routes, by the kind of the routes.
func routeSections() map[string]string {
	return map[string]string{"httpRoutes": "HTTPRoute", "grpcRoutes": "GRPCRoute", "tlsRoutes": "TLSRoute", "tcpRoutes": "TCPRoute", "udpRoutes": "UDPRoute"}
}

// loadInputs reads the inputs of Envoy Gateway's module, with the objects that its tests add
// (TestTranslate in its internal/gatewayapi/translator_test.go).
func loadInputs(t *testing.T) []*input {
	t.Helper()
	dir, err := apiserver.ModuleDir(t.Context(), "github.com/envoyproxy/gateway")
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "internal", "gatewayapi", "testdata")
	files, err := filepath.Glob(filepath.Join(root, "*.in.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// The module has hundreds of inputs; a low count means that they have moved.
	if len(files) < 700 {
		t.Fatalf("found %d inputs of Envoy Gateway, want at least 700", len(files))
	}
	base := readInput(t, filepath.Join(root, "base", "base.yaml"))
	var ins []*input
	for _, f := range files {
		doc := readInput(t, f)
		doc.features = featuresOf(doc.name)
		doc.add("secrets", base.sections["secrets"]...)
		doc.addFixtures()
		doc.fillHealthChecks()
		ins = append(ins, doc)
	}
	return ins
}

// fillHealthChecks sets what the API server would: the defaults of health checks in the schemas of Envoy
// Gateway (api/v1alpha1/healthcheck_types.go). Its translator of xDS panics without a timeout and
// without a time of ejection, and the test of these inputs does not run it.
func (doc *input) fillHealthChecks() {
	for _, os := range doc.sections {
		for _, o := range os {
			fillHealthChecks(o)
		}
	}
	for _, o := range doc.single {
		fillHealthChecks(o)
	}
}

func fillHealthChecks(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			fillHealthChecks(item)
		}
	case object:
		check, _ := v["healthCheck"].(object)
		fillDefaults(check["active"], object{"timeout": "1s", "interval": "3s", "unhealthyThreshold": int64(3), "healthyThreshold": int64(1)})
		fillDefaults(check["passive"], object{
			"splitExternalLocalOriginErrors": false, "interval": "3s", "consecutiveLocalOriginFailures": int64(5), "consecutive5XxErrors": int64(5),
			"baseEjectionTime": "30s", "maxEjectionPercent": int64(10), "alwaysEjectOneEndpoint": false,
		})
		for _, value := range v {
			fillHealthChecks(value)
		}
	}
}

// fillDefaults sets the fields that an object lacks.
func fillDefaults(v any, defaults object) {
	o, ok := v.(object)
	if !ok {
		return
	}
	for field, d := range defaults {
		if o[field] == nil {
			o[field] = d
		}
	}
}

func readInput(t *testing.T, file string) *input {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]any{}
	if err := yaml.Unmarshal(b, &sections); err != nil {
		t.Fatalf("cannot read %s: %v", filepath.Base(file), err)
	}
	doc := &input{name: strings.TrimSuffix(filepath.Base(file), ".in.yaml"), sections: map[string][]object{}, single: map[string]object{}}
	for section, v := range sections {
		switch v := v.(type) {
		case []any:
			for _, o := range v {
				if o, ok := o.(object); ok {
					doc.add(sectionName(section), o)
				}
			}
		case object:
			doc.single[sectionName(section)] = v
		}
	}
	return doc
}

// sectionName returns the usual spelling of a section: some inputs use another case, which
// encoding/json accepts.
func sectionName(n string) string {
	for _, spelling := range []string{"httpRoutes", "configMaps", "endpointSlices", "envoyExtensionPolicies", "securityPolicies"} {
		if strings.EqualFold(n, spelling) {
			return spelling
		}
	}
	return n
}

// featuresOf returns Envoy Gateway's configuration for an input, which its test keeps in a table.
func featuresOf(name string) map[string]bool {
	enabled := func(names ...string) map[string]bool {
		out := map[string]bool{}
		for _, n := range names {
			out[n] = true
		}
		return out
	}
	switch name {
	case "envoypatchpolicy-invalid-feature-disabled", "backend-invalid-feature-disabled", "envoyextensionpolicy-with-extproc-with-backendtlspolicy-shared-secret":
		return enabled()
	case "gateway-namespace-mode-infra-httproute":
		return enabled("gatewayNamespace")
	case "backend-with-localhost-host-infra", "httproute-attaching-to-listener-with-backend-backendref-host-infra":
		return enabled("backends", "onHost")
	case "envoyextensionpolicy-lua-feature-disabled":
		return enabled("noLua")
	case "sds", "sds-invalid", "sds-listener", "sds-listener-invalid":
		return enabled("backends", "sds")
	case "envoyproxy-otel-backend-tls-per-resource-secret", "backend-system-truststore-per-resource-secret", "backend-system-truststore-btlsp-override-per-resource-secret":
		return enabled("backends", "ownSystemCA")
	case "envoyextensionpolicy-with-extproc-with-backendtlspolicy-per-resource-secret":
		return enabled("ownSystemCA")
	case "backend-system-truststore-shared-secret", "backend-system-truststore-btlsp-override-shared-secret":
		return enabled("backends")
	}
	return enabled("backends", "patchPolicies")
}

func (doc *input) add(section string, os ...object) {
	doc.sections[section] = append(doc.sections[section], os...)
}

// addFixtures adds the objects that all inputs rely on: Namespaces, and Services with their
// endpoints.
func (doc *input) addFixtures() {
	zones := strings.Contains(doc.name, "enable-zone-discovery")
	web := []servicePort{{"http", 8080, "TCP"}, {"https", 8443, "TCP"}, {"tcp", 8163, "TCP"}, {"udp", 8162, "UDP"}}
	for i := range 4 {
		s := service{namespace: "default", name: fmt.Sprintf("service-%d", i+1), address: "7.7.7.7", ports: web}
		if zones {
			s.zone = fmt.Sprintf("zone-%d", i+1)
		}
		doc.addService(s)
	}
	doc.addService(service{namespace: "default", name: "mirror-service", address: "7.6.5.4", ports: web[:1]})
	doc.addService(service{namespace: "monitoring", name: "otel-collector", address: "8.7.6.5", ports: []servicePort{{"grpc", 4317, "TCP"}, {"zipkin", 9411, "TCP"}}})
	for _, g := range doc.sections["gateways"] {
		ns, name := nameOf(g)
		s := service{namespace: "envoy-gateway-system", name: "envoy-" + ns + "-" + name, address: "7.6.5.4", zone: "zone1", ports: web[:1], labels: object{
			"gateway.envoyproxy.io/owning-gateway-name": name, "gateway.envoyproxy.io/owning-gateway-namespace": ns,
		}}
		if doc.features["gatewayNamespace"] {
			s.namespace, s.name = ns, name
		}
		doc.addService(s)
	}
	doc.addService(service{
		namespace: "envoy-gateway-system", name: "envoy-of-class", address: "7.6.5.4", zone: "zone1", ports: web[:1],
		labels: object{"gateway.envoyproxy.io/owning-gatewayclass": "envoy-gateway-class"},
	})
	for _, n := range []string{"envoy-gateway", "default"} {
		doc.add("namespaces", object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": n}})
	}
}

type servicePort struct {
	name     string
	port     int64
	protocol string
}

// A service and its only endpoint.
type service struct {
	namespace, name, address, zone string
	ports                          []servicePort
	labels                         object
}

func (doc *input) addService(s service) {
	var ports, targets []any
	for _, p := range s.ports {
		ports = append(ports, object{"name": p.name, "port": p.port, "targetPort": p.port, "protocol": p.protocol})
		targets = append(targets, object{"name": p.name, "port": p.port, "protocol": p.protocol})
	}
	spec, endpoint := object{"clusterIP": "1.1.1.1", "ports": ports}, object{"addresses": []any{s.address}, "conditions": object{"ready": true}}
	if s.zone != "" {
		spec["trafficDistribution"], endpoint["zone"] = "PreferClose", s.zone
	}
	labels := object{"kubernetes.io/service-name": s.name}
	maps.Copy(labels, s.labels)
	doc.add("services", object{"apiVersion": "v1", "kind": "Service", "metadata": object{"namespace": s.namespace, "name": s.name, "labels": s.labels}, "spec": spec})
	doc.add("endpointSlices", object{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": object{"namespace": s.namespace, "name": s.name + "-1", "labels": labels},
		"addressType": "IPv4", "ports": targets, "endpoints": []any{endpoint},
	})
}

// resources returns the input in the form that Envoy Gateway's translator reads.
func (doc *input) resources() object {
	out := object{}
	for _, s := range slices.Sorted(maps.Keys(doc.sections)) {
		out[s] = doc.sections[s]
	}
	for s, o := range doc.single {
		out[s] = o
	}
	return out
}

func nameOf(o object) (namespace, name string) {
	m, _ := o["metadata"].(object)
	namespace, _ = m["namespace"].(string)
	name, _ = m["name"].(string)
	return namespace, name
}
