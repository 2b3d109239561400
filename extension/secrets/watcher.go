// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	kwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// longest is the longest time of a timer: the watcher checks again then.
const longest = 24 * time.Hour

// A Store states the wanted Secrets, and holds their contents. index.Store implements it.
type Store interface {
	// Secrets returns the wanted Secrets, each once.
	Secrets() []types.NamespacedName

	// SecretsChanged receives a value after the wanted Secrets may have changed.
	SecretsChanged() <-chan struct{}

	// SetSecret stores the state of a Secret. Nil means none.
	SetSecret(n types.NamespacedName, h *ir.CertificateSecret)
}

// A Watcher keeps a Store's Secrets up to date.
type Watcher struct {
	store Store
	kube  kubernetes.Interface
	log   logging.Logger
}

// NewWatcher returns a watcher that Run starts.
func NewWatcher(s Store, kube kubernetes.Interface, log logging.Logger) *Watcher {
	return &Watcher{store: s, kube: kube, log: log}
}

// Run watches Secrets until ctx ends. It removes Secrets that are no longer wanted from the store.
// It calls settled once, when the state of each Secret that was wanted at the start is known.
func (w *Watcher) Run(ctx context.Context, settled func()) error {
	running := map[types.NamespacedName]*watch{}
	g := sync.WaitGroup{}
	defer g.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first := true
	for {
		wanted := map[types.NamespacedName]bool{}
		for _, n := range w.store.Secrets() {
			wanted[n] = true
			if running[n] != nil {
				continue
			}
			of := &watch{Watcher: w, name: n, known: make(chan struct{}), ended: make(chan struct{})}
			of.start(ctx, &g)
			running[n] = of
		}
		for n, of := range running {
			if !wanted[n] {
				of.cancel()
				<-of.ended
				delete(running, n)
				w.store.SetSecret(n, nil)
			}
		}
		if first {
			first = false
			for _, of := range running {
				select {
				case <-of.known:
				case <-ctx.Done():
				}
			}
			if ctx.Err() == nil {
				settled()
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.store.SecretsChanged():
		}
	}
}

// A watch of one Secret. It is the store of a reflector: an informer would need twice as many
// goroutines, and there is one object alone.
type watch struct {
	*Watcher
	name   types.NamespacedName
	cancel context.CancelFunc

	// known is closed once the state is known, and ended after the watch has ended.
	known, ended chan struct{}
	once         sync.Once

	// mu guards the fields below.
	mu     sync.Mutex
	secret *corev1.Secret
	due    *time.Timer
}

func (w *watch) start(ctx context.Context, g *sync.WaitGroup) {
	ctx, w.cancel = context.WithCancel(ctx)
	secrets := w.kube.CoreV1().Secrets(w.name.Namespace)
	name := fields.OneTermEqualSelector(metav1.ObjectNameField, w.name.Name).String()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = name
			return secrets.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (kwatch.Interface, error) {
			o.FieldSelector = name
			return secrets.Watch(ctx, o)
		},
	}
	r := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, w.kube), &corev1.Secret{}, &held{watch: w, ctx: ctx}, cache.ReflectorOptions{Name: "secret"})
	g.Go(func() {
		defer close(w.ended)
		// The context's end is the only error.
		_ = retryDelay().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
			if err := r.ListAndWatchWithContext(ctx); err != nil {
				w.failed(ctx, err)
			}
			return false, nil
		})
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.due != nil {
			w.due.Stop()
		}
	})
}

// retryDelay returns the delays between two watches, which are those of a reflector's RunWithContext.
// That one cannot be used: it hands errors to nobody (k8s.io/client-go v0.36.3,
// tools/cache/reflector.go).
func retryDelay() wait.DelayFunc {
	b := wait.Backoff{Duration: 800 * time.Millisecond, Cap: 30 * time.Second, Steps: 38, Factor: 2, Jitter: 1}
	return b.DelayWithReset(clock.RealClock{}, 2*time.Minute)
}

// A held is the cache.ReflectorStore of a watch.
type held struct {
	*watch

	ctx context.Context //nolint:containedctx // The methods of the interface have none.
}

// Add implements cache.ReflectorStore.
func (h *held) Add(o any) error { return h.Update(o) }

// Update implements cache.ReflectorStore.
func (h *held) Update(o any) error {
	s, _ := o.(*corev1.Secret)
	h.changed(h.ctx, s)
	return nil
}

// Delete implements cache.ReflectorStore.
func (h *held) Delete(any) error {
	h.changed(h.ctx, nil)
	return nil
}

// Replace implements cache.ReflectorStore. An empty list says that the Secret does not exist.
func (h *held) Replace(all []any, _ string) error {
	if len(all) == 0 {
		return h.Delete(nil)
	}
	return h.Update(all[0])
}

// Resync implements cache.ReflectorStore.
func (h *held) Resync() error { return nil }

// strip returns the certificate of a Secret, and nothing else of it.
func strip(s *corev1.Secret) *corev1.Secret {
	if s == nil {
		return nil
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion},
		Type:       s.Type,
		Data:       map[string][]byte{corev1.TLSCertKey: s.Data[corev1.TLSCertKey], corev1.TLSPrivateKeyKey: s.Data[corev1.TLSPrivateKeyKey]},
	}
}

func (w *watch) changed(ctx context.Context, now *corev1.Secret) {
	w.mu.Lock()
	w.secret = strip(now)
	w.mu.Unlock()
	w.publish(ctx)
}

// publish stores the current state of the Secret, and schedules the next call for the time at which
// its meaning changes.
func (w *watch) publish(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		// The store may have dropped it already.
		return
	}
	now := time.Now()
	h := parse.ParseSecret(w.name, w.secret, now)
	w.set(h)
	if w.due != nil {
		w.due.Stop()
	}
	if !h.Due.IsZero() {
		w.due = time.AfterFunc(min(h.Due.Sub(now), longest), func() { w.publish(ctx) })
	}
}

func (w *watch) set(h ir.CertificateSecret) {
	w.store.SetSecret(w.name, &h)
	w.once.Do(func() { close(w.known) })
}

// failed handles a failed list or watch, which is retried. A known certificate stays: a
// starting API server may refuse permitted requests for a moment.
func (w *watch) failed(ctx context.Context, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	w.log.Debug("Cannot watch a Secret, and will try again", "secret", w.name, "error", err)
	if kerrors.IsForbidden(err) && w.secret == nil {
		w.set(ir.UnreadableSecret(w.name))
	}
}
