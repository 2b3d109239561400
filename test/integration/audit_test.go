// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// secret matches values that only Secrets may hold: keys as Tailscale creates them, and secrets of
// the cases.
var secret = regexp.MustCompile(`tskey-[a-z]+-[A-Za-z0-9]+-[A-Za-z0-9-]+|[A-Za-z0-9-]*notasecret[A-Za-z0-9-]*`)

// maxLog is the size of the log that is kept for failed cases, in bytes.
const maxLog = 64 << 20

// Tests here assert no event that is recorded once: with all cases in parallel, the queue of the
// client (1000 events) overflows, and it drops events without an error. Unit tests assert them.

// An audit reads every version of every object of the provider's kinds, every event and every line
// of the log. It is safe for concurrent use.
type audit struct {
	mu    sync.Mutex
	leaks map[string]string // The leaked values by place.
	seen  int
	log   bytes.Buffer
}

func newAudit() *audit { return &audit{leaks: map[string]string{}} }

// Write records lines of the log.
func (a *audit) Write(p []byte) (int, error) {
	a.inspect("log", p)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.log.Len() < maxLog {
		a.log.Write(p)
	}
	return len(p), nil
}

// lines returns the last n lines of the log that name a namespace.
func (a *audit) lines(namespace string, n int) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []string
	for l := range strings.Lines(a.log.String()) {
		if strings.Contains(l, `"`+namespace+`"`) {
			out = append(out, strings.TrimSpace(l))
		}
	}
	return out[max(0, len(out)-n):]
}

func (a *audit) inspect(source string, b []byte) {
	found := secret.Find(b)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen++
	if found != nil {
		a.leaks[source] = string(found[:min(len(found), 24)])
	}
}

// watch inspects the objects of all kinds of the provider, and events.
func (a *audit) watch(ctx context.Context, c cache.Cache, s *runtime.Scheme) error {
	objects := []client.Object{&corev1.Event{}}
	for kind, t := range s.KnownTypes(v1alpha1.SchemeGroupVersion) {
		o, ok := reflect.New(t).Interface().(client.Object)
		// Some types of Kubernetes are registered in every group.
		if !ok || strings.HasSuffix(kind, "List") || t.PkgPath() != reflect.TypeFor[v1alpha1.VIPService]().PkgPath() {
			continue
		}
		objects = append(objects, o)
	}
	for _, o := range objects {
		i, err := c.GetInformer(ctx, o, cache.BlockUntilSynced(false))
		if err != nil {
			return errors.Wrapf(err, "cannot watch %T", o)
		}
		read := func(o any) {
			b, err := json.Marshal(o)
			if err != nil {
				b = []byte(err.Error())
			}
			a.inspect(fmt.Sprintf("%T", o), b)
		}
		if _, err := i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: read, UpdateFunc: func(_, o any) { read(o) }}); err != nil {
			return errors.Wrapf(err, "cannot watch %T", o)
		}
	}
	return nil
}

// verdict returns an error if a secret was outside of Secrets, or if nothing was inspected.
func (a *audit) verdict() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen == 0 {
		return errors.New("the audit has inspected neither objects nor a log")
	}
	var found []string
	for source, leak := range a.leaks {
		found = append(found, source+": "+leak)
	}
	if len(found) == 0 {
		return nil
	}
	slices.Sort(found)
	return errors.Errorf("found secrets outside of Secrets:\n%s", strings.Join(found, "\n"))
}
