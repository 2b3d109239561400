//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// TestStart checks that the CRDs, and those of XRDs, are served and that deleted namespaces are
// removed.
func TestStart(t *testing.T) {
	s, err := apiserver.Start(t.Context(), apiserver.Options{Controllers: apiserver.DeletionControllers(), Composites: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	c, err := client.New(s.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range [][2]string{{"tailnet.gateway.tailscale.com/v1alpha1", "VIPService"}, {"gateway.tailscale.com/v1alpha1", "TailscaleServices"}} {
		l := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": k[0], "kind": k[1] + "List"}}
		if err := c.List(t.Context(), l); err != nil {
			t.Errorf("%s is not served: %v", k[1], err)
		}
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "short-lived"}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(ns), ns)
		return kerrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Errorf("a deleted namespace stays: %v", err)
	}
}
