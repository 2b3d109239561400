// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package registry implements the lab's container registry: go-containerregistry's, with blobs
// and manifests on disk, so that pushed images outlive the lab's daemon. Package images pushes
// to it.
package registry

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A manifest is the PUT request of a manifest.
type manifest struct {
	// Path is /v2/<repository>/manifests/<tag or digest>.
	Path string `json:"path"`
	// Type is the request's content type.
	Type string `json:"type"`
	Body []byte `json:"body"`
	// Seq orders manifests, because an index may only be put after its parts.
	Seq int `json:"seq"`
}

// A Registry is an HTTP handler that serves the registry's API.
type Registry struct {
	next http.Handler
	dir  string

	// mu guards seq and the files in dir.
	mu  sync.Mutex
	seq int
}

// New returns a registry that stores its content in dir and serves the existing
// content.
func New(ctx context.Context, dir string) (*Registry, error) {
	r := &Registry{dir: filepath.Join(dir, "manifests")}
	for _, d := range []string{r.dir, filepath.Join(dir, "blobs")} {
		if err := os.MkdirAll(d, 0o755); err != nil { // Images are no secret.
			return nil, errors.Wrap(err, "cannot make registry's folder")
		}
	}
	r.next = registry.New(
		registry.WithBlobHandler(registry.NewDiskBlobHandler(filepath.Join(dir, "blobs"))),
		registry.WithReferrersSupport(true),
		registry.Logger(log.New(io.Discard, "", 0)),
	)
	return r, r.load(ctx)
}

func (r *Registry) load(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(r.dir, "*.json"))
	if err != nil {
		return errors.Wrap(err, "cannot list manifests")
	}
	all := make([]manifest, 0, len(files))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return errors.Wrap(err, "cannot read manifest")
		}
		var m manifest
		if err := json.Unmarshal(b, &m); err != nil {
			// The daemon was killed while it wrote the file: the put was not acknowledged.
			if err := os.Remove(f); err != nil {
				return errors.Wrap(err, "cannot remove broken manifest")
			}
			continue
		}
		all = append(all, m)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Seq < all[j].Seq })
	for _, m := range all {
		if rec := r.put(ctx, m); rec.Code >= http.StatusBadRequest {
			return errors.Errorf("cannot serve manifest %q again: %s", m.Path, strings.TrimSpace(rec.Body.String()))
		}
		r.seq = m.Seq
	}
	return nil
}

func (r *Registry) put(ctx context.Context, m manifest) *httptest.ResponseRecorder {
	req := httptest.NewRequestWithContext(ctx, http.MethodPut, m.Path, bytes.NewReader(m.Body))
	req.Header.Set("Content-Type", m.Type)
	rec := httptest.NewRecorder()
	r.next.ServeHTTP(rec, req)
	return rec
}

// ServeHTTP serves the registry's API. A manifest is on disk before its put is
// acknowledged.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPut || !strings.Contains(req.URL.Path, "/manifests/") {
		r.next.ServeHTTP(w, req)
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	m := manifest{Path: req.URL.Path, Type: req.Header.Get("Content-Type"), Body: body, Seq: r.seq + 1}
	// The put is completed even if the client disconnects.
	rec := r.put(context.WithoutCancel(req.Context()), m)
	if rec.Code < http.StatusBadRequest {
		r.seq = m.Seq
		if err := r.save(m); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes()) // If this fails, the client has disconnected.
}

func (r *Registry) save(m manifest) error {
	b, err := json.Marshal(m)
	if err != nil {
		return errors.Wrap(err, "cannot encode manifest")
	}
	sum := sha256.Sum256([]byte(m.Path))
	path := filepath.Join(r.dir, hex.EncodeToString(sum[:])+".json")
	if err := os.WriteFile(path+".new", b, 0o644); err != nil { // Images are no secret.
		return errors.Wrap(err, "cannot write manifest")
	}
	return errors.Wrap(os.Rename(path+".new", path), "cannot keep manifest")
}
