// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/internal/backendtls"
)

// absent are Secrets and ConfigMaps that do not exist.
type absent struct {
	wanted []types.NamespacedName

	mu       sync.Mutex
	reported map[types.NamespacedName]bool
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

func (a *absent) set(n types.NamespacedName, reported bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reported[n] = reported
}

// settle runs a watcher of ConfigMaps until it has settled.
func settle(t *testing.T, a *absent, kube kubernetes.Interface) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	settled, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- NewConfigMapWatcher(a, kube.CoreV1(), logging.NewNopLogger()).Run(ctx, func() { close(settled) })
	}()
	<-settled
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestImpossibleNames checks that names that no object can have are known not to exist without a
// request, which the API server could refuse: a replica would never be ready.
func TestImpossibleNames(t *testing.T) {
	a := &absent{reported: map[types.NamespacedName]bool{}}
	for _, n := range []string{"a/b", "..", "%", "A", "a,b=c", "a\\"} {
		a.wanted = append(a.wanted, types.NamespacedName{Namespace: "shop", Name: n})
	}
	a.wanted = append(a.wanted, types.NamespacedName{Namespace: "../shop", Name: "a"})
	kube := fake.NewClientset()
	settle(t, a, kube)
	for _, n := range a.wanted {
		if !a.reported[n] {
			t.Errorf("it is not known that %s does not exist", n)
		}
	}
	if got := kube.Actions(); len(got) > 0 {
		t.Errorf("want no requests, got %v", got)
	}
}

// sizes records how much data a ConfigMap has. 0 means that it does not exist.
type sizes struct {
	absent

	mu   sync.Mutex
	last int
}

func (s *sizes) ReadConfigMap(_ types.NamespacedName, o *corev1.ConfigMap) (parse.ConfigMap, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = 0
	if o != nil {
		s.last = len(o.Data["any"])
	}
	return parse.ConfigMap{}, nil
}

func (s *sizes) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// TestLargeObject checks that the watch of an object ends after an event with a large one, with its
// buffer, that another one begins without a list in it, and that later events are seen as soon, however
// many there are.
func TestLargeObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := types.NamespacedName{Namespace: "shop", Name: "ca"}
		a := &sizes{absent: absent{reported: map[types.NamespacedName]bool{}, wanted: []types.NamespacedName{n}}}
		kube := fake.NewClientset()
		var watches []*kwatch.FakeWatcher
		kube.PrependWatchReactor("configmaps", func(action clienttesting.Action) (bool, kwatch.Interface, error) {
			if l, ok := action.(clienttesting.WatchActionImpl); !ok || l.ListOptions.SendInitialEvents != nil {
				t.Errorf("want a watch without initial events, got %+v", action)
			}
			watches = append(watches, kwatch.NewFakeWithOptions(kwatch.FakeOptions{ChannelSize: 1}))
			return true, watches[len(watches)-1], nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- NewConfigMapWatcher(a, kube.CoreV1(), logging.NewNopLogger()).Run(ctx, func() {}) }()
		synctest.Wait()

		tracker, configMaps := kube.Tracker(), corev1.SchemeGroupVersion.WithResource("configmaps")
		object := func(version, size int) *corev1.ConfigMap {
			meta := metav1.ObjectMeta{Namespace: n.Namespace, Name: n.Name, ResourceVersion: strconv.Itoa(version)}
			return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"any": strings.Repeat("x", size)}}
		}
		if err := tracker.Add(object(1, 1)); err != nil {
			t.Fatal(err)
		}
		watches[0].Add(object(1, 1))
		synctest.Wait()
		if len(watches) != 1 || a.size() != 1 {
			t.Fatalf("A small object should not end the watch: %d watches, size %d", len(watches), a.size())
		}
		for i := range 8 {
			size := largeObject + i
			o := object(2+i, size)
			if err := tracker.Update(configMaps, o, n.Namespace); err != nil {
				t.Fatal(err)
			}
			watches[i].Modify(o)
			synctest.Wait()
			if a.size() != size {
				t.Fatalf("Edit %d should be seen at once: size %d", i, a.size())
			}
			time.Sleep(restartPause)
			synctest.Wait()
			if len(watches) != 2+i {
				t.Fatalf("A watch should follow after the pause, after edit %d: %d watches", i, len(watches))
			}
		}
		if err := tracker.Delete(configMaps, n.Namespace, n.Name); err != nil {
			t.Fatal(err)
		}
		watches[8].Delete(object(10, largeObject))
		time.Sleep(restartPause)
		synctest.Wait()
		if len(watches) != 10 || a.size() != 0 {
			t.Errorf("A deleted large object should end the watch: %d watches, size %d", len(watches), a.size())
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestUnreadableObject checks that an object that cannot be read does not keep a replica from starting.
func TestUnreadableObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &absent{reported: map[types.NamespacedName]bool{}, wanted: []types.NamespacedName{{Namespace: "shop", Name: "ca"}}}
		kube := fake.NewClientset()
		kube.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, k8sruntime.Object, error) {
			return true, nil, kerrors.NewInternalError(errors.New("cannot decrypt"))
		})
		settle(t, a, kube)
		lists := 0
		for _, action := range kube.Actions() {
			if action.Matches("list", "configmaps") {
				lists++
			}
		}
		if lists != patientFailures {
			t.Errorf("want %d lists before the replica starts, got %d", patientFailures, lists)
		}
	})
}

// flips is a store whose objects a test replaces.
type flips struct {
	absent

	changed chan struct{}
}

func (f *flips) ConfigMapsChanged() <-chan struct{} { return f.changed }

func (f *flips) ConfigMaps() []types.NamespacedName {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wanted
}

// TestPace checks that the lists of a namespace whose policies name other objects again and again are
// few, and that another namespace does not wait for them.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flips{absent: absent{reported: map[types.NamespacedName]bool{}}, changed: make(chan struct{})}
		kube := fake.NewClientset()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- NewConfigMapWatcher(f, kube.CoreV1(), logging.NewNopLogger()).Run(ctx, func() {}) }()
		const flipping, honest, seconds = "hostile", "shop", 4
		want := func(names ...types.NamespacedName) {
			f.mu.Lock()
			f.wanted = names
			f.mu.Unlock()
			f.changed <- struct{}{}
			synctest.Wait()
		}
		for i := range 10 * seconds {
			var names []types.NamespacedName
			for j := range 64 {
				names = append(names, types.NamespacedName{Namespace: flipping, Name: fmt.Sprintf("ca-%d-%d", i%2, j)})
			}
			want(names...)
			time.Sleep(100 * time.Millisecond)
		}
		began := time.Now()
		want(append(f.wanted, types.NamespacedName{Namespace: honest, Name: "ca"})...)
		lists := map[string]int{}
		for _, action := range kube.Actions() {
			if action.Matches("list", "configmaps") {
				lists[action.GetNamespace()]++
			}
		}
		if most := namespaceBurst + (seconds+1)*namespaceLists; lists[flipping] > most || lists[honest] != 1 || !time.Now().Equal(began) {
			t.Errorf("want at most %d lists of the one namespace and at once one of the other, got %v", most, lists)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestWatchCost counts the goroutines of a watch of an absent Secret or ConfigMap. The fake clientset
// adds none, and a real one two: one for the stream of HTTP/2, one that decodes it.
func TestWatchCost(t *testing.T) {
	type watcher interface {
		Run(ctx context.Context, settled func()) error
	}
	cases := map[string]func(a *absent) watcher{
		"Secrets": func(a *absent) watcher {
			return NewSecretWatcher(a, fake.NewClientset().CoreV1(), logging.NewNopLogger())
		},
		"ConfigMaps": func(a *absent) watcher {
			return NewConfigMapWatcher(a, fake.NewClientset().CoreV1(), logging.NewNopLogger())
		},
	}
	const count, most = 200, 2
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			a := &absent{reported: map[types.NamespacedName]bool{}}
			for i := range count {
				a.wanted = append(a.wanted, types.NamespacedName{Namespace: "shop", Name: strconv.Itoa(i)})
			}
			w := run(a)
			baseline := runtime.NumGoroutine()
			ctx, cancel := context.WithCancel(t.Context())
			settled, ended := make(chan struct{}), make(chan error, 1)
			go func() { ended <- w.Run(ctx, func() { close(settled) }) }()
			<-settled
			current := runtime.NumGoroutine()
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if got := float64(current-baseline) / count; got > most+0.5 {
				t.Errorf("%.1f goroutines for each object, want at most %d", got, most)
			}
			for _, n := range a.wanted {
				if !a.reported[n] {
					t.Errorf("it is not known that %s does not exist", n)
				}
			}
		})
	}
}
