// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

// permissionInterval is the interval at which the provider asks for its permissions until it has them.
// Kubernetes has no watch for permissions.
const permissionInterval = time.Second

// A starter adds the controllers of a manager that runs, once the provider has its permissions.
//
// Crossplane's RBAC manager grants them some time after the provider has started, and only when the
// ProviderRevision changes: if it has seen that before the Deployment, it waits until the provider is ready
// (internal/controller/rbac/provider/binding/reconciler.go of Crossplane 2.4 watches no Deployments). So a
// provider without permissions is ready, and its health checks answer. Watches that begin before that are
// refused, and client-go repeats them up to half a minute later.
type starter struct {
	log logging.Logger

	// allowed reports whether the provider has the permissions that each installation grants.
	allowed func(context.Context) (bool, error)

	// add adds the controllers.
	add func(context.Context) error
}

// NeedLeaderElection returns false: caches of a replica that is not the leader are filled, too.
func (s starter) NeedLeaderElection() bool { return false }

// Start adds the controllers. An error ends the manager.
func (s starter) Start(ctx context.Context) error {
	waiting, failure := false, ""
	err := wait.PollUntilContextCancel(ctx, permissionInterval, true, func(ctx context.Context) (bool, error) {
		ok, err := s.allowed(ctx)
		switch {
		case err != nil && err.Error() != failure:
			failure = err.Error()
			s.log.Info("Cannot find out whether the provider has its permissions, trying again", "error", err)
		case err == nil && !ok && !waiting:
			waiting = true
			s.log.Info("Waiting for the permission to watch ClusterProviderConfigs, which Crossplane's RBAC manager grants: if this lasts, see its log, or bind the ClusterRoles of the ProviderRevision")
		}
		return ok && err == nil, nil
	})
	if err != nil {
		// The provider stops.
		return nil //nolint:nilerr // The context has ended, which is no failure.
	}
	if waiting || failure != "" {
		s.log.Info("The provider has its permissions")
	}
	return errors.Wrap(s.add(ctx), "cannot add controllers")
}
