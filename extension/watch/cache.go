// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	kmeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// NewCache returns a cache that holds the parts of objects that a Store needs, of all
// namespaces unless some are named. It makes its own mapper if mapper is nil.
func NewCache(cfg *rest.Config, mapper kmeta.RESTMapper, namespaces ...string) (cache.Cache, error) {
	s, err := parse.Scheme()
	if err != nil {
		return nil, err
	}
	o := cache.Options{Scheme: s, Mapper: mapper, DefaultTransform: parse.Strip}
	for _, n := range namespaces {
		if o.DefaultNamespaces == nil {
			o.DefaultNamespaces = map[string]cache.Config{}
		}
		o.DefaultNamespaces[n] = cache.Config{}
	}
	c, err := cache.New(cfg, o)
	return c, errors.Wrap(err, "cannot make a cache")
}
