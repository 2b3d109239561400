// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

// interval is how often Await asks for permissions. Kubernetes has no watch for them.
const interval = 30 * time.Second

// A Permission is one for all verbs on a resource, or on a subresource as RESOURCE/SUBRESOURCE, in all namespaces.
type Permission struct {
	Resource schema.GroupResource
	Verbs    []string
}

// Await calls add when the manager's client has all permissions: at once, or else while the manager runs. Without them,
// the log has the duty that the provider lacks, and an advice for a person.
func Await(mgr ctrl.Manager, log logging.Logger, duty, advice string, permissions []Permission, add func() error) error {
	ok, err := all(context.Background(), mgr.GetClient(), permissions)
	if err != nil {
		return err
	}
	if ok {
		return add()
	}
	log.Info("Not allowed to " + duty + "; " + advice)
	return errors.Wrap(mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		err := wait.PollUntilContextCancel(ctx, interval, false, func(ctx context.Context) (bool, error) {
			ok, err := all(ctx, mgr.GetClient(), permissions)
			if err != nil {
				log.Info("Cannot ask for the permissions to "+duty, "error", err)
			}
			return ok && err == nil, nil
		})
		if err != nil {
			return nil //nolint:nilerr // The manager stops.
		}
		log.Info("Allowed to " + duty)
		return add()
	})), "cannot wait for permissions")
}

// all reports whether the client has all permissions.
func all(ctx context.Context, kube client.Client, permissions []Permission) (bool, error) {
	for _, p := range permissions {
		if ok, err := Allowed(ctx, kube, "", p.Resource, p.Verbs...); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}
