// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnet

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/contention"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// A view holds the observed settings of a tailnet, and the consequences.
type view struct {
	// Change is what to write, if changes is true.
	change  tailscale.Settings
	changes bool

	// Lost are settings that an older object manages.
	lost map[string]contention.Contender

	// Hidden are the OAuth scopes, sorted, that the credential lacks to read the wanted settings.
	hidden []string
}

// Create writes the settings for the first time. The next observation reports why some of them
// could not be written.
func (e *external) Create(ctx context.Context, mg *v1alpha1.Tailnet) (managed.ExternalCreation, error) {
	return managed.ExternalCreation{}, e.putSettings(ctx, mg)
}

// Update writes the settings that differ from the spec.
func (e *external) Update(ctx context.Context, mg *v1alpha1.Tailnet) (managed.ExternalUpdate, error) {
	if err := e.putSettings(ctx, mg); err != nil {
		return managed.ExternalUpdate{}, err
	}
	v, err := e.viewSettings(ctx, mg, 0)
	if err != nil {
		return managed.ExternalUpdate{}, err
	}
	mg.SetConditions(v.ready())
	return managed.ExternalUpdate{}, v.blocked()
}

func (e *external) putSettings(ctx context.Context, mg *v1alpha1.Tailnet) error {
	v, err := e.viewSettings(ctx, mg, tailscale.Current)
	if err != nil || !v.changes {
		return err
	}
	if err := e.api.tailnet.PatchSettings(ctx, v.change); err != nil {
		err = errors.Wrap(err, "cannot write settings")
		mg.SetConditions(xpv2.Unavailable().WithMessage(err.Error()))
		return err
	}
	return nil
}

// viewSettings reads the settings into the object's status. An error, such as a missing scope, is
// only reported if the spec names settings.
func (e *external) viewSettings(ctx context.Context, mg *v1alpha1.Tailnet, staleness tailscale.Staleness) (view, error) {
	wanted := mg.Spec.ForProvider.Settings
	manages := wanted != nil && contention.Writes(mg)
	current, err := e.api.tailnet.Settings(ctx, staleness)
	forbidden := tailscale.ClassOf(err) == tailscale.ClassForbidden
	if err != nil && !forbidden {
		if manages {
			return view{}, errors.Wrap(err, "cannot get settings")
		}
		return view{}, nil
	}
	mg.Status.AtProvider.Settings = nil
	if current != (tailscale.Settings{}) {
		// A copy: the settings are shared, and the API server's answers are decoded into the
		// status.
		o := v1alpha1.TailnetSettings(current)
		mg.Status.AtProvider.Settings = o.DeepCopy()
	}
	if !manages {
		return view{}, nil
	}
	lost, err := e.conflicts(ctx, mg)
	if err != nil {
		return view{}, err
	}
	own, err := tailscale.Settings(*wanted).Without(slices.Collect(maps.Keys(lost))...)
	if err != nil {
		return view{}, err
	}
	change, hidden, err := tailscale.Change(own, current)
	return view{change: change, changes: change != (tailscale.Settings{}), lost: lost, hidden: hidden}, err
}

// conflicts returns the settings that older objects for the same tailnet manage.
func (e *external) conflicts(ctx context.Context, mg *v1alpha1.Tailnet) (map[string]contention.Contender, error) {
	all, err := e.list(ctx)
	if err != nil {
		return nil, err
	}
	self, err := contender(mg)
	if err != nil {
		return nil, err
	}
	var others []contention.Contender
	for i := range all {
		if !contention.Writes(&all[i]) {
			continue
		}
		c, err := contender(&all[i])
		if err != nil {
			return nil, err
		}
		others = append(others, c)
	}
	return contention.Conflicts(self, others), nil
}

func contender(mg *v1alpha1.Tailnet) (contention.Contender, error) {
	if mg.Spec.ForProvider.Settings == nil {
		return contention.New(mg, mg.Status.AtProvider.Name), nil
	}
	names, err := tailscale.Settings(*mg.Spec.ForProvider.Settings).Names()
	return contention.New(mg, mg.Status.AtProvider.Name, names...), err
}

// blocked returns why some settings cannot be written or read, or nil.
func (v view) blocked() error {
	m := contention.Message(v1alpha1.TailnetKind, v.lost)
	if len(v.hidden) > 0 {
		m = "The credential may not see settings that are wanted; give it the OAuth scope: " + strings.Join(v.hidden, ", ")
	}
	if m == "" {
		return nil
	}
	return errors.New(m)
}

// ready returns the condition of an object that needs no write.
func (v view) ready() xpv2.Condition {
	err := v.blocked()
	switch {
	case err == nil:
		return xpv2.Available()
	case len(v.hidden) > 0:
		return contention.NotReady(meta.ReasonScopeMissing, err.Error())
	}
	return contention.NotReady(meta.ReasonConflict, err.Error())
}
