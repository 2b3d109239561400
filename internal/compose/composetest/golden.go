// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package composetest runs composition functions over files, as Crossplane runs
// them over a cluster, and compares what comes out with other files. It is for
// tests only.
package composetest

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

var update = flag.Bool("update", false, "Rewrite the files in testdata/out from what the function does, and delete those without a file in testdata/in.")

// annotationResourceName is how Crossplane knows a composed resource again.
const annotationResourceName = "crossplane.io/composition-resource-name"

// inputGroup is that of our functions' inputs.
const inputGroup = "fn.gateway.tailscale.com/"

// maxCalls is how often Crossplane calls a function for one reconcile while its
// requirements change.
const maxCalls = 5

// Golden runs a function over each file of testdata/in and compares the response
// with the file of the same name in testdata/out. The first object of a file is
// the composite; one of the group of inputs is the step's input; those with
// Crossplane's annotation for it are observed composed resources; all others are
// the cluster, from which requirements are met.
//
// Each is run twice more, with the cluster in another order, and must give the
// same bytes.
func Golden(t *testing.T, fn fnv1.FunctionRunnerServiceServer) {
	t.Helper()
	in, out := filepath.Join("testdata", "in"), filepath.Join("testdata", "out")
	files, err := os.ReadDir(in)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.RemoveAll(out); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(out, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(f.Name(), ".yaml"), func(t *testing.T) {
			c := load(t, filepath.Join(in, f.Name()))
			rsp := c.settle(t, fn)
			checkRules(t, rsp)
			checkStable(t, c, fn, rsp)
			checkCarriesOver(t, c, fn)
			checkKeepsEarlier(t, c, fn)
			got := render(t, rsp)
			path := filepath.Join(out, f.Name())
			if *update {
				if err := os.WriteFile(path, got, 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v; run the test with -update", err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", path, diff)
			}
		})
	}
}

// checkStable calls again with the same input, and with the cluster's objects in
// the opposite order.
func checkStable(t *testing.T, c *cluster, fn fnv1.FunctionRunnerServiceServer, want *fnv1.RunFunctionResponse) {
	t.Helper()
	shuffled := c.with(c.composite, slices.Clone(c.objects))
	slices.Reverse(shuffled.objects)
	for _, again := range []*cluster{c, shuffled} {
		if got := again.settle(t, fn); !bytes.Equal(encode(t, want), encode(t, got)) {
			t.Errorf("two runs with the same input differ: -first, +second:\n%s", cmp.Diff(string(render(t, want)), string(render(t, got))))
		}
	}
}

// checkCarriesOver makes the first call of a function, which has none of what it
// requires: it must keep every child, and not fail.
func checkCarriesOver(t *testing.T, c *cluster, fn fnv1.FunctionRunnerServiceServer) {
	t.Helper()
	rsp := c.callOnce(t, fn, nil)
	if rsp.GetRequirements() == nil {
		return
	}
	for name := range c.observed {
		if !c.owns(name) {
			continue
		}
		if _, ok := rsp.GetDesired().GetResources()[name]; !ok {
			t.Errorf("resource %q would be deleted while requirements are not met", name)
		}
	}
	checkRules(t, rsp)
}

// checkKeepsEarlier calls a function after a step of someone else's: what that
// wants must stay as it is.
func checkKeepsEarlier(t *testing.T, c *cluster, fn fnv1.FunctionRunnerServiceServer) {
	t.Helper()
	theirs, err := structpb.NewStruct(map[string]any{"apiVersion": "v1", "kind": "ConfigMap"})
	if err != nil {
		t.Fatal(err)
	}
	status, err := structpb.NewStruct(map[string]any{"status": map[string]any{"earlierStep": "theirs"}})
	if err != nil {
		t.Fatal(err)
	}
	earlier := c.with(c.composite, c.objects)
	earlier.desired = &fnv1.State{
		Composite: &fnv1.Resource{Resource: status},
		Resources: map[string]*fnv1.Resource{"earlier-step": {Resource: theirs, Ready: fnv1.Ready_READY_TRUE}},
	}
	rsp := earlier.call(t, fn)
	if !proto.Equal(earlier.desired.GetResources()["earlier-step"], rsp.GetDesired().GetResources()["earlier-step"]) {
		t.Error("a resource of an earlier step is not kept")
	}
	if field(rsp.GetDesired().GetComposite().GetResource(), "status", "earlierStep").GetStringValue() != "theirs" {
		t.Error("the status of an earlier step is not kept")
	}
}

// checkRules that hold for every response of ours.
func checkRules(t *testing.T, rsp *fnv1.RunFunctionResponse) {
	t.Helper()
	if ttl := rsp.GetMeta().GetTtl().AsDuration(); ttl != 0 && allReady(rsp) {
		t.Errorf("the response expires after %s although all is ready: Crossplane would call again without need", ttl)
	}
	for _, c := range rsp.GetConditions() {
		if c.GetTarget() != fnv1.Target_TARGET_COMPOSITE_AND_CLAIM {
			t.Errorf("condition %s does not reach a claim", c.GetType())
		}
		if c.GetReason() == "" || c.GetMessage() == "" || strings.HasSuffix(c.GetMessage(), ".") {
			t.Errorf("condition %s: want a reason, and a message without a full stop, got %q, %q", c.GetType(), c.GetReason(), c.GetMessage())
		}
	}
	for name, r := range rsp.GetDesired().GetResources() {
		if r.GetReady() == fnv1.Ready_READY_UNSPECIFIED {
			t.Errorf("resource %q says nothing of its readiness", name)
		}
		if _, ok := r.GetResource().GetFields()["status"]; ok {
			t.Errorf("resource %q has a status", name)
		}
	}
}

// allReady reports whether nothing that is desired is on its way.
func allReady(rsp *fnv1.RunFunctionResponse) bool {
	for _, r := range rsp.GetDesired().GetResources() {
		if r.GetReady() != fnv1.Ready_READY_TRUE {
			return false
		}
	}
	return true
}

func encode(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func render(t *testing.T, rsp *fnv1.RunFunctionResponse) []byte {
	t.Helper()
	j, err := protojson.Marshal(rsp)
	if err != nil {
		t.Fatal(err)
	}
	y, err := yaml.JSONToYAML(j)
	if err != nil {
		t.Fatal(err)
	}
	return y
}

func load(t *testing.T, path string) *cluster {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{observed: map[string]*structpb.Struct{}}
	for _, doc := range strings.Split(string(b), "\n---\n") {
		m := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte(doc), &m); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		c.add(t, m)
	}
	return c
}

// Settle calls a function about objects, as Crossplane does: until what it requires is met,
// and its conditions are set. The objects are told apart as those of a file for Golden.
func Settle(t *testing.T, fn fnv1.FunctionRunnerServiceServer, of ...map[string]any) *fnv1.RunFunctionResponse {
	t.Helper()
	c := &cluster{observed: map[string]*structpb.Struct{}}
	for _, o := range of {
		c.add(t, o)
	}
	return c.settle(t, fn)
}

// add an object where it belongs. An empty one is none.
func (c *cluster) add(t *testing.T, m map[string]any) {
	t.Helper()
	if len(m) == 0 {
		return
	}
	s, err := structpb.NewStruct(m)
	if err != nil {
		t.Fatal(err)
	}
	name := field(s, "metadata", "annotations", annotationResourceName).GetStringValue()
	switch {
	case c.composite == nil:
		c.composite = s
	case strings.HasPrefix(field(s, "apiVersion").GetStringValue(), inputGroup):
		c.input = s
	case name != "":
		c.observed[name] = s
	default:
		c.objects = append(c.objects, s)
	}
}
