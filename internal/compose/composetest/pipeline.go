// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package composetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	xpextv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// functionPrefix starts the names of our functions once they are installed.
const functionPrefix = "tailscale-gateway-function-"

// Pipeline runs the steps of a Composition, composition.yaml of a folder, that are
// of this function, one after the other as Crossplane does, for the composite
// app.yaml of the same folder. What the last one returns is compared with
// testdata/pipeline/out.yaml; testdata/pipeline/cluster.yaml is the cluster, from
// which requirements are met.
func Pipeline(t *testing.T, fn fnv1.FunctionRunnerServiceServer, name, dir string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "composition.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	composition := &xpextv1.Composition{}
	if err := yaml.UnmarshalStrict(b, composition); err != nil {
		t.Fatal(err)
	}
	in := filepath.Join("testdata", "pipeline")
	objects := load(t, filepath.Join(in, "cluster.yaml"))
	c := load(t, filepath.Join(dir, "app.yaml"))
	c.objects = append(objects.objects, objects.composite)

	var rsp *fnv1.RunFunctionResponse
	for _, s := range composition.Spec.Pipeline {
		if s.FunctionRef.Name != functionPrefix+name {
			continue
		}
		m := map[string]any{}
		if err := yaml.Unmarshal(s.Input.Raw, &m); err != nil {
			t.Fatalf("step %s: %v", s.Step, err)
		}
		if c.input, err = structpb.NewStruct(m); err != nil {
			t.Fatalf("step %s: %v", s.Step, err)
		}
		rsp = c.settle(t, fn)
		checkRules(t, rsp)
		checkStable(t, c, fn, rsp)
		checkKeepsEarlier(t, c, fn)
		c.desired = rsp.GetDesired()
	}
	if rsp == nil {
		t.Fatalf("%s: no step is of this function", dir)
	}
	got, path := render(t, rsp), filepath.Join(in, "out.yaml")
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
}
