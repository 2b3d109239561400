// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package logstreamconfiguration holds the controller of LogstreamConfigurations. A tailnet has one
// for each type of logs, and the type is the external name.
package logstreamconfiguration

import (
	"context"
	"encoding/json"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/ownership"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/secrets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// An api is the part of a tailnet's client that this controller uses.
type api interface {
	LogstreamConfiguration(ctx context.Context, logType string) (*tailscale.LogstreamConfiguration, error)
	SetLogstreamConfiguration(ctx context.Context, logType string, r tailscale.LogstreamRequest) error
	DeleteLogstreamConfiguration(ctx context.Context, logType string) error
}

type external struct {
	kinds.NopDisconnect

	api  api
	kube client.Reader

	ours bool // Set by Observe if Create must record or adopt the configuration.
}

// Observe compares the configuration of the object's type of logs with the spec. It requests it
// directly, because a tailnet has at most two.
func (e *external) Observe(ctx context.Context, mg *v1alpha1.LogstreamConfiguration) (managed.ExternalObservation, error) {
	if err := e.checkConflict(ctx, mg); err != nil {
		return managed.ExternalObservation{}, ownership.IgnoreConflict(mg, err)
	}
	t := logType(mg)
	if name := xpmeta.GetExternalName(mg); name != "" && name != t {
		return managed.ExternalObservation{}, errors.Errorf("the annotation %s must be the log type %q, or be removed", xpmeta.AnnotationKeyExternalName, t)
	}
	l, err := e.api.LogstreamConfiguration(ctx, t)
	if err != nil {
		return managed.ExternalObservation{}, errors.Wrapf(err, "cannot get where %s logs are sent", t)
	}
	recorded := xpmeta.GetExternalName(mg) == t
	if xpmeta.WasDeleted(mg) {
		return managed.ExternalObservation{ResourceExists: l != nil && ownership.Owns(mg, t), ResourceUpToDate: true}, nil
	}
	if l == nil {
		mg.Status.AtProvider = v1alpha1.LogstreamConfigurationObservation{}
		return managed.ExternalObservation{}, nil
	}
	if !ownership.Manages(mg) {
		observe(mg, l)
		mg.SetConditions(xpv2.Available())
		return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
	}
	if !recorded {
		if err := mayManage(mg); err != nil {
			return managed.ExternalObservation{}, err
		}
		// Only Create can record the configuration as the object's.
		e.ours = true
		return managed.ExternalObservation{}, nil
	}
	observe(mg, l)
	want, err := e.wanted(ctx, mg)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	h, err := hash(mg, want)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	mg.SetConditions(xpv2.Available())
	d := diff(l, want)
	if d == "" && mg.Status.AtProvider.SecretHash != h {
		d = "secrets, or what the spec says no more"
	}
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: d == "", Diff: d}, nil
}

func logType(mg *v1alpha1.LogstreamConfiguration) string { return string(mg.Spec.ForProvider.LogType) }

func (e *external) checkConflict(ctx context.Context, mg *v1alpha1.LogstreamConfiguration) error {
	return ownership.CheckConflict(ctx, e.kube, &v1alpha1.LogstreamConfigurationList{}, v1alpha1.LogstreamConfigurationKind, mg, func(o resource.Managed) string {
		if l, ok := o.(*v1alpha1.LogstreamConfiguration); ok {
			return logType(l) + " logs"
		}
		return ""
	})
}

// mayManage returns an error if an existing configuration does not belong to the object.
func mayManage(mg *v1alpha1.LogstreamConfiguration) error {
	if mg.Spec.ForProvider.AdoptionPolicy == v1alpha1.AdoptionPolicyAdopt || ownership.Attempted(mg, logType(mg)) {
		return nil
	}
	return ownership.NotOwned(mg, "%s logs are sent somewhere already, and not by this object; stop that, or set adoptionPolicy to Adopt", logType(mg))
}

// observe sets the status. It keeps the last values that were sent, because Tailscale does not
// return them.
func observe(mg *v1alpha1.LogstreamConfiguration, l *tailscale.LogstreamConfiguration) {
	mg.Status.AtProvider = v1alpha1.LogstreamConfigurationObservation{
		LogType:         logType(mg),
		DestinationType: string(l.DestinationType),
		URL:             l.URL,
		SecretHash:      mg.Status.AtProvider.SecretHash,
	}
}

// hash returns a hash of the request, including its secrets, to detect changes since the last
// write.
func hash(mg *v1alpha1.LogstreamConfiguration, r tailscale.LogstreamRequest) (string, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return "", errors.New("cannot encode where logs are to be sent")
	}
	return secrets.Fingerprint(mg, string(b))
}

// wanted returns the desired configuration with secrets.
func (e *external) wanted(ctx context.Context, mg *v1alpha1.LogstreamConfiguration) (tailscale.LogstreamRequest, error) {
	r := request(mg.Spec.ForProvider)
	p := mg.Spec.ForProvider
	for _, s := range []struct {
		ref *xpv2.LocalSecretKeySelector
		dst *string
	}{
		{ref: p.TokenSecretRef, dst: &r.Token},
		{ref: s3SecretRef(p.S3), dst: &r.S3SecretAccessKey},
		{ref: gcsSecretRef(p.GCS), dst: &r.GCSCredentials},
	} {
		if s.ref == nil {
			continue
		}
		v, err := secrets.Value(ctx, e.kube, mg, *s.ref)
		if err != nil {
			return r, err
		}
		*s.dst = v
	}
	return r, nil
}

// Create creates a configuration, or records one that already belongs to the object.
func (e *external) Create(ctx context.Context, mg *v1alpha1.LogstreamConfiguration) (managed.ExternalCreation, error) {
	t := logType(mg)
	l, err := e.api.LogstreamConfiguration(ctx, t)
	if err != nil {
		return managed.ExternalCreation{}, ownership.NotSent(errors.Wrapf(err, "cannot get where %s logs are sent", t))
	}
	if l != nil && !e.ours && xpmeta.GetExternalName(mg) != t && mg.Spec.ForProvider.AdoptionPolicy != v1alpha1.AdoptionPolicyAdopt {
		ownership.SetNotOwned(mg, t)
		return managed.ExternalCreation{}, ownership.NotSent(mayManage(mg))
	}
	want, err := e.wanted(ctx, mg)
	if err != nil {
		return managed.ExternalCreation{}, ownership.NotSent(err)
	}
	if err := e.api.SetLogstreamConfiguration(ctx, t, want); err != nil {
		return managed.ExternalCreation{}, errors.Wrapf(err, "cannot set where %s logs are sent", t)
	}
	ownership.SetOwned(mg, t)
	return managed.ExternalCreation{}, nil
}

// Update replaces the configuration.
func (e *external) Update(ctx context.Context, mg *v1alpha1.LogstreamConfiguration) (managed.ExternalUpdate, error) {
	t := logType(mg)
	want, err := e.wanted(ctx, mg)
	if err != nil {
		return managed.ExternalUpdate{}, err
	}
	if err := e.api.SetLogstreamConfiguration(ctx, t, want); err != nil {
		return managed.ExternalUpdate{}, errors.Wrapf(err, "cannot set where %s logs are sent", t)
	}
	mg.Status.AtProvider.SecretHash, err = hash(mg, want)
	return managed.ExternalUpdate{}, err
}

// Delete deletes the configuration.
func (e *external) Delete(ctx context.Context, mg *v1alpha1.LogstreamConfiguration) (managed.ExternalDelete, error) {
	mg.SetConditions(xpv2.Deleting())
	t := logType(mg)
	return managed.ExternalDelete{}, errors.Wrapf(e.api.DeleteLogstreamConfiguration(ctx, t), "cannot stop sending %s logs", t)
}

func s3SecretRef(p *v1alpha1.LogstreamS3) *xpv2.LocalSecretKeySelector {
	if p == nil {
		return nil
	}
	return p.SecretAccessKeySecretRef
}

func gcsSecretRef(p *v1alpha1.LogstreamGCS) *xpv2.LocalSecretKeySelector {
	if p == nil {
		return nil
	}
	return &p.CredentialsSecretRef
}

// diff returns the name of a field that differs from the spec. Tailscale chooses the fields that
// the spec does not set.
func diff(observed *tailscale.LogstreamConfiguration, want tailscale.LogstreamRequest) string {
	switch {
	case observed.DestinationType != want.DestinationType:
		return "destinationType"
	case want.URL != "" && observed.URL != want.URL:
		return "url"
	case want.User != "" && observed.User != want.User:
		return "user"
	case want.UploadPeriodMinutes != 0 && observed.UploadPeriodMinutes != want.UploadPeriodMinutes:
		return "uploadPeriodMinutes"
	case want.CompressionFormat != "" && observed.CompressionFormat != want.CompressionFormat:
		return "compressionFormat"
	case observed.S3Bucket != want.S3Bucket || observed.S3Region != want.S3Region || observed.S3KeyPrefix != want.S3KeyPrefix ||
		observed.S3AuthenticationType != want.S3AuthenticationType || observed.S3AccessKeyID != want.S3AccessKeyID || observed.S3RoleARN != want.S3RoleARN ||
		(want.S3ExternalID != "" && observed.S3ExternalID != want.S3ExternalID):
		return "s3"
	case observed.GCSBucket != want.GCSBucket || observed.GCSKeyPrefix != want.GCSKeyPrefix ||
		(len(want.GCSScopes) > 0 && !slices.Equal(slices.Sorted(slices.Values(observed.GCSScopes)), want.GCSScopes)):
		return "gcs"
	}
	return ""
}
