// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package composetest runs composition functions with files as Crossplane runs them with a cluster,
// and compares the results with other files. It is for tests only.
package composetest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/golden"
)

// annotationResourceName is the annotation by which Crossplane identifies a composed resource.
const annotationResourceName = "crossplane.io/composition-resource-name"

// inputGroup is the API group of the functions' inputs.
const inputGroup = "fn.gateway.tailscale.com/"

// maxCalls is how often Crossplane calls a function in one reconciliation while its requirements
// change.
const maxCalls = 5

// Golden runs a function with each case of testdata/in, see ReadCase, and compares the response with
// the file of the same name in testdata/out. The first object of a case is the composite; an object
// of the group of inputs is the step's input; objects with Crossplane's annotation are observed
// composed resources; all others are the cluster, from which requirements are met.
//
// The golden file of a case with a base states the difference to the base's, see golden.Read. The
// golden files of the cases in full contain every resource. Those of other cases contain digests for
// the kinds that package golden supports.
//
// Golden runs each case twice more, with the cluster in another order. The response must consist of
// the same bytes.
func Golden(t *testing.T, fn fnv1.FunctionRunnerServiceServer, full ...string) {
	t.Helper()
	out := filepath.Join("testdata", "out")
	paths := map[string]bool{}
	for _, c := range readCases(t, filepath.Join("testdata", "in")) {
		path := filepath.Join(out, c.Name+".yaml")
		paths[path] = true
		t.Run(c.Name, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("this case is for: %s", c.Reason)
				}
			}()
			world := newCluster(t, c.Objects...)
			rsp := world.settle(t, fn)
			world.checkRules(t, rsp)
			checkStable(t, world, fn, rsp)
			checkKeepsExisting(t, world, fn)
			checkKeepsEarlier(t, world, fn)
			digests := &golden.Digests{}
			if slices.Contains(full, c.Name) {
				digests = nil
			}
			if c.Base != "" {
				golden.ComparePatch(t, path, c.Base, render(t, rsp, digests), digests)
				return
			}
			golden.Compare(t, path, render(t, rsp, digests), digests)
		})
	}
	golden.Prune(t, filepath.Join(out, "*"), paths)
	for _, name := range full {
		if !paths[filepath.Join(out, name+".yaml")] {
			t.Errorf("there is no case %q to show in full", name)
		}
	}
}

// checkStable repeats the call with the same input, and with the cluster's objects in the opposite
// order.
func checkStable(t *testing.T, c *cluster, fn fnv1.FunctionRunnerServiceServer, want *fnv1.RunFunctionResponse) {
	t.Helper()
	shuffled := c.with(c.composite, slices.Clone(c.objects))
	slices.Reverse(shuffled.objects)
	for _, repeat := range []*cluster{c, shuffled} {
		if rsp := repeat.settle(t, fn); !bytes.Equal(encode(t, want), encode(t, rsp)) {
			t.Errorf("two runs with the same input differ: -first, +second:\n%s", cmp.Diff(string(render(t, want, nil)), string(render(t, rsp, nil))))
		}
	}
}

// checkKeepsExisting makes the first call of a function, without any required objects: the function
// must keep every child, and not fail.
func checkKeepsExisting(t *testing.T, c *cluster, fn fnv1.FunctionRunnerServiceServer) {
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
	c.checkRules(t, rsp)
}

// checkKeepsEarlier calls a function after a step of another function, whose desired state must not
// change.
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

// checkRules fails the test if a response breaks a rule for all functions.
func (c *cluster) checkRules(t *testing.T, rsp *fnv1.RunFunctionResponse) {
	t.Helper()
	if tag := rsp.GetMeta().GetTag(); tag != requestTag {
		t.Errorf("the response has tag %q, and the request %q", tag, requestTag)
	}
	if xr := rsp.GetDesired().GetComposite().GetResource(); xr != nil {
		for _, f := range []string{"apiVersion", "kind"} {
			if want, desired := field(c.composite, f).GetStringValue(), field(xr, f).GetStringValue(); want != desired {
				t.Errorf("the desired composite has %s %q, and the observed one %q", f, desired, want)
			}
		}
	}
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

// allReady reports whether all desired resources are ready.
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

func load(t *testing.T, path string) *cluster {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := documents(string(b))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return newCluster(t, objects...)
}

// Settle calls a function with objects as Crossplane does, until its requirements are met and its
// conditions are set. The objects have the same roles as in a case for Golden.
func Settle(t *testing.T, fn fnv1.FunctionRunnerServiceServer, objects ...map[string]any) *fnv1.RunFunctionResponse {
	t.Helper()
	return newCluster(t, objects...).settle(t, fn)
}

// newCluster returns a cluster of objects, which have the same roles as in a case for Golden.
func newCluster(t *testing.T, objects ...map[string]any) *cluster {
	t.Helper()
	c := &cluster{observed: map[string]*structpb.Struct{}}
	for _, o := range objects {
		c.add(t, o)
	}
	return c
}

// add adds an object to the field for its role.
func (c *cluster) add(t *testing.T, m map[string]any) {
	t.Helper()
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
