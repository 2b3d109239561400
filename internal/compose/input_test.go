// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/resource"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

func inputSchema(t *testing.T) *InputSchema {
	t.Helper()
	return NewInputSchema("TailscaleEndpoints")
}

func parse(t *testing.T, y string) *structpb.Struct {
	t.Helper()
	m := map[string]any{}
	if err := yaml.Unmarshal([]byte(y), &m); err != nil {
		t.Fatal(err)
	}
	s, err := structpb.NewStruct(m)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// parseInput returns an input with the fields that every input of endpoints starts with.
func parseInput(t *testing.T, y string) *structpb.Struct {
	t.Helper()
	s := parse(t, y)
	s.Fields["apiVersion"] = structpb.NewStringValue("fn.gateway.tailscale.com/v1alpha1")
	s.Fields["kind"] = structpb.NewStringValue("TailscaleEndpointsInput")
	return s
}

const app = `
apiVersion: platform.example.org/v1
kind: App
metadata: {name: shop, namespace: default, labels: {team: a, crossplane.io/composite: shop}}
spec: {replicas: 3, spread: [a, b], tailnet: {other: type}}
status: {edge: {totalEndpoints: 1}}
`

func TestObject(t *testing.T) {
	cases := map[string]struct {
		reason string
		input  string
		want   gatewayv1alpha1.TailscaleEndpoints
		err    string
	}{
		"Defaults": {
			reason: "An input gets the same defaults as an object, whatever the composite's spec is",
			input:  `spec: {tailnet: example}`,
			want: gatewayv1alpha1.TailscaleEndpoints{
				ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "default", Labels: map[string]string{"team": "a"}},
				Spec: gatewayv1alpha1.TailscaleEndpointsSpec{
					Tailnet: "example",
					Proxy: gatewayv1alpha1.Proxy{
						Replicas: ptr.To[int32](2),
						ProxyPods: gatewayv1alpha1.ProxyPods{PodSettings: tailnetv1alpha1.PodSettings{
							Networking: tailnetv1alpha1.NetworkingUserspace,
							Forwarding: tailnetv1alpha1.ForwardingInitContainer,
						}},
					},
				},
			},
		},
		"Patches": {
			reason: "Fields that the composite lacks are not copied; the others are, with their type",
			input: `
name: edge
labels: {team: b}
patches:
- {fromFieldPath: spec.replicas, toFieldPath: spec.proxy.replicas}
- {fromFieldPath: spec.absent, toFieldPath: spec.proxy.networking}
- {fromFieldPath: "spec.spread[1]", toFieldPath: "spec.tags[0]", format: "tag:x-%s"}
- {fromFieldPath: metadata.name, toFieldPath: "labels[example.org/app]"}
spec: {tailnet: example}`,
			want: gatewayv1alpha1.TailscaleEndpoints{
				ObjectMeta: metav1.ObjectMeta{Name: "shop-edge", Namespace: "default", Labels: map[string]string{"team": "b", "example.org/app": "shop"}},
				Spec: gatewayv1alpha1.TailscaleEndpointsSpec{
					Tailnet: "example",
					Tags:    []gatewayv1alpha1.Tag{"tag:x-b"},
					Proxy: gatewayv1alpha1.Proxy{
						Replicas: ptr.To[int32](3),
						ProxyPods: gatewayv1alpha1.ProxyPods{PodSettings: tailnetv1alpha1.PodSettings{
							Networking: tailnetv1alpha1.NetworkingUserspace,
							Forwarding: tailnetv1alpha1.ForwardingInitContainer,
						}},
					},
				},
			},
		},
		"Required": {
			reason: "A required field is missing",
			input:  `spec: {endpoints: [{tailscaleIP: 100.64.0.1}]}`,
			err:    `cannot use the input of this step: spec.endpoints[0].name: Required value`,
		},
		"Misspelt": {
			reason: "An unknown field would be ignored",
			input:  `{zone: edge, spec: {tailnet: example, proxies: {}}}`,
			err:    `cannot use the input of this step: spec.proxies: Unknown field; zone: Unknown field`,
		},
		"Rule": {
			reason: "Rules apply like for an object",
			input:  `spec: {tailnet: example, tags: [k8s]}`,
			err:    `cannot use the input of this step: spec.tags[0]: Invalid value: "k8s": must be tag: followed by a letter, then letters, digits and dashes`,
		},
		"SetTwice": {
			reason: "A set has no duplicates",
			input:  `spec: {tailnet: example, tags: ["tag:a", "tag:a"]}`,
			err:    `cannot use the input of this step: spec.tags[1]: Duplicate value: "tag:a"`,
		},
		"PatchedType": {
			reason: "A copied value must be of the field's type",
			input:  `{patches: [{fromFieldPath: spec.spread, toFieldPath: spec.proxy.replicas}], spec: {tailnet: example}}`,
			err:    `cannot use the input of this step: spec.proxy.replicas: Invalid value: "array": spec.proxy.replicas in body must be of type integer: "array"`,
		},
		"PatchOfTheStep": {
			reason: "A step has the same name for every composite",
			input:  `{patches: [{fromFieldPath: metadata.name, toFieldPath: name}], spec: {tailnet: example}}`,
			err:    `cannot use the input of this step: patches[0].toFieldPath: Invalid value: "name": patches[0].toFieldPath in body should match '^(spec|labels)[.\[]'`,
		},
		"Conditions": {
			reason: "Crossplane writes these fields",
			input:  `{statusFieldPath: status.conditions, spec: {tailnet: example}}`,
			err:    `cannot use the input of this step: statusFieldPath: Invalid value: "status.conditions": is a field that Crossplane writes; use another field`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := NewRun(&fnv1.RunFunctionRequest{
				Input:    parseInput(t, tc.input),
				Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: parse(t, app)}},
			})
			got := gatewayv1alpha1.TailscaleEndpoints{}
			err := r.Object(inputSchema(t), &got)
			msg := ""
			if err != nil {
				msg = err.Error()
			}
			if diff := cmp.Diff(tc.err, msg); diff != "" {
				t.Errorf("%s: -want error, +got error:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestObjectOfAnotherKind(t *testing.T) {
	r := NewRun(&fnv1.RunFunctionRequest{
		Input:    parse(t, "apiVersion: fn.gateway.tailscale.com/v1alpha1\nkind: TailscaleServicesInput\nspec: {}"),
		Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: parse(t, app)}},
	})
	want := "cannot use the input of this step: want apiVersion fn.gateway.tailscale.com/v1alpha1 and kind TailscaleEndpointsInput, got fn.gateway.tailscale.com/v1alpha1 and TailscaleServicesInput"
	if err := r.Object(inputSchema(t), &gatewayv1alpha1.TailscaleEndpoints{}); err == nil || err.Error() != want {
		t.Errorf("an input of another function is refused: want %q, got %v", want, err)
	}
}

// newStepRun returns a run of a step with this input after others.
func newStepRun(t *testing.T, input string, desired *fnv1.State) *Run {
	t.Helper()
	cm := &fnv1.Resource{Resource: parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)}
	r := NewRun(&fnv1.RunFunctionRequest{
		Input:   parseInput(t, input),
		Desired: desired,
		Observed: &fnv1.State{
			Composite: &fnv1.Resource{Resource: parse(t, app)},
			Resources: map[string]*fnv1.Resource{
				"theirs":                    cm,
				"tailscaleendpoints.a":      cm,
				"tailscaleendpoints-edge.a": cm,
			},
		},
	})
	if err := r.Object(inputSchema(t), &gatewayv1alpha1.TailscaleEndpoints{}); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSteps(t *testing.T) {
	cases := map[string]struct {
		reason    string
		input     string
		resource  string
		condition string
	}{
		"Plain": {
			reason:    "A step without a name has plain condition types",
			input:     "spec: {tailnet: example}",
			resource:  "tailscaleendpoints.a",
			condition: "MachinesReady",
		},
		"Named": {
			reason:    "Resources and conditions of a step with a name contain the name",
			input:     "{name: edge, spec: {tailnet: example}}",
			resource:  "tailscaleendpoints-edge.a",
			condition: "edge/MachinesReady",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newStepRun(t, tc.input, nil)
			r.reply.setCondition(Condition{Type: "MachinesReady", Status: True, Reason: "Yes", Message: "Yes"})
			if err := r.reply.keepExisting(); err != nil {
				t.Fatal(err)
			}
			rsp := r.Response()
			want := map[string]*fnv1.Resource{tc.resource: {
				Ready:    fnv1.Ready_READY_FALSE,
				Resource: resource.MustStructJSON(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}`),
			}}
			if diff := cmp.Diff(want, rsp.GetDesired().GetResources(), protocmp.Transform()); diff != "" {
				t.Errorf("%s: only what is of this step is carried over: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.condition, rsp.GetConditions()[0].GetType()); diff != "" {
				t.Errorf("%s: -want type, +got type:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSetConditionCleans verifies that a condition has no characters that an agent chose.
func TestSetConditionCleans(t *testing.T) {
	r := newStepRun(t, "{spec: {tailnet: example}}", nil)
	r.reply.setCondition(Condition{Type: "MachinesReady", Reason: "No", Message: "a\x1b[31m\u202eb\nc"})
	if got := r.Response().GetConditions()[0].GetMessage(); got != "a [31mb c" {
		t.Errorf("setCondition(...): got %q", got)
	}
}

func TestTwoStepsOfOneName(t *testing.T) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	first := newStepRun(t, "{name: edge, spec: {tailnet: example}}", nil)
	if err := first.reply.compose("a", cm, true); err != nil {
		t.Fatal(err)
	}
	other := newStepRun(t, "{name: inner, spec: {tailnet: example}}", first.Response().GetDesired())
	if err := other.reply.compose("a", cm, true); err != nil {
		t.Errorf("steps with different names share no resources: %v", err)
	}
	same := newStepRun(t, "{name: edge, spec: {tailnet: example}}", first.Response().GetDesired())
	want := `an earlier step composes "tailscaleendpoints-edge.a" too; give each step of this function another name in its input`
	if err := same.reply.compose("a", cm, true); err == nil || err.Error() != want {
		t.Errorf("want %q, got %v", want, err)
	}
}

func TestStepStatus(t *testing.T) {
	theirs := func() *fnv1.State {
		return &fnv1.State{Composite: &fnv1.Resource{Resource: resource.MustStructJSON(`{"status": {"url": "theirs"}}`)}}
	}
	cases := map[string]struct {
		reason    string
		input     string
		condition bool
		want      string
	}{
		"Path": {
			reason: "The status is written to the field of the input, in addition to that of others",
			input:  "{statusFieldPath: status.edge, spec: {tailnet: example}}",
			want:   `{"url": "theirs", "edge": {"totalEndpoints": 2}}`,
		},
		"NewPath": {
			reason: "The parents of the field are created",
			input:  "{statusFieldPath: status.tailscale.edge, spec: {tailnet: example}}",
			want:   `{"url": "theirs", "tailscale": {"edge": {"totalEndpoints": 2}}}`,
		},
		"NoPath": {
			reason: "Without a field in the input the status is not written",
			input:  "spec: {tailnet: example}",
			want:   `{"url": "theirs"}`,
		},
		"ConditionsChange": {
			reason:    "A run changes either conditions or status: the status stays as it is observed",
			input:     "{statusFieldPath: status.edge, spec: {tailnet: example}}",
			condition: true,
			want:      `{"url": "theirs", "edge": {"totalEndpoints": 1}}`,
		},
		"ConditionsChangeFirst": {
			reason:    "The status stays empty when conditions change",
			input:     "{statusFieldPath: status.other, spec: {tailnet: example}}",
			condition: true,
			want:      `{"url": "theirs"}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newStepRun(t, tc.input, theirs())
			if tc.condition {
				r.reply.setCondition(Condition{Type: "MachinesReady", Reason: "New", Message: "New"})
			}
			if err := r.reply.setStatus(gatewayv1alpha1.TailscaleEndpointsStatus{TotalEndpoints: ptr.To[int32](2)}); err != nil {
				t.Fatal(err)
			}
			got := r.Response().GetDesired().GetComposite().GetResource().GetFields()["status"].GetStructValue()
			if diff := cmp.Diff(resource.MustStructJSON(tc.want), got, protocmp.Transform()); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestStepStatusInTheWay(t *testing.T) {
	r := newStepRun(t, "{statusFieldPath: status.url.edge, spec: {tailnet: example}}",
		&fnv1.State{Composite: &fnv1.Resource{Resource: resource.MustStructJSON(`{"status": {"url": "theirs"}}`)}})
	if err := r.reply.setStatus(gatewayv1alpha1.TailscaleEndpointsStatus{TotalEndpoints: ptr.To[int32](2)}); err != nil {
		t.Fatal(err)
	}
	rsp := r.Response()
	if len(rsp.GetResults()) != 1 || rsp.GetResults()[0].GetSeverity() != fnv1.Severity_SEVERITY_FATAL {
		t.Errorf("a status that cannot be written must not get lost, got %v", rsp.GetResults())
	}
}
