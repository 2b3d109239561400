// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package tailnet holds the controller of Tailnets. It observes a tailnet, and manages the settings
// that an object names (settings.go). It makes and deletes nothing in Tailscale.
package tailnet

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/contention"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const (
	// pollUnsettled is the poll interval of a tailnet that has no domain yet or rejects the
	// credential.
	pollUnsettled = 10 * time.Second

	// pollNoSecret is shorter: the poll makes no call to Tailscale, and a Secret that does not
	// exist yet cannot be watched by label.
	pollNoSecret = 2 * time.Second
)

// poll returns when a Tailnet is observed again.
func poll(mg resource.Managed, interval time.Duration) time.Duration {
	t, ok := mg.(*v1alpha1.Tailnet)
	if !ok {
		return interval
	}
	switch c := t.GetCondition(meta.TypeAuthenticated); {
	case c.Reason == meta.ReasonSecretNotFound, c.Reason == meta.ReasonSecretIncomplete:
		return min(interval, pollNoSecret)
	case c.Reason != meta.ReasonCredentialAccepted, t.Status.AtProvider.Name == "":
		return min(interval, pollUnsettled)
	}
	return interval
}

// An api is the part of a tailnet's API that this controller needs.
type api struct {
	devices  devicesAPI
	services servicesAPI
	dns      dnsAPI
	tailnet  tailnetAPI
}

type devicesAPI interface {
	Devices(ctx context.Context, staleness tailscale.Staleness) ([]tailscale.Device, error)
}

type servicesAPI interface {
	Services(ctx context.Context, staleness tailscale.Staleness) ([]tailscale.Service, error)
}

type dnsAPI interface {
	MagicDNS(ctx context.Context, staleness tailscale.Staleness) (bool, error)
}

type tailnetAPI interface {
	Domain(ctx context.Context) (string, error)
	Organization(ctx context.Context, domain string) (tailscale.Organization, error)
	Credential(ctx context.Context) (tailscale.CredentialInfo, error)
	Settings(ctx context.Context, staleness tailscale.Staleness) (tailscale.Settings, error)
	PatchSettings(ctx context.Context, s tailscale.Settings) error
}

type connector struct {
	connect func(ctx context.Context, mg resource.ModernManaged) (*api, error)
	// list returns all Tailnets of the cluster. Callers must not change them.
	list func(ctx context.Context) ([]v1alpha1.Tailnet, error)
}

// Connect connects to the tailnet. A Tailnet reports rejected credentials in its status, so Connect
// passes them to Observe instead of returning an error.
func (c *connector) Connect(ctx context.Context, mg *v1alpha1.Tailnet) (managed.TypedExternalClient[*v1alpha1.Tailnet], error) {
	if xpmeta.WasDeleted(mg) {
		return &external{}, nil
	}
	a, err := c.connect(ctx, mg)
	if err == nil {
		return &external{api: a, list: c.list}, nil
	}
	if _, ok := clients.Authenticated(err); ok {
		return &external{refused: err}, nil
	}
	return nil, err
}

type external struct {
	kinds.NopDisconnect

	api     *api  // Nil if the credential is rejected, or if the Tailnet is being deleted.
	refused error // Why there is no API client.
	list    func(ctx context.Context) ([]v1alpha1.Tailnet, error)
}

// Observe observes the tailnet and its settings.
func (e *external) Observe(ctx context.Context, mg *v1alpha1.Tailnet) (managed.ExternalObservation, error) {
	if xpmeta.WasDeleted(mg) {
		return managed.ExternalObservation{}, nil
	}
	err := e.refused
	if err == nil {
		err = e.observe(ctx, &mg.Status.AtProvider)
	}
	cond, ok := clients.Authenticated(err)
	if !ok {
		return managed.ExternalObservation{}, err
	}
	mg.SetConditions(cond)
	if err != nil {
		ready := xpv2.Unavailable().WithMessage(cond.Message)
		if cond.Reason == meta.ReasonTailnetChanged || cond.Reason == meta.ReasonTailnetUnknown {
			// The credential works, and leads to another tailnet: the reason is that of each kind.
			ready.Reason = cond.Reason
		}
		mg.SetConditions(ready)
		// The condition reports the error, which is the purpose of a Tailnet.
		return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
	}
	v, err := e.viewSettings(ctx, mg, 0)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	// A Tailnet without settings is never created.
	unmade := mg.Spec.ForProvider.Settings != nil && contention.NeedsFirstWrite(mg)
	if v.changes {
		return managed.ExternalObservation{ResourceExists: !unmade}, nil
	}
	mg.SetConditions(v.ready())
	if err := v.blocked(); err != nil {
		return managed.ExternalObservation{}, err
	}
	return managed.ExternalObservation{ResourceExists: !unmade, ResourceUpToDate: true}, nil
}

func (e *external) observe(ctx context.Context, o *v1alpha1.TailnetObservation) error {
	// The first device shows the domain, so do not wait until the shared list expires.
	staleness := tailscale.Cached
	if o.Name == "" {
		staleness = tailscale.Recent
	}
	devices, err := e.api.devices.Devices(ctx, staleness)
	if err != nil {
		return errors.Wrap(err, "cannot list devices")
	}
	services, err := e.api.services.Services(ctx, tailscale.Cached)
	if err != nil {
		return errors.Wrap(err, "cannot list services")
	}
	domain, err := e.api.tailnet.Domain(ctx)
	if err != nil {
		return errors.Wrap(err, "cannot learn the tailnet's domain")
	}
	dc, cc, sc := int64(len(devices)), int64(0), int64(len(services))
	for i := range devices {
		if devices[i].ConnectedToControl {
			cc++
		}
	}
	o.DeviceCount, o.ConnectedDevices, o.ServiceCount = &dc, &cc, &sc
	// Nothing depends on it: after a failed call the last value stays.
	if i, err := e.api.tailnet.Credential(ctx); err == nil {
		o.Credential = credential(i)
	}
	// The tailnet keeps its name when its last device is gone.
	if domain != "" {
		o.Name, o.MagicDNSSuffix = domain, domain
	}
	e.observeOrganization(ctx, o)
	// Reading DNS settings needs a scope that nothing else needs.
	enabled, err := e.api.dns.MagicDNS(ctx, tailscale.Cached)
	if tailscale.ClassOf(err) == tailscale.ClassForbidden {
		o.MagicDNS = nil
		return nil
	}
	if err != nil {
		return errors.Wrap(err, "cannot get DNS preferences")
	}
	o.MagicDNS = &enabled
	return nil
}

// credential returns the observation of the credential, or nil if nothing is known about it.
func credential(i tailscale.CredentialInfo) *v1alpha1.CredentialObservation {
	if len(i.Scopes) == 0 && i.Expires.IsZero() {
		return nil
	}
	out := &v1alpha1.CredentialObservation{}
	for _, s := range i.Scopes {
		out.Scopes = append(out.Scopes, tailscale.OneLine(s))
	}
	out.Scopes = out.Scopes[:min(len(out.Scopes), maxScopes)]
	if !i.Expires.IsZero() {
		out.ExpiresAt = &metav1.Time{Time: i.Expires.UTC().Truncate(time.Second)}
	}
	return out
}

// maxScopes limits the listed scopes. The schema allows no more, and Tailscale has fewer.
const maxScopes = 128

// observeOrganization reads the organization that owns the tailnet. Few credentials may read it and
// nothing depends on it: after a failed call the last value stays.
func (e *external) observeOrganization(ctx context.Context, o *v1alpha1.TailnetObservation) {
	org, err := e.api.tailnet.Organization(ctx, o.Name)
	if err != nil {
		return
	}
	o.ID, o.Organization, o.OrganizationID = org.TailnetID, org.TailnetName, org.ID
}

// Delete is never called: a Tailnet that is being deleted has nothing to clean up.
func (e *external) Delete(context.Context, *v1alpha1.Tailnet) (managed.ExternalDelete, error) {
	return managed.ExternalDelete{}, nil
}
