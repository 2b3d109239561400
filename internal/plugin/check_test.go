// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"encoding/json"
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
	if !strings.Contains(out, "Unknown  which packages are installed: ") || strings.Contains(out, "Wrong    Tailscale Gateway is not installed") {
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
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("HOME", dir)
	cases := map[string]struct {
		reason string
		config string
		want   string
	}{
		"Dead": {reason: "A server that does not answer is named.", config: dead, want: "error: the API server does not answer: dial tcp 127.0.0.1:1: connect: connection refused; see that --context and --kubeconfig name"},
		"None": {reason: "Without a kubeconfig, the error says how to name one.", config: "", want: "error: there is no kubeconfig: name one by --kubeconfig, or by the variable KUBECONFIG"},
	}
	for name, tc := range cases {
		for _, command := range []string{"check", "orphans", "uninstall"} {
			t.Run(name+"/"+command, func(t *testing.T) {
				t.Setenv("KUBECONFIG", tc.config)
				out, errs := &bytes.Buffer{}, &bytes.Buffer{}
				code := Run(t.Context(), []string{command}, out, errs)
				if code != ExitFailed || out.Len() > 0 || !strings.HasPrefix(errs.String(), tc.want) || strings.Count(errs.String(), "\n") != 1 {
					t.Errorf("%s\n%s: code %d, printed %q, error %q", tc.reason, command, code, out, errs)
				}
			})
		}
	}
}
