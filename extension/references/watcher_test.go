// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/internal/backendtls"
)

// absent are Secrets and ConfigMaps that do not exist.
type absent struct {
	wanted []types.NamespacedName

	mu    sync.Mutex
	known map[types.NamespacedName]bool
}

func (a *absent) Secrets() []types.NamespacedName    { return a.wanted }
func (a *absent) SecretsChanged() <-chan struct{}    { return nil }
func (a *absent) ConfigMaps() []types.NamespacedName { return a.wanted }
func (a *absent) ConfigMapsChanged() <-chan struct{} { return nil }
func (a *absent) SetSecret(n types.NamespacedName, h *ir.CertificateSecret) {
	a.set(n, h != nil && h.Reason == ir.ReasonInvalidCertificate)
}

func (a *absent) ReadConfigMap(_ types.NamespacedName, o *corev1.ConfigMap) (parse.ConfigMap, error) {
	return parse.ConfigMap{Authorities: backendtls.ParseAuthorities(o)}, nil
}

func (a *absent) SetConfigMap(n types.NamespacedName, c *parse.ConfigMap) {
	a.set(n, c != nil && c.Problem == backendtls.ParseAuthorities(nil).Problem)
}

func (a *absent) set(n types.NamespacedName, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known[n] = known
}

// TestImpossibleNames checks that names that no object can have are known not to exist without a
// request, which the API server could refuse: a replica would never be ready.
func TestImpossibleNames(t *testing.T) {
	a := &absent{known: map[types.NamespacedName]bool{}}
	for _, n := range []string{"a/b", "..", "%", "A", "a,b=c", "a\\"} {
		a.wanted = append(a.wanted, types.NamespacedName{Namespace: "shop", Name: n})
	}
	a.wanted = append(a.wanted, types.NamespacedName{Namespace: "../shop", Name: "a"})
	kube := fake.NewClientset()
	ctx, cancel := context.WithCancel(t.Context())
	settled, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- NewConfigMapWatcher(a, kube, logging.NewNopLogger()).Run(ctx, func() { close(settled) })
	}()
	<-settled
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, n := range a.wanted {
		if !a.known[n] {
			t.Errorf("it is not known that %s does not exist", n)
		}
	}
	if got := kube.Actions(); len(got) > 0 {
		t.Errorf("want no requests, got %v", got)
	}
}

// TestLargeObject checks that the watch of an object that becomes large ends, with its buffer, and that
// another one begins without a list in it.
func TestLargeObject(t *testing.T) {
	n := types.NamespacedName{Namespace: "shop", Name: "ca"}
	a := &absent{known: map[types.NamespacedName]bool{}, wanted: []types.NamespacedName{n}}
	kube := fake.NewClientset()
	watches, options := make(chan *kwatch.FakeWatcher), make(chan metav1.ListOptions, 4)
	kube.PrependWatchReactor("configmaps", func(action clienttesting.Action) (bool, kwatch.Interface, error) {
		w := kwatch.NewFake()
		if l, ok := action.(clienttesting.WatchActionImpl); ok {
			options <- l.ListOptions
		}
		select {
		case watches <- w:
		case <-t.Context().Done():
		}
		return true, w, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- NewConfigMapWatcher(a, kube, logging.NewNopLogger()).Run(ctx, func() {}) }()
	first := <-watches
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: n.Name, ResourceVersion: "2"}, Data: map[string]string{"any": strings.Repeat("x", largeObject)}}
	if err := kube.Tracker().Add(o); err != nil {
		t.Fatal(err)
	}
	first.Add(o)
	<-watches
	for range 2 {
		if o := <-options; o.SendInitialEvents != nil {
			t.Errorf("want a watch without initial events, got %+v", o)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	lists := 0
	for _, a := range kube.Actions() {
		if a.Matches("list", "configmaps") {
			lists++
		}
	}
	if lists != 2 {
		t.Errorf("want a list before each of two watches, got %d", lists)
	}
}

// TestWatchCost counts the goroutines of a watch of an absent Secret or ConfigMap. The fake clientset
// adds none, and a real one two: one for the stream of HTTP/2, one that decodes it.
func TestWatchCost(t *testing.T) {
	type watcher interface {
		Run(ctx context.Context, settled func()) error
	}
	cases := map[string]func(a *absent) watcher{
		"Secrets":    func(a *absent) watcher { return NewSecretWatcher(a, fake.NewClientset(), logging.NewNopLogger()) },
		"ConfigMaps": func(a *absent) watcher { return NewConfigMapWatcher(a, fake.NewClientset(), logging.NewNopLogger()) },
	}
	const count, most = 200, 2
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			a := &absent{known: map[types.NamespacedName]bool{}}
			for i := range count {
				a.wanted = append(a.wanted, types.NamespacedName{Namespace: "shop", Name: strconv.Itoa(i)})
			}
			w := run(a)
			before := runtime.NumGoroutine()
			ctx, cancel := context.WithCancel(t.Context())
			settled, ended := make(chan struct{}), make(chan error, 1)
			go func() { ended <- w.Run(ctx, func() { close(settled) }) }()
			<-settled
			after := runtime.NumGoroutine()
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if got := float64(after-before) / count; got > most+0.5 {
				t.Errorf("%.1f goroutines for each object, want at most %d", got, most)
			}
			for _, n := range a.wanted {
				if !a.known[n] {
					t.Errorf("it is not known that %s does not exist", n)
				}
			}
		})
	}
}
