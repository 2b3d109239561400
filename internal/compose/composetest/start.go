// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package composetest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/golden"
)

// maxRuns is how often Crossplane runs a function for one change before a test treats it as a loop.
const maxRuns = 20

// Start follows composites of a function from their creation through the stages of each file of
// testdata/start, and compares Crossplane's writes of the composite with the file of the same name
// in testdata/writes. Each write counts against the composite, and against the composite that
// composed it, in Crossplane's circuit breaker.
//
// A file has a composite first, and then the objects of each stage. A document with only "stage"
// begins a stage. Children stay as composed until a stage changes them.
func Start(t *testing.T, fn fnv1.FunctionRunnerServiceServer) {
	t.Helper()
	input, out := filepath.Join("testdata", "start"), filepath.Join("testdata", "writes")
	files, err := os.ReadDir(input)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(f.Name(), ".yaml"), func(t *testing.T) {
			writes := follow(t, fn, filepath.Join(input, f.Name()))
			golden.Compare(t, filepath.Join(out, strings.TrimSuffix(f.Name(), ".yaml")+".txt"), []byte(writes), nil)
		})
	}
}

func follow(t *testing.T, fn fnv1.FunctionRunnerServiceServer, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var c *crossplane
	var out strings.Builder
	total, begun := 0, false
	end := func() {
		if !begun {
			return
		}
		for _, w := range c.settle(t, fn) {
			fmt.Fprintln(&out, "  "+w)
			total++
		}
	}
	for _, doc := range strings.Split(string(b), "\n---\n") {
		m := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte(doc), &m); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if stage, ok := m["stage"].(string); ok {
			end()
			begun = true
			fmt.Fprintln(&out, stage)
			continue
		}
		s, err := structpb.NewStruct(m)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if c == nil {
			c = newCrossplane(s)
			continue
		}
		c.put(s)
	}
	end()
	fmt.Fprintf(&out, "%d writes\n", total)
	return out.String()
}

// A crossplane runs the steps of Crossplane's reconciler that write a composite (crossplane v2.4
// composite/reconciler.go, Reconcile, and composition_functions.go, Compose).
type crossplane struct {
	// world holds the composite as the API server stores it.
	world cluster

	// refs are the resource names in the composite's references.
	refs []string

	// owned are the conditions, as text, that the composite's own field manager has applied. It
	// reverts them if another client has updated them.
	owned map[string]string
}

func newCrossplane(xr *structpb.Struct) *crossplane {
	return &crossplane{world: cluster{composite: xr, observed: map[string]*structpb.Struct{}}, owned: map[string]string{}}
}

// put adds an object, or replaces its earlier state.
func (c *crossplane) put(o *structpb.Struct) {
	if name := field(o, "metadata", "annotations", annotationResourceName).GetStringValue(); name != "" {
		c.world.observed[name] = o
		return
	}
	id := func(o *structpb.Struct) string {
		return field(o, "kind").GetStringValue() + "/" + field(o, "metadata", "namespace").GetStringValue() + "/" + field(o, "metadata", "name").GetStringValue()
	}
	c.world.objects = slices.DeleteFunc(c.world.objects, func(other *structpb.Struct) bool { return id(other) == id(o) })
	c.world.objects = append(c.world.objects, o)
}

// settle runs the function until it causes no more writes, and returns the writes. A run that
// writes twice is followed immediately by one whose cache lacks the last write, as is common in
// clusters.
func (c *crossplane) settle(t *testing.T, fn fnv1.FunctionRunnerServiceServer) []string {
	t.Helper()
	var writes []string
	var lags *structpb.Struct
	for range maxRuns {
		seen := c.world.composite
		if lags != nil {
			seen = lags
		}
		earlier, wrote := c.reconcile(t, fn, seen)
		writes = append(writes, wrote...)
		if len(wrote) == 0 && lags == nil {
			return writes
		}
		if lags != nil || len(wrote) < 2 {
			earlier = nil
		}
		lags = earlier
	}
	t.Fatalf("a composite is still written after %d runs:\n%s", maxRuns, strings.Join(writes, "\n"))
	return nil
}

// reconcile reconciles the composite in the cache. It returns the writes, and the composite before
// the update of conditions, which comes last.
func (c *crossplane) reconcile(t *testing.T, fn fnv1.FunctionRunnerServiceServer, seen *structpb.Struct) (composite *structpb.Struct, writes []string) {
	t.Helper()
	world := c.world
	world.composite = seen
	rsp := world.call(t, fn)
	refs := slices.Sorted(maps.Keys(rsp.GetDesired().GetResources()))
	if c.refs == nil || !slices.Equal(refs, c.refs) {
		c.refs = append([]string{}, refs...)
		writes = append(writes, "references "+strings.Join(refs, ", "))
	}
	if applied := c.apply(seen, rsp); applied != "" {
		writes = append(writes, applied)
	}
	c.compose(rsp)
	composite = c.world.composite
	if updated := c.update(rsp); updated != "" {
		writes = append(writes, updated)
	}
	return composite, writes
}

// compose creates new children, and deletes those that are no longer wanted.
func (c *crossplane) compose(rsp *fnv1.RunFunctionResponse) {
	wanted := rsp.GetDesired().GetResources()
	maps.DeleteFunc(c.world.observed, func(name string, _ *structpb.Struct) bool { return wanted[name] == nil })
	for name, r := range wanted {
		if c.world.observed[name] == nil {
			c.world.observed[name] = proto.CloneOf(r.GetResource())
		}
	}
}

// apply applies the status of a response, with the conditions in the cache.
func (c *crossplane) apply(seen *structpb.Struct, rsp *fnv1.RunFunctionResponse) string {
	next := withStatus(c.world.composite, rsp)
	var changes []string
	for _, k := range slices.Sorted(maps.Keys(field(next, "status").GetStructValue().GetFields())) {
		if !proto.Equal(field(next, "status", k), field(c.world.composite, "status", k)) {
			changes = append(changes, k)
		}
	}
	conditions, old := conditionsOf(next), conditionsOf(seen)
	// The first run's condition about the circuit breaker is lost together with its other writes.
	if len(conditions) > 0 {
		old["Responsive"] = map[string]any{"type": "Responsive", "status": "True"}
	}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		text := fmt.Sprint(old[name])
		switch {
		case fmt.Sprint(conditions[name]) != text:
			changes = append(changes, name)
		case c.owned[name] != text:
			changes = append(changes, name+" (owner)")
		}
		c.owned[name], conditions[name] = text, old[name]
	}
	setConditions(next, conditions)
	c.world.composite = next
	if len(changes) == 0 {
		return ""
	}
	return "apply " + strings.Join(changes, ", ")
}

// update writes the conditions that a function and Crossplane set.
func (c *crossplane) update(rsp *fnv1.RunFunctionResponse) string {
	next := proto.CloneOf(c.world.composite)
	conditions := conditionsOf(next)
	set := conditionsOf(withConditions(next, rsp.GetConditions()))
	set["Synced"] = map[string]any{"type": "Synced", "status": "True", "references": strings.Join(c.refs, ",")}
	set["Ready"] = map[string]any{"type": "Ready", "status": ready(rsp), "references": strings.Join(c.refs, ",")}
	var changes []string
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if fmt.Sprint(conditions[name]) != fmt.Sprint(set[name]) {
			changes = append(changes, name)
			conditions[name] = set[name]
			delete(c.owned, name)
		}
	}
	setConditions(next, conditions)
	c.world.composite = next
	if len(changes) == 0 {
		return ""
	}
	return "update " + strings.Join(changes, ", ")
}

// ready returns the readiness as Crossplane determines it, with the names of the children that are
// not ready.
func ready(rsp *fnv1.RunFunctionResponse) string {
	if rsp.GetDesired().GetComposite().GetReady() == fnv1.Ready_READY_FALSE {
		return "False"
	}
	var unready []string
	for name, r := range rsp.GetDesired().GetResources() {
		if r.GetReady() != fnv1.Ready_READY_TRUE {
			unready = append(unready, name)
		}
	}
	if len(unready) == 0 {
		return "True"
	}
	slices.Sort(unready)
	return "False: " + strings.Join(unready, ",")
}

// conditionsOf returns the conditions of a composite, by type.
func conditionsOf(xr *structpb.Struct) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, v := range field(xr, "status", "conditions").GetListValue().GetValues() {
		m := v.GetStructValue().AsMap()
		out[fmt.Sprint(m["type"])] = m
	}
	return out
}

// setConditions replaces the conditions of a composite.
func setConditions(xr *structpb.Struct, conditions map[string]map[string]any) {
	l := &structpb.ListValue{}
	for _, name := range slices.Sorted(maps.Keys(conditions)) {
		fields := map[string]*structpb.Value{}
		for k, v := range conditions[name] {
			fields[k] = structpb.NewStringValue(fmt.Sprint(v))
		}
		l.Values = append(l.Values, structpb.NewStructValue(&structpb.Struct{Fields: fields}))
	}
	statusFields(xr)["conditions"] = structpb.NewListValue(l)
}
