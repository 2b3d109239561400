// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/files"
	"github.com/tailscale-gateway/tailscale-gateway/extension/hooks"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// A Folder is a Source of a folder of files. It waits only for the first read.
type Folder struct{ *files.Source }

// Waiting implements Source.
func (Folder) Waiting() []string { return nil }

// Translated implements Source. There is no API to write to.
func (Folder) Translated(hooks.Translation) int { return 0 }

// Again implements Source.
func (Folder) Again() {}

// Farewell implements Source.
func (Folder) Farewell(logging.Logger) {}

// Silence implements Source.
func (Folder) Silence() time.Duration { return 0 }

// NewFolder returns a source of the objects of the given kinds in a folder.
func NewFolder(dir string, all map[string]client.Object, store *index.Store, log logging.Logger) (Folder, error) {
	s, err := parse.Scheme()
	if err != nil {
		return Folder{}, err
	}
	kinds, err := kindsOf(all, s)
	if err != nil {
		return Folder{}, err
	}
	f := &folder{store: store, log: log, exists: map[heldID]struct{}{}}
	return Folder{files.NewSource(dir, s, kinds, f.apply, log)}, nil
}

// A folder applies the objects of a folder to a store. Named objects that are not in the folder do not
// exist.
type folder struct {
	store *index.Store
	log   logging.Logger

	// exists has the Secrets and ConfigMaps in the folder.
	exists map[heldID]struct{}
}

// A heldID identifies a Secret or ConfigMap.
type heldID struct {
	kind string
	types.NamespacedName
}

func (f *folder) apply(changed, removed []client.Object) {
	var changes []index.Change
	for _, o := range changed {
		if !f.hold(o, true) {
			changes = append(changes, index.Change{Object: o})
		}
	}
	for _, o := range removed {
		if !f.hold(o, false) {
			changes = append(changes, index.Change{Object: o, Deleted: true})
		}
	}
	if err := f.store.Apply(changes...); err != nil {
		f.log.Info("Cannot use an object; the others are used", "error", err)
	}
	for _, n := range f.store.Secrets() {
		if _, ok := f.exists[heldID{parse.KindSecret, n}]; !ok {
			f.holdSecret(n, nil)
		}
	}
	for _, n := range f.store.ConfigMaps() {
		if _, ok := f.exists[heldID{parse.KindConfigMap, n}]; !ok {
			f.holdConfigMap(n, nil)
		}
	}
}

// hold stores the state of a Secret or ConfigMap, which stays while the folder does. It reports whether
// the object is one.
func (f *folder) hold(o client.Object, exists bool) bool {
	n := client.ObjectKeyFromObject(o)
	mark := func(kind string) {
		f.exists[heldID{kind, n}] = struct{}{}
		if !exists {
			delete(f.exists, heldID{kind, n})
		}
	}
	switch o := o.(type) {
	case *corev1.Secret:
		mark(parse.KindSecret)
		if !exists {
			o = nil
		}
		f.holdSecret(n, o)
	case *corev1.ConfigMap:
		mark(parse.KindConfigMap)
		if !exists {
			o = nil
		}
		f.holdConfigMap(n, o)
	default:
		return false
	}
	return true
}

func (f *folder) holdSecret(n types.NamespacedName, o *corev1.Secret) {
	h := parse.ParseSecret(n, o, time.Now())
	f.store.SetSecret(n, &h)
}

func (f *folder) holdConfigMap(n types.NamespacedName, o *corev1.ConfigMap) {
	c, err := f.store.ReadConfigMap(n, o)
	if err != nil {
		f.log.Info("Cannot use an object; the others are used", "error", err)
	}
	f.store.SetConfigMap(n, &c)
}

// kindsOf returns the kinds of objects, Secrets and ConfigMaps. A folder for Envoy Gateway has more
// kinds.
func kindsOf(all map[string]client.Object, s *runtime.Scheme) (map[schema.GroupKind]bool, error) {
	out := map[schema.GroupKind]bool{
		corev1.SchemeGroupVersion.WithKind(parse.KindSecret).GroupKind():    true,
		corev1.SchemeGroupVersion.WithKind(parse.KindConfigMap).GroupKind(): true,
	}
	for _, o := range all {
		gvk, err := apiutil.GVKForObject(o, s)
		if err != nil {
			return nil, errors.Wrapf(err, "cannot get the kind of %T", o)
		}
		out[gvk.GroupKind()] = true
	}
	return out, nil
}
