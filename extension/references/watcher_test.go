// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// absent are Secrets that do not exist.
type absent struct {
	wanted []types.NamespacedName

	mu    sync.Mutex
	known map[types.NamespacedName]bool
}

func (a *absent) Secrets() []types.NamespacedName { return a.wanted }
func (a *absent) SecretsChanged() <-chan struct{} { return nil }
func (a *absent) SetSecret(n types.NamespacedName, h *ir.CertificateSecret) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known[n] = h != nil && h.Reason == ir.ReasonInvalidCertificate
}

// TestWatchCost counts the goroutines of a watch of an absent Secret. The fake clientset adds none,
// and a real one two: one for the stream of HTTP/2, one that decodes it.
func TestWatchCost(t *testing.T) {
	const count, most = 200, 2
	a := &absent{known: map[types.NamespacedName]bool{}}
	for i := range count {
		a.wanted = append(a.wanted, types.NamespacedName{Namespace: "shop", Name: strconv.Itoa(i)})
	}
	kube := fake.NewClientset()
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(t.Context())
	settled, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- NewWatcher(a, kube, logging.NewNopLogger()).Run(ctx, func() { close(settled) })
	}()
	<-settled
	after := runtime.NumGoroutine()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := float64(after-before) / count; got > most+0.5 {
		t.Errorf("%.1f goroutines for each Secret, want at most %d", got, most)
	}
	for _, n := range a.wanted {
		if !a.known[n] {
			t.Errorf("it is not known that Secret %s does not exist", n)
		}
	}
}
