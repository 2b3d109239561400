// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleendpoints

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/crossplane/function-sdk-go/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleendpoints/discovery"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleendpoints/targets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose/composetest"
	"github.com/tailscale-gateway/tailscale-gateway/internal/egress"
)

// maxMessage is the largest message that Crossplane and the functions accept.
const maxMessage = 4 << 20

// maxObject is the largest object that etcd accepts by default, minus a tenth as a reserve.
const maxObject = (3 << 19) * 9 / 10

// manifests is a TailscaleEndpoints that discovers everything in the tailnet.
const manifests = `
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleEndpoints
metadata: {name: web, namespace: shop}
spec:
  tailnet: example
  proxy: {replicas: 2, connectionType: egress}
  ports: [{name: http, port: 80, protocol: HTTP}]
  autoDiscovery: {names: ["*"]}
---
apiVersion: tailnet.gateway.tailscale.com/v1alpha1
kind: ClusterProviderConfig
metadata: {name: example}
spec: {tags: [tag:k8s]}
`

// A measured function records the largest messages that it received and returned.
type measured struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	fn            fnv1.FunctionRunnerServiceServer
	took, gave, n int
}

func (m *measured) RunFunction(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp, err := m.fn.RunFunction(ctx, req)
	m.n++
	m.took, m.gave = max(m.took, proto.Size(req)), max(m.gave, proto.Size(rsp))
	return rsp, err
}

// observedChild returns an object as Crossplane observes it under a resource name.
func observedChild(t *testing.T, name string, o any) map[string]any {
	t.Helper()
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	return named(t, name, m)
}

func named(t *testing.T, name string, m map[string]any) map[string]any {
	t.Helper()
	about, ok := m["metadata"].(map[string]any)
	if !ok {
		t.Fatalf("%v has no metadata", m)
	}
	about["annotations"] = map[string]any{"crossplane.io/composition-resource-name": name}
	return m
}

// stored returns a Service as the API server stores it.
func stored(t *testing.T, name string, r *fnv1.Resource) map[string]any {
	t.Helper()
	m := named(t, name, r.GetResource().AsMap())
	about, ok := m["metadata"].(map[string]any)
	if !ok {
		t.Fatalf("%v has no metadata", m)
	}
	about["uid"], about["resourceVersion"], about["creationTimestamp"] = "11111111-1111-1111-1111-111111111111", "123456", "2026-01-01T00:00:00Z"
	about["ownerReferences"] = []any{map[string]any{
		"apiVersion": "gateway.tailscale.com/v1alpha1", "kind": "TailscaleEndpoints", "name": "web", "uid": "11111111-1111-1111-1111-111111111111",
		"controller": true, "blockOwnerDeletion": true,
	}}
	fields := map[string]any{}
	for _, f := range strings.Fields("metadata annotations crossplane.io/composition-resource-name labels app.kubernetes.io/component app.kubernetes.io/instance app.kubernetes.io/managed-by app.kubernetes.io/name gateway.tailscale.com/endpoint gateway.tailscale.com/endpoints gateway.tailscale.com/tailnet ownerReferences uid spec ports appProtocol name port protocol targetPort selector type") {
		fields["f:"+f] = map[string]any{}
	}
	about["managedFields"] = []any{map[string]any{
		"apiVersion": "v1", "fieldsType": "FieldsV1", "manager": "apiextensions.crossplane.io/composed/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		"operation": "Apply", "time": "2026-01-01T00:00:00Z", "fieldsV1": fields,
	}}
	m["status"] = map[string]any{"loadBalancer": map[string]any{}}
	return m
}

// TestManyDiscovered verifies that the maximum number of a Discovery's entries fits into the
// messages between Crossplane and the function, and that the response expires while Crossplane may
// miss changes of so many children.
func TestManyDiscovered(t *testing.T) {
	var objs []map[string]any
	for _, doc := range strings.Split(manifests, "\n---\n") {
		m := map[string]any{}
		if err := yaml.Unmarshal([]byte(doc), &m); err != nil {
			t.Fatal(err)
		}
		objs = append(objs, m)
	}
	d := &tailnetv1alpha1.Discovery{TypeMeta: metav1.TypeMeta{APIVersion: tailnetv1alpha1.SchemeGroupVersion.String(), Kind: "Discovery"}}
	d.SetConditions(xpv2.Available())
	ms := &tailnetv1alpha1.MachineSet{TypeMeta: metav1.TypeMeta{APIVersion: tailnetv1alpha1.SchemeGroupVersion.String(), Kind: "MachineSet"}}
	ms.Status.Machines = []tailnetv1alpha1.MachineSummary{{Name: "web-egress-0", Ready: true}, {Name: "web-egress-1", Ready: true}}
	for i := range discovery.MaxResults {
		name := fmt.Sprintf("a-service-with-a-long-name-%03d", i)
		d.Status.AtProvider.Discovered = append(d.Status.AtProvider.Discovered, tailnetv1alpha1.Discovered{
			Source: tailnetv1alpha1.DiscoverServices, Name: "svc:" + name, FQDN: name + ".tail1234.ts.net", Health: "Unknown",
			Addresses: []string{fmt.Sprintf("100.64.%d.%d", i/256, i%256), fmt.Sprintf("fd7a:115c:a1e0::%x", i+1)},
			Ports:     []string{"tcp:80", "tcp:443"}, Tags: []string{"tag:k8s", "tag:a-team-with-a-name"},
		})
		ms.Status.Egress = append(ms.Status.Egress, tailnetv1alpha1.MachineSetEgressPort{
			Port: int32(10000 + i), Protocol: "TCP", Target: "endpoint/svc-" + name + "/80", Message: "No device of the tailnet has 100.64.100.100",
		})
	}
	objs = append(objs, observedChild(t, nameDiscovery, d), observedChild(t, "machineset-egress", ms))

	fn := &measured{fn: &Function{log: logging.NewNopLogger()}}
	first := composetest.Settle(t, fn, objs...)
	var services []map[string]any
	for name, r := range first.GetDesired().GetResources() {
		if strings.HasPrefix(name, nameTargetService+"-") {
			services = append(services, stored(t, name, r))
		}
	}
	if len(services) != discovery.MaxResults {
		t.Fatalf("%d Services for %d discovered entries", len(services), discovery.MaxResults)
	}
	if first.GetMeta().GetTtl().AsDuration() == 0 {
		t.Error("Crossplane should call again: it may miss changes of that many children")
	}

	objs[0]["status"] = first.GetDesired().GetComposite().GetResource().AsMap()["status"]
	second := composetest.Settle(t, fn, append(objs, services...)...)
	if ttl := second.GetMeta().GetTtl().AsDuration(); ttl != 0 {
		t.Errorf("the response expires after %s although no child is new", ttl)
	}
	objs[0]["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Responsive", "status": "False", "reason": "WatchCircuitOpen", "message": "Too many"}}}
	if open := composetest.Settle(t, fn, append(objs, services...)...); open.GetMeta().GetTtl().AsDuration() == 0 {
		t.Error("Crossplane should call again while its circuit breaker is open")
	}
	if most := maxMessage * 3 / 4; fn.took > most || fn.gave > most {
		t.Errorf("requests of %d bytes and responses of %d, of which Crossplane accepts %d: want a reserve of a quarter", fn.took, fn.gave, maxMessage)
	}
	t.Logf("%d calls, requests of %d bytes and responses of %d at most", fn.n, fn.took, fn.gave)

	for _, want := range []string{"web-svc-a-service-with-a-long-name-000", "web-svc-a-service-with-a-long-name-511"} {
		if !strings.Contains(first.String(), want) {
			t.Errorf("there is no Service %s", want)
		}
	}
}

// TestManyTargets verifies that the maximum number of targets, with names of the maximum length,
// fits into the messages between Crossplane and the function, and into objects.
func TestManyTargets(t *testing.T) {
	endpoints := make([]any, 128)
	for i := range endpoints {
		name := fmt.Sprintf("%s-%03d", strings.Repeat("e", 36), i)
		endpoints[i] = map[string]any{"name": name, "tailscaleFQDN": name + "." + strings.Repeat(strings.Repeat("d", 50)+".", 3) + "ts.net", "tags": []any{"tag:a-team-with-a-name"}}
	}
	ports := make([]any, 16)
	for i := range ports {
		ports[i] = map[string]any{"name": fmt.Sprintf("port-with-a-n%02d", i), "port": int64(60000 + i), "protocol": "HTTP"}
	}
	objs := []map[string]any{{
		"apiVersion": "gateway.tailscale.com/v1alpha1", "kind": "TailscaleEndpoints", "metadata": map[string]any{"name": "web", "namespace": "shop"},
		"spec": map[string]any{"tailnet": "example", "proxy": map[string]any{"replicas": int64(8), "connectionType": "egress"}, "ports": ports, "endpoints": endpoints},
	}, {
		"apiVersion": "tailnet.gateway.tailscale.com/v1alpha1", "kind": "ClusterProviderConfig", "metadata": map[string]any{"name": "example"},
		"spec": map[string]any{"tags": []any{"tag:k8s"}},
	}}
	fn := &measured{fn: &Function{log: logging.NewNopLogger()}}
	first := composetest.Settle(t, fn, objs...)

	ms := &tailnetv1alpha1.MachineSet{TypeMeta: metav1.TypeMeta{APIVersion: tailnetv1alpha1.SchemeGroupVersion.String(), Kind: "MachineSet"}}
	for i := range 8 {
		ms.Status.Machines = append(ms.Status.Machines, tailnetv1alpha1.MachineSummary{Name: fmt.Sprintf("web-egress-%d", i), Ready: true, NodeID: "n", Online: true})
	}
	config, err := egress.Decode(first.GetDesired().GetResources()["configmap-egress"].GetResource().AsMap()["data"].(map[string]any)[egress.ConfigMapKey].(string))
	if err != nil {
		t.Fatal(err)
	}
	if len(config.Targets) != targets.Max {
		t.Fatalf("want %d targets, got %d", targets.Max, len(config.Targets))
	}
	for _, c := range config.Targets {
		ms.Status.Egress = append(ms.Status.Egress, tailnetv1alpha1.MachineSetEgressPort{Port: c.ProxyPort, Protocol: c.Protocol, Target: c.Key, Message: strings.Repeat("m", 128)})
	}
	objs = append(objs, observedChild(t, "machineset-egress", ms))
	for name, r := range first.GetDesired().GetResources() {
		if name != "machineset-egress" {
			objs = append(objs, stored(t, name, r))
		}
	}
	objs[0]["status"] = first.GetDesired().GetComposite().GetResource().AsMap()["status"]
	second := composetest.Settle(t, fn, objs...)
	objs[0]["status"] = second.GetDesired().GetComposite().GetResource().AsMap()["status"]
	composetest.Settle(t, fn, objs...)
	t.Logf("%d calls, requests of %d bytes and responses of %d at most", fn.n, fn.took, fn.gave)
	if fn.took > maxMessage || fn.gave > maxMessage {
		t.Errorf("requests of %d bytes and responses of %d, of which Crossplane accepts %d", fn.took, fn.gave, maxMessage)
	}
	objects := map[string]any{"the composite": objs[0]}
	for name, r := range second.GetDesired().GetResources() {
		objects[name] = r.GetResource().AsMap()
	}
	for name, o := range objects {
		b, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > 200<<10 {
			t.Logf("%s: %d bytes", name, len(b))
		}
		if len(b) > maxObject {
			t.Errorf("%s has %d bytes, of which etcd accepts %d", name, len(b), maxObject)
		}
	}
}
