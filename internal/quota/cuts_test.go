// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// uncritical are the files that cut lists without this package, each with the number of cuts and
// the reason why no one loses anything that serves.
var uncritical = map[string]struct {
	cuts   int
	reason string
}{
	"extension/credentials/authority.go":                   {1, "It cuts a text."},
	"extension/explain/overview.go":                        {1, "Only people read it."},
	"extension/ir/expression.go":                           {1, "It cuts a text."},
	"extension/events/reporter.go":                         {1, "The other events follow in the next round."},
	"extension/explain/generated.go":                       {1, "Only people read it."},
	"extension/gateways/report/identity.go":                {1, "Only people read it."},
	"extension/health/decide.go":                           {1, "Only people read it."},
	"extension/health/report/build.go":                     {2, "Only people read it."},
	"extension/index/endpointshares.go":                    {1, "The order of targets is by age, and the endpoints are of one target."},
	"extension/index/leading.go":                           {1, "Only people read it."},
	"extension/index/objectshares.go":                      {1, "The order is by age, and all namespaces have the same share."},
	"extension/policies/tls.go":                            {1, "Only people read it."},
	"extension/policies/status.go":                         {2, "Only people read it."},
	"functions/tailscaleendpoints/health.go":               {1, "Only people read it."},
	"functions/tailscalegateway/dns/dns.go":                {1, "The nameservers are proxies of one owner, who chooses their number."},
	"functions/tailscalegateway/services/status.go":        {2, "Only people read it."},
	"functions/tailscalegateway/status.go":                 {1, "Only people read it."},
	"functions/tailscaleservices/health.go":                {1, "Only people read it."},
	"functions/tailscaleservices/status.go":                {2, "Only people read it."},
	"internal/agent/offer.go":                              {1, "The other services follow in the next round."},
	"internal/agent/witness.go":                            {1, "A host that is not watched is not fenced, and serves."},
	"internal/controller/contention/contention.go":         {1, "Only people read it."},
	"internal/controller/dns/dns.go":                       {1, "Only people read it."},
	"internal/controller/dns/plan.go":                      {1, "Only people read it."},
	"internal/controller/fence/facts.go":                   {1, "Only people read it."},
	"internal/controller/machineset/static.go":             {1, "The addresses are of one Machine."},
	"internal/controller/machineset/summary.go":            {1, "Only people read it."},
	"internal/controller/policyfragment/policyfragment.go": {2, "Only people read it."},
	"internal/controller/policyfragment/warnings.go":       {1, "Only people read it."},
	"internal/controller/publish/setup.go":                 {1, "It cuts a text."},
	"internal/controller/tailnet/tailnet.go":               {1, "Only people read it."},
	"internal/controller/vipservice/preapprove.go":         {1, "Only people read it."},
	"internal/controller/vipservice/sharing.go":            {2, "Only people read it."},
	"internal/multicluster/resolve.go":                     {1, "Only people read it."},
	"internal/plugin/check/images.go":                      {1, "It cuts a text."},
	"internal/provider/manager.go":                         {1, "The owners are of one object, and its controller stays."},
	"internal/registry/fencing.go":                         {2, "The hosts are in one cluster's record, and one that is left out is not fenced."},
	"internal/registry/limits.go":                          {1, "The nodes are of one cluster's record."},
	"internal/registry/plan.go":                            {1, "Only people read it."},
	"internal/registry/record.go":                          {1, "The entries are of one cluster's record."},
	"internal/registry/shared.go":                          {2, "The data on a shared service are derived from the clusters' records, and may be lost."},
	"internal/tailscale/dnswrites.go":                      {1, "Only people read it."},
	"internal/tailscale/errors.go":                         {1, "Only people read it."},
}

// TestCuts fails if a list is cut at a limit, as in list[:min(len(list), most)], without this
// package: the last by name would lose its place to any newcomer.
func TestCuts(t *testing.T) {
	got, want := map[string]int{}, map[string]int{}
	for file, u := range uncritical {
		want[file] = u.cuts
	}
	for _, dir := range []string{"extension", "functions", "internal"} {
		err := filepath.WalkDir(filepath.Join("../..", dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			if n := cuts(f); n > 0 {
				got[filepath.ToSlash(strings.TrimPrefix(path, "../../"))] = n
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("A list that is cut keeps what serves: use quota.Admit, or say in the table why it need not. -want, +got:\n%s", diff)
	}
	for _, file := range slices.Sorted(maps.Keys(uncritical)) {
		if uncritical[file].reason == "" {
			t.Errorf("%s has no reason", file)
		}
	}
}

// cuts returns the number of expressions that cut a list at a limit. Texts, which strings.ToValidUTF8
// or a function that trims surrounds, are not lists.
func cuts(f *ast.File) int {
	n, texts := 0, map[ast.Node]bool{}
	ast.Inspect(f, func(node ast.Node) bool {
		switch e := node.(type) {
		case *ast.CallExpr:
			if s, ok := e.Fun.(*ast.SelectorExpr); ok && (s.Sel.Name == "ToValidUTF8" || s.Sel.Name == "TrimRight") {
				texts[e.Args[0]] = true
			}
		case *ast.SliceExpr:
			if isLimit(e.High) && !texts[e] {
				n++
			}
		}
		return true
	})
	return n
}

// isLimit reports whether an expression is min(len(list), ...).
func isLimit(e ast.Expr) bool {
	c, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := c.Fun.(*ast.Ident)
	if !ok || f.Name != "min" {
		return false
	}
	return slices.ContainsFunc(c.Args, func(a ast.Expr) bool {
		inner, ok := a.(*ast.CallExpr)
		if !ok {
			return false
		}
		name, ok := inner.Fun.(*ast.Ident)
		return ok && name.Name == "len"
	})
}
