// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	changelogsv1alpha1 "github.com/crossplane/crossplane-runtime/v2/apis/changelogs/proto/v1alpha1"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

// newChangeLogger returns a logger that sends changes to the sidecar behind a Unix socket. It
// does not wait until the sidecar listens.
func newChangeLogger(socket string) (managed.ChangeLogger, error) {
	// The socket is a file of the pod, so only the pod's containers can open it.
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, errors.Wrapf(err, "cannot use the change logs' socket %q", socket)
	}
	return managed.NewGRPCChangeLogger(changelogsv1alpha1.NewChangeLogServiceClient(conn),
		managed.WithProviderVersion(products.Provider+":"+version.Version)), nil
}
