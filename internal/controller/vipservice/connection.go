// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry/apply"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// An api is the part of a tailnet's API that this controller needs.
type api struct {
	services servicesAPI
	devices  devicesAPI
	tailnet  tailnetAPI
}

type servicesAPI interface {
	apply.API

	ServicesAt(ctx context.Context, staleness tailscale.Staleness) ([]tailscale.Service, time.Time, error)
	Hosts(ctx context.Context, service string) ([]tailscale.Host, error)
	HostApproval(ctx context.Context, service, nodeID string) (tailscale.HostApproval, error)
	ApproveHost(ctx context.Context, service, nodeID string) (bool, error)
}

type devicesAPI interface {
	DevicesAt(ctx context.Context, staleness tailscale.Staleness) ([]tailscale.Device, time.Time, error)
}

type tailnetAPI interface {
	Domain(ctx context.Context) (string, error)
}

// A connection is a tailnet and this cluster's identity in it.
type connection struct {
	api       *api
	clusterID string

	// clusterSet is the set of clusters in the provider config. Empty if there is none.
	clusterSet string

	// tailnet is the name of the provider config.
	tailnet string

	// memory is the provider's of the object. See clients.Memory.
	memory memory
}

type memory interface {
	Recall(ctx context.Context) (string, error)
	Remember(ctx context.Context, product string) error
}

// view returns the shared lists: services of the given staleness, and cached devices.
func (c connection) view(ctx context.Context, staleness tailscale.Staleness) (registry.View, error) {
	services, at, err := c.api.services.ServicesAt(ctx, staleness)
	if err != nil {
		return registry.View{}, errors.Wrap(err, "cannot list services")
	}
	devices, devicesAt, err := c.api.devices.DevicesAt(ctx, tailscale.Cached)
	return registry.View{Services: services, ServicesAt: at, Devices: devices, DevicesAt: devicesAt}, errors.Wrap(err, "cannot list devices")
}

// self returns what the object is in the registry.
func (c connection) self(mg *v1alpha1.VIPService) registry.Self {
	return registry.Self{Cluster: c.clusterID, Operator: mg.GetNamespace() + "/" + mg.GetName()}
}

// owner returns the name of the object in annotations of services.
func (c connection) owner(mg *v1alpha1.VIPService) string { return c.self(mg).Owner() }
