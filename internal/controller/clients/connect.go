// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// A Connection is a client of one tailnet and what its config says beside.
type Connection struct {
	// Client is never nil.
	Client *tailscale.Client

	// ClusterID tells this cluster from others in the tailnet. It is the UID of
	// the provider config where the config does not say.
	ClusterID string

	// ControlURL that nodes log in to. Empty means Tailscale's own.
	ControlURL string

	// Tags of every key that is minted.
	Tags []string
}

// A Connector connects managed resources to their tailnet.
type Connector struct {
	kube  client.Client
	usage resource.ModernTracker
	pool  *tailscale.Pool
}

// NewConnector makes a Connector. Clients come from the pool.
func NewConnector(kube client.Client, pool *tailscale.Pool) *Connector {
	return &Connector{
		kube:  kube,
		usage: resource.NewProviderConfigUsageTracker(kube, &v1alpha1.ProviderConfigUsage{}),
		pool:  pool,
	}
}

// Connect returns the connection that a managed resource asks for. Errors about
// credentials are of type *CredentialsError or come from package tailscale.
func (c *Connector) Connect(ctx context.Context, mg resource.ModernManaged) (*Connection, error) {
	deleted := xpmeta.WasDeleted(mg)
	// In a namespace that goes away no usage can be made: one that is gone must
	// not keep its resource from going as well.
	if !deleted {
		if err := c.usage.Track(ctx, mg); err != nil && !kerrors.HasStatusCause(errors.Cause(err), corev1.NamespaceTerminatingCause) {
			return nil, errors.Wrap(err, "cannot track the use of the provider config")
		}
	}
	uid, spec, err := c.config(ctx, mg)
	if err != nil {
		return nil, err
	}
	s, err := c.secret(ctx, spec.Credentials)
	if err != nil {
		return nil, err
	}
	cfg, err := credentials(s)
	if err != nil {
		return nil, err
	}
	if !deleted {
		if err := Protect(ctx, c.kube, s); err != nil {
			return nil, err
		}
	}
	cfg.URL, cfg.Tailnet = spec.APIURL, spec.Tailnet
	cl, err := c.pool.Client(string(uid), cfg)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a client of Tailscale's API")
	}
	conn := &Connection{Client: cl, ClusterID: spec.ClusterID, ControlURL: spec.ControlURL}
	if conn.ClusterID == "" {
		conn.ClusterID = string(uid)
	}
	for _, t := range spec.Tags {
		conn.Tags = append(conn.Tags, string(t))
	}
	return conn, nil
}

// config reads the provider config that a managed resource names.
func (c *Connector) config(ctx context.Context, mg resource.ModernManaged) (types.UID, v1alpha1.ProviderConfigSpec, error) {
	ref := mg.GetProviderConfigReference()
	if ref == nil {
		return "", v1alpha1.ProviderConfigSpec{}, errors.New("spec.providerConfigRef is not set")
	}
	switch ref.Kind {
	case v1alpha1.ClusterProviderConfigKind:
		pc := &v1alpha1.ClusterProviderConfig{}
		if err := c.kube.Get(ctx, types.NamespacedName{Name: ref.Name}, pc); err != nil {
			return "", pc.Spec, errors.Wrapf(err, "cannot get ClusterProviderConfig %q", ref.Name)
		}
		return pc.GetUID(), pc.Spec, nil
	case v1alpha1.ProviderConfigKind:
		pc := &v1alpha1.ProviderConfig{}
		if err := c.kube.Get(ctx, types.NamespacedName{Namespace: mg.GetNamespace(), Name: ref.Name}, pc); err != nil {
			return "", pc.Spec, errors.Wrapf(err, "cannot get ProviderConfig %q", ref.Name)
		}
		// Else whoever may write a config could use any namespace's Secret.
		if pc.Spec.Credentials.OAuthSecretRef.Namespace != mg.GetNamespace() {
			return "", pc.Spec, errors.Errorf("ProviderConfig %q must use a Secret of its own namespace", ref.Name)
		}
		return pc.GetUID(), pc.Spec, nil
	}
	return "", v1alpha1.ProviderConfigSpec{}, errors.Errorf("spec.providerConfigRef.kind must be ClusterProviderConfig or ProviderConfig, not %q", ref.Kind)
}

func (c *Connector) secret(ctx context.Context, cr v1alpha1.Credentials) (*corev1.Secret, error) {
	ref := cr.OAuthSecretRef
	s := &corev1.Secret{}
	err := c.kube.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, s)
	if kerrors.IsNotFound(err) {
		return nil, &CredentialsError{
			Reason:  meta.ReasonSecretNotFound,
			Message: "Secret " + ref.Namespace + "/" + ref.Name + " does not exist; create it with the keys client_id and client_secret of an OAuth client",
		}
	}
	return s, errors.Wrapf(err, "cannot get Secret %s/%s", ref.Namespace, ref.Name)
}
