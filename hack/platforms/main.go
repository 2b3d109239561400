// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command platforms checks the types of packages and their tests as if they were compiled for other
// platforms: all for macOS, where contributors work, and arm64, where users run images, and the kubectl
// plugin for Windows. It reads dependencies without the bodies of their functions and compiles nothing,
// so it takes seconds where go vet takes minutes.
package main

import (
	"fmt"
	"go/types"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// platforms to check, as GOOS/GOARCH, with their packages.
var platforms = []struct {
	name     string
	patterns []string
}{
	{name: "darwin/arm64", patterns: []string{"./..."}},
	{name: "linux/arm64", patterns: []string{"./..."}},
	{name: "windows/amd64", patterns: []string{"./cmd/kubectl-tailscale_gateway", "./internal/plugin/..."}},
}

func main() {
	failed := false
	for _, p := range platforms {
		problems, err := check(p.name, ".", p.patterns...)
		if err != nil {
			fmt.Fprintln(os.Stderr, "platforms:", err)
			os.Exit(1)
		}
		for _, m := range problems {
			fmt.Printf("%s: %s\n", p.name, m)
		}
		failed = failed || len(problems) > 0
	}
	if failed {
		os.Exit(1)
	}
}

// linuxOnly are modules whose functions do not compile elsewhere, which the check does not see.
var linuxOnly = []string{"github.com/google/nftables"}

// check returns what does not compile for a platform, of the packages in dir that match patterns.
func check(platform, dir string, patterns ...string) ([]string, error) {
	system, arch, _ := strings.Cut(platform, "/")
	pkgs, err := packages.Load(&packages.Config{
		Dir:   dir,
		Tests: true,
		Env:   append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0"),
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps |
			packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesSizes,
	}, patterns...)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot load packages for %s", platform)
	}
	if len(pkgs) == 0 {
		return nil, errors.Errorf("no packages match %s", strings.Join(patterns, " "))
	}
	var out []string
	if system != "linux" {
		packages.Visit(pkgs, nil, func(p *packages.Package) {
			if slices.Contains(linuxOnly, p.PkgPath) {
				out = append(out, "something imports "+p.PkgPath+", which compiles only for Linux")
			}
		})
	}
	seen := map[string]bool{}
	for _, p := range pkgs {
		if p.Types == nil || p.TypesSizes == types.Sizes(nil) {
			return nil, errors.Errorf("the types of %s were not checked", p.PkgPath)
		}
		for _, e := range p.Errors {
			// A package is there twice, with and without its tests.
			if m := e.Error(); !seen[m] {
				seen[m] = true
				out = append(out, m)
			}
		}
	}
	return out, nil
}
