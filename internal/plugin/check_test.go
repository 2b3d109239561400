// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/check"
)

// TestCheckNothing checks an empty cluster: the cause is one, and the output is short.
func TestCheckNothing(t *testing.T) {
	w := newWorld(t)
	code, out, errs := w.run("check", "--context=other")
	if code != ExitFound || errs != "" || strings.Count(out, "\n") > 10 {
		t.Errorf("check: code %d, %s:\n%s", code, errs, out)
	}
	for _, want := range []string{"Wrong    Crossplane is not installed", "--kube-context=other", "Not checked before this is fixed: "} {
		if !strings.Contains(out, want) {
			t.Errorf("check: the output lacks %q:\n%s", want, out)
		}
	}
	code, out, _ = w.run("check", "-o", "json")
	r := check.Report{}
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != ExitFound || r.Count(check.Wrong) != 1 {
		t.Errorf("check -o json: code %d, %v:\n%s", code, err, out)
	}
}

// TestCheckRefused checks that a kind that the caller may not list is unknown.
func TestCheckRefused(t *testing.T) {
	w := newWorld(t, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "crossplane-system", Name: "crossplane", Labels: map[string]string{check.LabelVersion: "2.4.0"}},
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{}, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{ServiceAccountName: "crossplane"}}},
		Status:     appsv1.DeploymentStatus{UpdatedReplicas: 1, AvailableReplicas: 1},
	})
	w.deny = "Provider"
	code, out, errs := w.run("check", "--no-objects", "--no-admission", "--envoy-gateway=skip")
	// The roles of the chart are missing, too.
	if code != ExitFound || errs != "" || !strings.Contains(out, "Unknown  which packages are installed: ") || strings.Contains(out, "Wrong    Tailscale Gateway is not installed") {
		t.Errorf("check: code %d, %s:\n%s", code, errs, out)
	}
}

// TestUnanswered checks that each command says in one sentence that the API server does not answer, or that there is no
// kubeconfig.
func TestUnanswered(t *testing.T) {
	dir := t.TempDir()
	dead := filepath.Join(dir, "dead")
	const kubeconfig = "{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}], contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a, user: {token: t}}]}"
	if err := os.WriteFile(dead, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`))
	}))
	t.Cleanup(server.Close)
	refused := filepath.Join(dir, "refused")
	if err := os.WriteFile(refused, []byte(strings.Replace(kubeconfig, "https://127.0.0.1:1", server.URL, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("HOME", dir)
	cases := map[string]struct {
		reason  string
		config  string
		context string
		want    string
	}{
		"Dead":         {reason: "A server that does not answer is named.", config: dead, want: "error: the API server does not answer: dial tcp 127.0.0.1:1: connect: connection refused; see that --context and --kubeconfig name"},
		"Unauthorized": {reason: "A server that refuses the credentials is no cluster without objects.", config: refused, want: "error: the API server does not accept your credentials; see that --context and --kubeconfig name the cluster that you mean"},
		"Wrong":        {reason: "A context that does not exist is named.", config: dead, context: "b", want: `error: cannot use the kubeconfig: context "b" does not exist`},
		"None":         {reason: "Without a kubeconfig, the error says how to name one.", config: "", want: "error: there is no kubeconfig: name one by --kubeconfig, or by the variable KUBECONFIG"},
	}
	for name, tc := range cases {
		for _, command := range []string{"check", "orphans", "status", "uninstall", "version"} {
			t.Run(name+"/"+command, func(t *testing.T) {
				t.Setenv("KUBECONFIG", tc.config)
				out, errs := &bytes.Buffer{}, &bytes.Buffer{}
				code := Run(t.Context(), []string{command, "--context=" + tc.context}, out, errs)
				if code != ExitFailed || out.Len() > 0 || !strings.HasPrefix(errs.String(), tc.want) || strings.Count(errs.String(), "\n") != 1 {
					t.Errorf("%s\n%s: code %d, printed %q, error %q", tc.reason, command, code, out, errs)
				}
			})
		}
	}
}

// TestCheckImages covers the list of images.
func TestCheckImages(t *testing.T) {
	file := filepath.Join(t.TempDir(), "images.txt")
	if err := os.WriteFile(file, []byte("ghcr.io/tailscale-gateway/agent:v0.1.0@sha256:"+strings.Repeat("a", 64)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		input  string
		images string
		code   int
		errs   string
	}{
		"File":   {reason: "A list is read before the cluster.", images: file, code: ExitFound},
		"Absent": {reason: "A file that does not exist is no empty list.", images: file + ".gz", code: ExitFailed, errs: "error: cannot read the list of images: open "},
		"Input":  {reason: "Standard input can have it.", input: "agent@sha256:" + strings.Repeat("a", 64), images: "-", code: ExitFound},
		"Empty":  {reason: "An empty list compares nothing.", images: "-", code: ExitFailed, errs: `error: cannot use the list of images "-": the list has no image with a digest`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.input = tc.input
			code, _, errs := w.run("check", "--images="+tc.images)
			if code != tc.code || !strings.HasPrefix(errs, tc.errs) || (errs == "") != (tc.errs == "") {
				t.Errorf("%s\ncheck --images=%s: code %d, %s", tc.reason, tc.images, code, errs)
			}
		})
	}
}
