// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kwatch "k8s.io/apimachinery/pkg/watch"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// A kind describes objects of type O that are watched by name, and their states of type S.
type kind[O client.Object, S any] struct {
	name string

	// object is an empty object.
	object O

	// wanted returns the names of the wanted objects, each once. changed receives a value after they
	// may have changed.
	wanted  func() []types.NamespacedName
	changed <-chan struct{}

	// list and watch call the API server.
	list  func(ctx context.Context, namespace string, o metav1.ListOptions) (runtime.Object, error)
	watch func(ctx context.Context, namespace string, o metav1.ListOptions) (kwatch.Interface, error)

	// read reads an object once, and returns a function that returns its state at a time, and the time
	// at which the state changes although the object does not. Zero means never. A zero object does
	// not exist. The function keeps only the parts of the object that it needs.
	read func(n types.NamespacedName, o O) func(at time.Time) (state S, due time.Time)

	// unreadable returns the state of an object that the extension may not read.
	unreadable func(n types.NamespacedName) S

	// set stores the state of an object. Nil means that it is not known.
	set func(n types.NamespacedName, state *S)
}

// A SecretStore states the wanted Secrets, and holds their states. index.Store implements it.
type SecretStore interface {
	// Secrets returns the wanted Secrets, each once.
	Secrets() []types.NamespacedName

	// SecretsChanged receives a value after the wanted Secrets may have changed.
	SecretsChanged() <-chan struct{}

	// SetSecret stores the state of a Secret. Nil means that it is not known.
	SetSecret(n types.NamespacedName, h *ir.CertificateSecret)
}

// A SecretWatcher keeps the states of Secrets up to date.
type SecretWatcher = Watcher[*corev1.Secret, ir.CertificateSecret]

// NewSecretWatcher returns a watcher of Secrets that Run starts.
func NewSecretWatcher(s SecretStore, kube typedcorev1.CoreV1Interface, log logging.Logger) *SecretWatcher {
	return &SecretWatcher{log: log, kind: kind[*corev1.Secret, ir.CertificateSecret]{
		name: parse.KindSecret, object: &corev1.Secret{},
		wanted: s.Secrets, changed: s.SecretsChanged(), set: s.SetSecret, unreadable: ir.UnreadableSecret,
		list: func(ctx context.Context, namespace string, o metav1.ListOptions) (runtime.Object, error) {
			return kube.Secrets(namespace).List(ctx, o)
		},
		watch: func(ctx context.Context, namespace string, o metav1.ListOptions) (kwatch.Interface, error) {
			return kube.Secrets(namespace).Watch(ctx, o)
		},
		read: readSecret,
	}}
}

// readSecret returns the state of a Secret at a time, which depends on when its certificate is valid.
func readSecret(n types.NamespacedName, o *corev1.Secret) func(at time.Time) (ir.CertificateSecret, time.Time) {
	o = strip(o)
	return func(at time.Time) (ir.CertificateSecret, time.Time) {
		h := parse.ParseSecret(n, o, at)
		return h, h.Due
	}
}

// strip returns the certificate of a Secret, and nothing else of it.
func strip(s *corev1.Secret) *corev1.Secret {
	if s == nil {
		return nil
	}
	return &corev1.Secret{
		Type: s.Type,
		Data: map[string][]byte{corev1.TLSCertKey: s.Data[corev1.TLSCertKey], corev1.TLSPrivateKeyKey: s.Data[corev1.TLSPrivateKeyKey]},
	}
}

// A ConfigMapStore states the wanted ConfigMaps, and holds their states. index.Store implements it.
type ConfigMapStore interface {
	// ConfigMaps returns the wanted ConfigMaps, each once.
	ConfigMaps() []types.NamespacedName

	// ConfigMapsChanged receives a value after the wanted ConfigMaps may have changed.
	ConfigMapsChanged() <-chan struct{}

	// ReadConfigMap returns the state of a ConfigMap. A nil ConfigMap does not exist. With an error the
	// state is of the parts that can be parsed.
	ReadConfigMap(n types.NamespacedName, o *corev1.ConfigMap) (parse.ConfigMap, error)

	// SetConfigMap stores the state of a ConfigMap. Nil means that it is not known.
	SetConfigMap(n types.NamespacedName, c *parse.ConfigMap)
}

// A ConfigMapWatcher keeps the states of ConfigMaps up to date.
type ConfigMapWatcher = Watcher[*corev1.ConfigMap, parse.ConfigMap]

// NewConfigMapWatcher returns a watcher of ConfigMaps that Run starts.
func NewConfigMapWatcher(s ConfigMapStore, kube typedcorev1.CoreV1Interface, log logging.Logger) *ConfigMapWatcher {
	return &ConfigMapWatcher{log: log, kind: kind[*corev1.ConfigMap, parse.ConfigMap]{
		name: parse.KindConfigMap, object: &corev1.ConfigMap{},
		wanted: s.ConfigMaps, changed: s.ConfigMapsChanged(), set: s.SetConfigMap, unreadable: parse.UnreadableConfigMap,
		list: func(ctx context.Context, namespace string, o metav1.ListOptions) (runtime.Object, error) {
			return kube.ConfigMaps(namespace).List(ctx, o)
		},
		watch: func(ctx context.Context, namespace string, o metav1.ListOptions) (kwatch.Interface, error) {
			return kube.ConfigMaps(namespace).Watch(ctx, o)
		},
		read: func(n types.NamespacedName, o *corev1.ConfigMap) func(at time.Time) (parse.ConfigMap, time.Time) {
			c, err := s.ReadConfigMap(n, o)
			if err != nil {
				log.Info("Cannot use a ConfigMap; the others are", "error", err)
			}
			return func(time.Time) (parse.ConfigMap, time.Time) { return c, time.Time{} }
		},
	}}
}
