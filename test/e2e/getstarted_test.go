// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
)

// getStarted is the page that leads from a cluster to an answer.
const getStarted = "docs/get-started.md"

// walkSteps is the number of steps of the page.
const walkSteps = 5

// A walk follows the page getStarted.
type walk struct {
	// dir is the folder in which the commands run.
	dir string

	// path has the folders of the programs that the commands name.
	path []string

	// replacements are pairs of a text of the page, which must occur there, and its value in the lab.
	replacements []string
}

// follow runs the commands of the page, and returns the answer to the last one. Each step of the page is
// one command line, and nothing waits between them.
func (w walk) follow(t *testing.T) string {
	t.Helper()
	page := readFile(t, getStarted)
	for i := 0; i < len(w.replacements); i += 2 {
		if !strings.Contains(page, w.replacements[i]) {
			t.Fatalf("%s does not contain %q", getStarted, w.replacements[i])
		}
	}
	page = strings.NewReplacer(w.replacements...).Replace(page)
	preparation, page, _ := strings.Cut(page, "\n## 1. ")
	for _, script := range shellBlocks(preparation) {
		pageCommand(t, w.dir, script, w.path...)
	}
	answer, began := "", time.Now()
	steps := strings.Split("\n## 1. "+page, "\n## ")[1:]
	for i, step := range steps {
		if !strings.HasPrefix(step, fmt.Sprintf("%d. ", i+1)) {
			// The last step was the one before.
			if i != walkSteps {
				t.Errorf("%s has %d steps, want %d", getStarted, i, walkSteps)
			}
			break
		}
		scripts := shellBlocks(step)
		if len(scripts) != 1 || commandLines(scripts[0]) != 1 {
			t.Fatalf("step %d of %s is not one command: %q", i+1, getStarted, scripts)
		}
		answer = pageCommand(t, w.dir, scripts[0], w.path...)
		t.Logf("step %d of %d ended after %s", i+1, walkSteps, time.Since(began).Round(100*time.Millisecond))
	}
	return strings.TrimSpace(answer)
}

// inLab returns the replacements that any walk in the lab needs: the credential, and the domain of the
// tailnet.
func inLab(t *testing.T) []string {
	t.Helper()
	return []string{
		"clientID=ID", "clientID=" + fromLab(t, "TAILNET_CLIENT_ID"),
		"--set tailnet.oauth.clientSecret=SECRET", "--set-file tailnet.oauth.clientSecret=" + fromLab(t, "TAILNET_CLIENT_SECRET_FILE"),
		"YOUR-TAILNET.ts.net", fromLab(t, "TAILNET_DOMAIN"),
	}
}

// labValues writes the values of the chart that the lab needs, and returns the path of the file.
func labValues(t *testing.T) string {
	t.Helper()
	api := fromLab(t, "TAILNET_API_IN_CLUSTER")
	return writeFile(t, "lab.yaml", fmt.Sprintf("registry: %s/tailscale-gateway\ntailnet: {spec: {apiURL: %q, controlURL: %q}}\n", fromLab(t, "REGISTRY_IN_CLUSTER"), api, api), 0o600)
}

// tailnetCurl returns a folder with a program curl that requests from a device of the tailnet, as the page
// expects.
func tailnetCurl(t *testing.T) string {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(writeFile(t, "curl", fmt.Sprintf("#!/bin/sh\ncd %q && exec %q tailnet-curl \"$@\"\n", root, lab), 0o700))
}

// writeFile writes a file in a new folder, and returns its path.
func writeFile(t *testing.T, name, content string, mode os.FileMode) string {
	t.Helper()
	f := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(f, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return f
}

// getsStarted follows the page with the packages and the chart of the tree, in a cluster with Crossplane
// and without the product. It removes the objects of the page.
func getsStarted(t *testing.T) {
	t.Helper()
	// The page uses the names of the quickstart.
	kubectl(t, "delete", "namespace", namespace, "--ignore-not-found", "--timeout=2m")
	got := walk{
		path: append([]string{tailnetCurl(t)}, labPath(t)...),
		replacements: append(inLab(t),
			"oci://"+products.Charts+"/tailscale-gateway --version 0.1.0", fmt.Sprintf("package/charts/tailscale-gateway --values=%s --set=packages.version=%s", labValues(t), *version),
			products.Raw+"/v0.1.0/", "",
		),
	}.follow(t)
	if !strings.HasPrefix(got, "web-") {
		t.Errorf("the answer is %q, want the name of a pod", got)
	}
	kubectl(t, "delete", "tailscaleservices/web", "-n", namespace, "--timeout=2m")
	kubectl(t, "delete", "tailscaletailnet/example", "--timeout=1m")
}

// labPath returns the folders of kubectl and helm.
func labPath(t *testing.T) []string {
	t.Helper()
	return []string{filepath.Dir(labBin(t, "kubectl")), filepath.Dir(labBin(t, "helm"))}
}

var shellBlock = regexp.MustCompile("(?s)\n```sh\n(.*?)\n```")

// shellBlocks returns the commands of a Markdown text that are in blocks of sh.
func shellBlocks(markdown string) []string {
	var out []string
	for _, m := range shellBlock.FindAllStringSubmatch(markdown, -1) {
		out = append(out, m[1])
	}
	return out
}

var (
	continuation = regexp.MustCompile(`\\\n`)
	heredoc      = regexp.MustCompile("(?s)<<EOF\n.*?\nEOF(\n|$)")
)

// commandLines returns the number of command lines of a script: a line with its continuations, or with its
// here-document.
func commandLines(script string) int {
	text := heredoc.ReplaceAllString(continuation.ReplaceAllString(script, ""), "\n")
	return len(strings.Split(strings.TrimSpace(text), "\n"))
}

// pageCommand runs a script of a page in a folder, with the lab's cluster, and returns its output. The
// folders of path come first in PATH.
func pageCommand(t *testing.T, dir, script string, path ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute+patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-ec", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+fromLab(t, "KUBECONFIG"), "PATH="+strings.Join(append(path, os.Getenv("PATH")), string(os.PathListSeparator)))
	out, err := cmd.CombinedOutput()
	t.Logf("%s\n%s", script, out)
	if err != nil {
		t.Fatalf("a command of a page fails: %v", err)
	}
	return string(out)
}
