// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// titleAnnotation is the name of the file that a layer holds, which oras and others use.
const titleAnnotation = "org.opencontainers.image.title"

// anonymous is the key of contexts whose calls to registries have no credentials.
type anonymous struct{}

// withoutCredentials returns a context whose calls to registries have no credentials.
func withoutCredentials(ctx context.Context) context.Context {
	return context.WithValue(ctx, anonymous{}, true)
}

// registryOptions returns the options of calls to registries: the credentials of docker login, unless the
// context is one without.
func registryOptions(ctx context.Context) []remote.Option {
	if ctx.Value(anonymous{}) != nil {
		return []remote.Option{remote.WithContext(ctx), remote.WithAuth(authn.Anonymous)}
	}
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
}

// attach pushes a file as a referrer of an artifact, whose type is the file's media type:
// https://github.com/opencontainers/distribution-spec/blob/main/spec.md#listing-referrers. For a
// registry without this API, the library maintains the tag that the specification falls back to.
func attach(ctx context.Context, subject name.Digest, mediaType types.MediaType, file string, content []byte) error {
	desc, err := remote.Head(subject, registryOptions(ctx)...)
	if err != nil {
		return errors.Wrapf(err, "cannot read %s", subject)
	}
	// The type of an artifact is the media type of its config.
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), mediaType)
	img, err = mutate.Append(img, mutate.Addendum{
		Layer:       static.NewLayer(content, mediaType),
		MediaType:   mediaType,
		Annotations: map[string]string{titleAnnotation: file},
	})
	if err != nil {
		return errors.Wrapf(err, "cannot add %s", file)
	}
	referrer, ok := mutate.Subject(img, v1.Descriptor{MediaType: desc.MediaType, Size: desc.Size, Digest: desc.Digest}).(v1.Image)
	if !ok {
		return errors.New("a referrer is no image")
	}
	digest, err := referrer.Digest()
	if err != nil {
		return errors.Wrap(err, "cannot compute digest of referrer")
	}
	return errors.Wrapf(remote.Write(subject.Context().Digest(digest.String()), referrer, registryOptions(ctx)...), "cannot attach %s to %s", file, subject)
}

// attached returns the content of the one referrer of an artifact that has this type.
func attached(ctx context.Context, subject name.Digest, mediaType types.MediaType) ([]byte, error) {
	idx, err := remote.Referrers(subject, append(registryOptions(ctx), remote.WithFilter("artifactType", string(mediaType)))...)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot list referrers of %s", subject)
	}
	m, err := idx.IndexManifest()
	if err != nil {
		return nil, errors.Wrapf(err, "cannot read referrers of %s", subject)
	}
	var found []v1.Descriptor
	for _, d := range m.Manifests {
		if d.ArtifactType == string(mediaType) {
			found = append(found, d)
		}
	}
	if len(found) != 1 {
		return nil, errors.Errorf("%s has %d referrers of type %s, want one", subject, len(found), mediaType)
	}
	img, err := remote.Image(subject.Context().Digest(found[0].Digest.String()), registryOptions(ctx)...)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot pull referrer of %s", subject)
	}
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		return nil, errors.Errorf("the referrer of %s has %d layers, want one", subject, len(layers))
	}
	r, err := layers[0].Compressed()
	if err != nil {
		return nil, errors.Wrapf(err, "cannot pull layer of referrer of %s", subject)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	return b, errors.Wrapf(err, "cannot read referrer of %s", subject)
}
