// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../.."

// copied are the files and folders that a scaffold changes or needs to compile.
var copied = []string{"go.mod", "go.sum", "apis", "internal", "hack", "test/integration", "test/lifecycle", "test/apiserver", "test/gitops", "test/retry", "examples/managed", "package"}

func copyTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range copied {
		from, to := filepath.Join(root, name), filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
			t.Fatal(err)
		}
		i, err := os.Stat(from)
		if err != nil {
			t.Fatal(err)
		}
		if i.IsDir() {
			err = os.CopyFS(to, os.DirFS(from))
		} else {
			var b []byte
			if b, err = os.ReadFile(from); err == nil {
				err = os.WriteFile(to, b, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestScaffold scaffolds a kind in a copy of the tree, generates its methods as make generate
// does, compiles, vets and tests the result, and checks its wording.
func TestScaffold(t *testing.T) {
	dir := copyTree(t)
	files, err := (&cli{Name: "UserGroup", Scope: "users", Root: dir}).run()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"apis/tailnet/v1alpha1/providerconfig_types.go",
		"apis/tailnet/v1alpha1/usergroup_types.go",
		"examples/managed/usergroup.yaml",
		"internal/controller/setup.go",
		"internal/controller/usergroup/setup.go",
		"internal/controller/usergroup/usergroup.go",
		"internal/controller/usergroup/usergroup_test.go",
		"internal/tailscale/usergroups.go",
		"test/integration/kind_usergroup_test.go",
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("run(): -want, +got:\n%s", diff)
	}
	for _, args := range [][]string{
		{"tool", "-modfile=hack/tools/controller-gen/go.mod", "controller-gen", "object:headerFile=hack/boilerplate.go.txt", "paths=./apis/tailnet/..."},
		{"tool", "-modfile=hack/tools/controller-gen/go.mod", "controller-gen", "crd", "paths=./apis/tailnet/...", "output:crd:dir=package/provider/crds"},
		{"tool", "-modfile=hack/tools/angryjet/go.mod", "angryjet", "generate-methodsets", "--header-file=hack/methodsets.go.txt", "./apis/tailnet/..."},
		{"vet", "-tags=integration", "./apis/tailnet/...", "./internal/tailscale", "./internal/controller", "./internal/controller/usergroup", "./test/integration"},
		{"test", "./internal/controller", "./internal/controller/usergroup"},
		{"test", "./internal/plugin", "./test/gitops", "-run", "TestUninstallKinds|TestKinds"},
		append([]string{"run", "./hack/wording"}, want...),
	} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	if _, err := (&cli{Name: "UserGroup", Root: dir}).run(); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("run() again: want an error, got %v", err)
	}
}

func TestNames(t *testing.T) {
	cases := map[string]struct {
		reason string
		kind   string
		plural string
		want   names
		err    bool
	}{
		"Words":     {reason: "Each form follows the words.", kind: "UserGroup", want: names{Kind: "UserGroup", Camel: "userGroup", Lower: "usergroup", Words: "user group", Plural: "UserGroups", PluralCamel: "userGroups", PluralLower: "usergroups", PluralWords: "user groups", Path: "user-groups", Article: "a", ArticleUpper: "A", Scope: "all"}},
		"Vowel":     {reason: "A vowel changes the article.", kind: "Invite", want: names{Kind: "Invite", Camel: "invite", Lower: "invite", Words: "invite", Plural: "Invites", PluralCamel: "invites", PluralLower: "invites", PluralWords: "invites", Path: "invites", Article: "an", ArticleUpper: "An", Scope: "all"}},
		"Irregular": {reason: "A plural may have another form.", kind: "DevicePolicy", plural: "DevicePolicies", want: names{Kind: "DevicePolicy", Camel: "devicePolicy", Lower: "devicepolicy", Words: "device policy", Plural: "DevicePolicies", PluralCamel: "devicePolicies", PluralLower: "devicepolicies", PluralWords: "device policies", Path: "device-policies", Article: "a", ArticleUpper: "A", Scope: "all"}},
		"Same":      {reason: "Functions of one and of all objects need two names.", kind: "Access", plural: "Access", err: true},
		"BadPlural": {reason: "A plural is in PascalCase.", kind: "DevicePolicy", plural: "devicepolicies", err: true},
		"Plural":    {reason: "A kind is singular.", kind: "Users", err: true},
		"Lower":     {reason: "A kind is in PascalCase.", kind: "userGroup", err: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := newNames(tc.kind, tc.plural, "all")
			if (err != nil) != tc.err {
				t.Fatalf("\n%s\nnewNames(...): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nnewNames(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
