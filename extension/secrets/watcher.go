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
	"k8s.io/apimachinery/pkg/types"
	informers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
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
			if err := of.start(ctx, &g); err != nil {
				return err
			}
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

// A watch of one Secret.
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

func (w *watch) start(ctx context.Context, g *sync.WaitGroup) error {
	ctx, w.cancel = context.WithCancel(ctx)
	i := informers.NewFilteredSecretInformer(w.kube, w.name.Namespace, 0, cache.Indexers{}, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, w.name.Name).String()
	})
	r, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(now any) { w.changed(ctx, now) },
		UpdateFunc: func(_, now any) { w.changed(ctx, now) },
		DeleteFunc: func(any) { w.changed(ctx, nil) },
	})
	err = errors.Join(err, i.SetTransform(strip), i.SetWatchErrorHandlerWithContext(w.failed))
	if err != nil {
		w.cancel()
		return errors.Wrapf(err, "cannot watch Secret %s", w.name)
	}
	g.Go(func() {
		defer close(w.ended)
		i.RunWithContext(ctx)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.due != nil {
			w.due.Stop()
		}
	})
	g.Go(func() {
		select {
		case <-ctx.Done():
		case <-r.HasSyncedChecker().Done():
			// Informers send no event for a Secret that does not exist.
			w.publish(ctx)
		}
	})
	return nil
}

// strip removes everything but the certificate from a Secret.
func strip(in any) (any, error) {
	s, ok := in.(*corev1.Secret)
	if !ok {
		return in, nil
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion},
		Type:       s.Type,
		Data:       map[string][]byte{corev1.TLSCertKey: s.Data[corev1.TLSCertKey], corev1.TLSPrivateKeyKey: s.Data[corev1.TLSPrivateKeyKey]},
	}, nil
}

func (w *watch) changed(ctx context.Context, now any) {
	w.mu.Lock()
	w.secret, _ = now.(*corev1.Secret)
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

// failed handles a failed list or watch, which the informer retries. A known certificate stays: a
// starting API server may refuse permitted requests for a moment.
func (w *watch) failed(ctx context.Context, _ *cache.Reflector, err error) {
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
