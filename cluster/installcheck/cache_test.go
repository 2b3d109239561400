// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestCheckCache(t *testing.T) {
	cases := map[string]struct {
		reason  string
		account string
		args    []string
		missing bool
		silent  bool
	}{
		"Default":   {reason: "Crossplane watches all namespaces by default.", account: "crossplane", args: []string{"core", "start"}},
		"Flag":      {reason: "With the flag objects of other namespaces are never composed.", account: "crossplane", args: []string{"core", "start", "--watch-cache-namespaced"}, missing: true},
		"True":      {reason: "The flag can have a value.", account: "crossplane", args: []string{"core", "start", "--watch-cache-namespaced=true"}, missing: true},
		"False":     {reason: "The value can be the default.", account: "crossplane", args: []string{"core", "start", "--watch-cache-namespaced=false"}},
		"Other":     {reason: "Deployments of other service accounts are not Crossplane.", account: "other", args: []string{"--watch-cache-namespaced"}, silent: true},
		"OtherFlag": {reason: "Only this flag matters.", account: "crossplane", args: []string{"--watch-cache-namespaced-too"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientset(&appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: "crossplane-system", Name: "crossplane"},
				Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					ServiceAccountName: tc.account, Containers: []corev1.Container{{Args: tc.args}},
				}}},
			})
			out := &bytes.Buffer{}
			r := &report{out: out}
			if err := checkCache(t.Context(), kube, "crossplane-system", "crossplane", r); err != nil {
				t.Fatalf("checkCache(...): %v", err)
			}
			if got := strings.HasPrefix(out.String(), "missing"); got != tc.missing || (out.Len() == 0) != tc.silent {
				t.Errorf("%s\ncheckCache(...): got %q", tc.reason, out)
			}
		})
	}
}
