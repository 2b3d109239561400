// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package files reads Kubernetes objects from a folder of YAML, for an Envoy Gateway that does the
// same: with both you can try routes without a cluster. The index handles the objects.
package files

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

const (
	// interval between checks of the folder. Polling is more reliable than notifications, because
	// editors replace files in many ways.
	interval = 200 * time.Millisecond

	// defaultNamespace of objects without a namespace, as in kubectl.
	defaultNamespace = "default"

	// buffer is the number of bytes that distinguish JSON from YAML.
	buffer = 4096
)

// Apply gets the new and changed objects, and the removed ones.
type Apply func(changed, removed []client.Object)

// A Source reads the .yaml and .yml files of a folder, without its subfolders.
type Source struct {
	dir    string
	scheme *runtime.Scheme
	kinds  map[schema.GroupKind]bool
	apply  Apply
	log    logging.Logger

	synced      chan struct{}
	fingerprint string
	objects     map[id]client.Object
}

// An id of an object.
type id struct {
	schema.GroupKind
	client.ObjectKey
}

// NewSource returns a source for a folder. It ignores objects of other kinds than the given ones.
// Objects of kinds in the scheme get their types, and all others are unstructured.
func NewSource(dir string, s *runtime.Scheme, kinds map[schema.GroupKind]bool, a Apply, log logging.Logger) *Source {
	return &Source{dir: dir, scheme: s, kinds: kinds, apply: a, log: log, synced: make(chan struct{}), objects: map[id]client.Object{}}
}

// Synced returns a channel that is closed after the first read of the folder.
func (s *Source) Synced() <-chan struct{} { return s.synced }

// Start reads the folder whenever it changes, until ctx ends. An unreadable file is logged, and
// read again after its next change; it is an error only at the start.
func (s *Source) Start(ctx context.Context) error {
	if err := s.read(); err != nil {
		return err
	}
	close(s.synced)
	wait.UntilWithContext(ctx, func(context.Context) {
		if err := s.read(); err != nil {
			s.log.Info("Cannot read files", "error", err)
		}
	}, interval)
	return nil
}

// read reads the folder if it has changed.
func (s *Source) read() error {
	names, fingerprint, err := s.stat()
	if err != nil {
		return err
	}
	if fingerprint == s.fingerprint {
		return nil
	}
	// Log an error once: the next change of a file causes another read.
	s.fingerprint = fingerprint

	objects := map[id]client.Object{}
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(s.dir, name))
		if err != nil {
			return errors.Wrapf(err, "cannot read %q", name)
		}
		read, err := s.decode(b)
		if err != nil {
			return errors.Wrapf(err, "cannot read %q", name)
		}
		for _, o := range read {
			objects[s.id(o)] = o
		}
	}
	s.update(objects)
	return nil
}

// stat returns the paths of the files, and a fingerprint of their metadata.
func (s *Source) stat() ([]string, string, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, "", errors.Wrapf(err, "cannot read folder %q", s.dir)
	}
	var names []string
	var fingerprint strings.Builder
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); e.IsDir() || ext != ".yaml" && ext != ".yml" {
			continue
		}
		// Follow links.
		info, err := os.Stat(filepath.Join(s.dir, e.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, "", errors.Wrapf(err, "cannot inspect %q", e.Name())
		}
		names = append(names, e.Name())
		fingerprint.WriteString(e.Name() + "\x00" + info.ModTime().UTC().Format(time.RFC3339Nano) + "\x00" + info.Mode().String() + "\x00")
		fingerprint.WriteString(strconv.FormatInt(info.Size(), 10) + "\n")
	}
	return names, fingerprint.String(), nil
}

// update applies the changes since the last read.
func (s *Source) update(objects map[id]client.Object) {
	var changed, removed []client.Object
	for k, o := range objects {
		if old, ok := s.objects[k]; !ok || !equality.Semantic.DeepEqual(old, o) {
			changed = append(changed, o)
		}
	}
	for k, o := range s.objects {
		if _, ok := objects[k]; !ok {
			removed = append(removed, o)
		}
	}
	s.objects = objects
	if len(changed)+len(removed) == 0 {
		return
	}
	slices.SortFunc(changed, s.compare)
	slices.SortFunc(removed, s.compare)
	s.apply(changed, removed)
}

func (s *Source) id(o client.Object) id {
	return id{GroupKind: o.GetObjectKind().GroupVersionKind().GroupKind(), ObjectKey: client.ObjectKeyFromObject(o)}
}

func (s *Source) compare(a, b client.Object) int {
	x, y := s.id(a), s.id(b)
	return cmp.Or(cmp.Compare(x.Group, y.Group), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
}

// decode decodes the documents of a file.
func (s *Source) decode(b []byte) ([]client.Object, error) {
	d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(b), buffer)
	var out []client.Object
	for {
		u := &unstructured.Unstructured{}
		err := d.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, errors.Wrap(err, "cannot decode YAML")
		}
		if !s.kinds[u.GroupVersionKind().GroupKind()] {
			continue
		}
		o, err := s.typed(u)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
}

// typed returns an object with its type in the scheme.
func (s *Source) typed(u *unstructured.Unstructured) (client.Object, error) {
	gvk := u.GroupVersionKind()
	if u.GetName() == "" {
		return nil, errors.Errorf("a %s has no name", gvk.Kind)
	}
	if u.GetNamespace() == "" {
		u.SetNamespace(defaultNamespace)
	}
	if !s.scheme.Recognizes(gvk) {
		return u, nil
	}
	o, err := s.scheme.New(gvk)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot make a %s", gvk.Kind)
	}
	typed, ok := o.(client.Object)
	if !ok {
		return u, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed); err != nil {
		return nil, errors.Wrapf(err, "cannot read %s %s/%s", gvk.Kind, u.GetNamespace(), u.GetName())
	}
	typed.GetObjectKind().SetGroupVersionKind(gvk)
	return typed, nil
}
