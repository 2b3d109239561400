// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// A secretCounter counts the bytes of Secrets that the provider receives for its cache, by lists and
// watches of all namespaces.
type secretCounter struct {
	http.RoundTripper

	bytes *atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (c secretCounter) RoundTrip(r *http.Request) (*http.Response, error) {
	rsp, err := c.RoundTripper.RoundTrip(r)
	if err == nil && r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/api/v1/secrets") {
		rsp.Body = countedBody{ReadCloser: rsp.Body, bytes: c.bytes}
	}
	return rsp, err
}

type countedBody struct {
	io.ReadCloser

	bytes *atomic.Int64
}

// Read implements io.Reader.
func (b countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes.Add(int64(n))
	return n, err
}

// TestLabelledSecrets checks that Secrets that a tenant labels do not fill the provider's memory: its
// cache receives their metadata alone.
func TestLabelledSecrets(t *testing.T) {
	t.Parallel()
	const (
		number = 100
		size   = 100 << 10
		most   = number * size / 10
	)
	e := newEnv(t)
	previous := shared.secretBytes.Load()
	g := errgroup.Group{}
	g.SetLimit(20)
	for i := range number {
		g.Go(func() error {
			return shared.kube.Create(t.Context(), &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: fmt.Sprintf("large-%d", i), Labels: map[string]string{meta.LabelSecretType: meta.SecretTypeState}},
				Data:       map[string][]byte{"data": make([]byte, size)},
			})
		})
	}
	e.must(g.Wait())
	defer func() {
		e.must(shared.kube.DeleteAllOf(t.Context(), &corev1.Secret{}, client.InNamespace(e.namespace), client.MatchingLabels{meta.LabelSecretType: meta.SecretTypeState}))
	}()

	// The provider creates a Secret again when its cache has seen the deletion, which follows the
	// creation of the others in the same watch.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "late-extension", Labels: map[string]string{meta.LabelExtension: "late"}}}
	e.create(account)
	s, deleted := &corev1.Secret{}, types.UID("")
	e.eventually("the Secret of an extension is created again", func() error {
		if err := shared.kube.Get(t.Context(), client.ObjectKey{Namespace: e.namespace, Name: "late-extension-client"}, s); err != nil {
			return err
		}
		if deleted == "" {
			deleted = s.GetUID()
			e.must(shared.kube.Delete(t.Context(), s))
		}
		if s.GetUID() == deleted {
			return errors.New("it is still the first one")
		}
		return nil
	})
	if got := shared.secretBytes.Load() - previous; got == 0 || got > most {
		t.Errorf("want some metadata, of at most %d bytes, received for %d Secrets of %d bytes, got %d", most, number, size, got)
	}
}
