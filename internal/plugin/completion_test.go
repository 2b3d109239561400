// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// envCommand makes the test's binary the plugin, for scripts of shells.
const envCommand = "TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(envCommand) != "" {
		os.Exit(Run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// hostileContext is the name of a context that a shell would run.
const hostileContext = "x$(touch pwned);\"'"

// namespaces starts an API server that knows namespaces alone, and returns a kubeconfig for it. Its users get the
// namespaces in two pages, and a member of the group ops another one.
func namespaces(t *testing.T) string {
	t.Helper()
	answers := map[string]string{
		"/api":               `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis":              `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
		"/api/v1":            `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"namespaces","singularName":"namespace","kind":"Namespace","verbs":["list"]}]}`,
		"/api/v1/namespaces": `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"continue":"2"},"items":[{"metadata":{"name":"shop"}},{"metadata":{"name":"kube-system"}}]}`,
		"2":                  `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[{"metadata":{"name":"shop-staging"}}]}`,
		"ops":                `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[{"metadata":{"name":"ops"}}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		path := r.URL.Path
		switch q := r.URL.Query(); {
		case slices.Contains(r.Header.Values("Impersonate-Group"), "ops") && path == "/api/v1/namespaces":
			path = "ops"
		case q.Get("continue") != "":
			path = q.Get("continue")
		}
		body, ok := answers[path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
		}
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "config")
	config := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: lab, clusters: [{name: a, cluster: {server: '%s'}}], contexts: [{name: lab, context: {cluster: a, user: a}}, {name: live, context: {cluster: a, user: a}}, {name: %q, context: {cluster: a, user: a}}, {name: \"y\\e[2J\", context: {cluster: a, user: a}}, {name: \"y\\u202e\", context: {cluster: a, user: a}}], users: [{name: a, user: {token: t}}]}", server.URL, hostileContext)
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestComplete(t *testing.T) {
	t.Setenv("KUBECONFIG", namespaces(t))
	cases := map[string]struct {
		reason string
		words  []string
		want   string
	}{
		"Nothing":   {reason: "All commands can begin a line, except hidden ones.", words: nil, want: "check\ncompletion\ndrain\ninstall\norphans\nstatus\nuninstall\nversion\n:4\n"},
		"Command":   {reason: "Commands are completed.", words: []string{"ch"}, want: "check\n:4\n"},
		"Flag":      {reason: "Flags are those of the command.", words: []string{"check", "--env"}, want: "--envoy-gateway\n--envoy-gateway-namespace\n:4\n"},
		"Global":    {reason: "Flags of all commands are completed, too.", words: []string{"status", "--kubec"}, want: "--kubeconfig\n:4\n"},
		"Enum":      {reason: "Values of a flag are completed.", words: []string{"check", "--envoy-gateway="}, want: "--envoy-gateway=auto\n--envoy-gateway=require\n--envoy-gateway=skip\n:4\n"},
		"Short":     {reason: "A flag of one letter has the same values.", words: []string{"status", "-o", "y"}, want: "yaml\n:4\n"},
		"Shell":     {reason: "Parameters are completed.", words: []string{"completion", "z"}, want: "zsh\n:4\n"},
		"Namespace": {reason: "Namespaces are those of the cluster.", words: []string{"status", "--namespace=sh"}, want: "--namespace=shop\n--namespace=shop-staging\n:4\n"},
		"Context":   {reason: "Contexts are those of the kubeconfig.", words: []string{"--context", "l"}, want: "lab\nlive\n:4\n"},
		"File":      {reason: "A kubeconfig is a file.", words: []string{"--kubeconfig", ""}, want: ":0\n"},
		"Absent":    {reason: "A kind that the cluster does not have has no names, and no error.", words: []string{"orphans", "--provider-config="}, want: ":4\n"},
		"Group":     {reason: "Names are those that the impersonated user sees.", words: []string{"--as=jane", "--as-group=dev", "--as-group", "ops", "status", "-n", ""}, want: "ops\n:4\n"},
		"Images":    {reason: "A list of images is a file.", words: []string{"check", "--images", ""}, want: ":0\n"},
		"Control":   {reason: "Names that a terminal obeys, or that look like others, are not printed.", words: []string{"--context", "y"}, want: ":4\n"},
		"Raw":       {reason: "The scripts quote names for their shell.", words: []string{"--context", "x"}, want: hostileContext + "\n:4\n"},
		"Wrong":     {reason: "A context that does not exist has no names, and no error.", words: []string{"--context=absent", "status", "-n", ""}, want: ":4\n"},
		"Dead":      {reason: "Nor has a kubeconfig that is none.", words: []string{"--kubeconfig=/nonexistent", "status", "-n", ""}, want: ":4\n"},
		"Unknown":   {reason: "Words that mean nothing are no error.", words: []string{"nonsense", "--nonsense", "x"}, want: ":4\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, errs := &bytes.Buffer{}, &bytes.Buffer{}
			code := Run(t.Context(), append([]string{commandComplete}, tc.words...), out, errs)
			if diff := cmp.Diff(tc.want, out.String()); diff != "" || code != ExitNone || errs.Len() > 0 {
				t.Errorf("%s\n%v: code %d, %s: -want, +got:\n%s", tc.reason, tc.words, code, errs, diff)
			}
		})
	}
}

// TestBash completes command lines in bash, with the script.
func TestBash(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "tsgw")); err != nil {
		t.Fatal(err)
	}
	kubeconfig := namespaces(t)
	cases := map[string]struct{ reason, line, want string }{
		"Command":   {reason: "A command is completed.", line: "tsgw st", want: "status"},
		"Namespace": {reason: "Names of objects are completed, behind the = that readline keeps.", line: "tsgw status --namespace=sh", want: "shop shop-staging"},
		"Separate":  {reason: "A value is completed in a separate word.", line: "tsgw status -n kube", want: "kube-system"},
		"Next":      {reason: "A space begins the next word.", line: "tsgw completion ", want: "bash fish kubectl zsh"},
		"Quoted":    {reason: "A name is one word for the shell that reads the line.", line: "tsgw --context x", want: `x\$\(touch\ pwned\)\;\"\'`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			script := fmt.Sprintf("source <(tsgw completion bash)\nCOMP_LINE=%q COMP_POINT=%d\n_tailscale_gateway\necho \"${COMPREPLY[*]}\"\n", tc.line, len(tc.line))
			cmd := exec.CommandContext(t.Context(), "bash", "--norc", "-c", script)
			cmd.Env = append(os.Environ(), envCommand+"=1", "KUBECONFIG="+kubeconfig, "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			if got := strings.TrimSpace(string(out)); err != nil || got != tc.want {
				t.Errorf("%s\n%q: got %q, want %q, %v", tc.reason, tc.line, got, tc.want, err)
			}
		})
	}
}

// TestScripts checks that there is a script for each shell.
func TestScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "kubectl"} {
		out, errs := &bytes.Buffer{}, &bytes.Buffer{}
		if code := Run(t.Context(), []string{"completion", shell}, out, errs); code != ExitNone || !strings.Contains(out.String(), commandComplete) {
			t.Errorf("completion %s: code %d, %s:\n%s", shell, code, errs, out)
		}
	}
}
