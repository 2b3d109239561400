// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package policyfragment holds the controller of PolicyFragments: parts of a tailnet's policy file.
// Package internal/policyfile merges a fragment into the file.
package policyfragment

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/policyfile"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const (
	// maxConflicts limits the conflicts in the status, and maxShown those in a condition.
	maxConflicts = 64
	maxShown     = 3
)

// reasonPolicyWarnings of events.
const reasonPolicyWarnings event.Reason = "PolicyWarnings"

// An api is the part of a tailnet's client that this controller uses.
type api interface {
	PolicyFile(ctx context.Context, staleness tailscale.Staleness) (tailscale.PolicyFile, error)
	EditPolicyFile(ctx context.Context, edit func(text string) (string, error)) (warnings []string, err error)
}

type external struct {
	kinds.NopDisconnect

	api       api
	clusterID string
	record    event.Recorder
	warned    *warned
}

// Observe compares the fragment with the shared copy of the policy file.
func (e *external) Observe(ctx context.Context, mg *v1alpha1.PolicyFragment) (managed.ExternalObservation, error) {
	deleted := xpmeta.WasDeleted(mg)
	owner, err := e.owner(mg)
	if err != nil {
		mg.SetConditions(notReady(meta.ReasonForeignObject, err.Error()))
		return managed.ExternalObservation{}, err
	}
	staleness := tailscale.Cached
	if deleted {
		staleness = tailscale.Recent
	}
	p, err := e.api.PolicyFile(ctx, staleness)
	if err != nil {
		return managed.ExternalObservation{}, errors.Wrap(err, "cannot get the policy file")
	}
	owned, err := policyfile.Owned([]byte(p.Text), owner)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if deleted {
		e.warned.forget(mg.GetUID())
		return managed.ExternalObservation{ResourceExists: owned > 0, ResourceUpToDate: true}, nil
	}
	if warnings, ok := e.warned.get(mg.GetUID()); ok {
		warn(mg, warnings)
	}
	n := int32(owned)
	if observesOnly(mg) {
		mg.Status.AtProvider = v1alpha1.PolicyFragmentObservation{Owner: owner, Entries: &n}
		if owned > 0 {
			mg.SetConditions(xpv2.Available())
		}
		return managed.ExternalObservation{ResourceExists: owned > 0, ResourceUpToDate: true}, nil
	}
	text, conflicts, err := merge(p.Text, owner, mg)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	mg.Status.AtProvider = v1alpha1.PolicyFragmentObservation{Owner: owner, Entries: &n, Conflicts: listed(conflicts)}
	upToDate := text == p.Text
	switch {
	case len(conflicts) > 0:
		mg.SetConditions(notReady(meta.ReasonConflict, explain(conflicts)))
	case upToDate:
		mg.SetConditions(xpv2.Available())
	}
	// A fragment has nothing to create if other owners' entries satisfy it or conflict with it.
	return managed.ExternalObservation{ResourceExists: owned > 0 || upToDate, ResourceUpToDate: upToDate, Diff: diff(upToDate)}, nil
}

// Create merges the fragment into the policy file.
func (e *external) Create(ctx context.Context, mg *v1alpha1.PolicyFragment) (managed.ExternalCreation, error) {
	mg.SetConditions(xpv2.Creating())
	owner, err := e.owner(mg)
	if err != nil {
		return managed.ExternalCreation{}, err
	}
	// The owner stays the one with which the entries were first marked.
	xpmeta.SetExternalName(mg, owner)
	return managed.ExternalCreation{}, e.write(ctx, mg)
}

// Update merges the fragment into the policy file again.
func (e *external) Update(ctx context.Context, mg *v1alpha1.PolicyFragment) (managed.ExternalUpdate, error) {
	return managed.ExternalUpdate{}, e.write(ctx, mg)
}

// write merges the fragment into the current policy file. Tailscale rejects the whole file if it is
// not valid with the fragment.
func (e *external) write(ctx context.Context, mg *v1alpha1.PolicyFragment) error {
	owner, err := e.owner(mg)
	if err != nil {
		return err
	}
	written := false
	warnings, err := e.api.EditPolicyFile(ctx, func(text string) (string, error) {
		out, _, err := merge(text, owner, mg)
		written = out != text
		return out, err
	})
	if err == nil && written {
		// Tailscale validates a text only if it is written.
		e.warned.set(mg.GetUID(), warnings)
		warn(mg, warnings)
		if c := mg.GetCondition(meta.TypePolicyWarnings); c.Status == corev1.ConditionTrue {
			e.record.Event(mg, event.Warning(reasonPolicyWarnings, errors.New(c.Message)))
		}
	}
	if tailscale.ClassOf(err) == tailscale.ClassInvalid {
		mg.SetConditions(notReady(meta.ReasonPolicyRefused, "Nothing was changed: "+err.Error()+"; correct the fragment, or what it refers to in the policy file"))
	}
	return errors.Wrap(err, "cannot change the policy file")
}

// Delete removes only the object's entries from the policy file.
func (e *external) Delete(ctx context.Context, mg *v1alpha1.PolicyFragment) (managed.ExternalDelete, error) {
	mg.SetConditions(xpv2.Deleting())
	owner, err := e.owner(mg)
	if err != nil {
		return managed.ExternalDelete{}, err
	}
	_, err = e.api.EditPolicyFile(ctx, func(text string) (string, error) {
		out, _, err := policyfile.Merge([]byte(text), owner, nil, policyfile.Options{})
		return string(out), err
	})
	if tailscale.ClassOf(err) == tailscale.ClassInvalid {
		mg.SetConditions(xpv2.Deleting().WithMessage("The policy file does not work without this fragment; remove what needs it first: " + err.Error()))
	}
	return managed.ExternalDelete{}, errors.Wrap(err, "cannot remove the fragment from the policy file")
}

// observesOnly reports whether the object writes nothing.
func observesOnly(mg *v1alpha1.PolicyFragment) bool {
	ps := mg.GetManagementPolicies()
	return len(ps) == 1 && ps[0] == xpv2.ManagementActionObserve
}

// owner returns the mark of the object's entries: its external name. A mark that other objects'
// entries have is used only if the spec permits adoption.
func (e *external) owner(mg *v1alpha1.PolicyFragment) (string, error) {
	object := mg.GetNamespace() + "/" + mg.GetName()
	name := xpmeta.GetExternalName(mg)
	if name == "" {
		return e.clusterID + "/" + object, nil
	}
	if !strings.HasSuffix(name, "/"+object) && !observesOnly(mg) && mg.Spec.ForProvider.AdoptionPolicy != v1alpha1.AdoptionPolicyAdopt {
		return "", errors.Errorf("the external name %q is that of another object's entries; remove the annotation, or set adoptionPolicy to Adopt to take them over", name)
	}
	return name, nil
}

func merge(text, owner string, mg *v1alpha1.PolicyFragment) (string, []policyfile.Conflict, error) {
	es, err := entries(&mg.Spec.ForProvider)
	if err != nil {
		return "", nil, err
	}
	adopt := mg.Spec.ForProvider.AdoptionPolicy == v1alpha1.AdoptionPolicyAdopt
	out, conflicts, err := policyfile.Merge([]byte(text), owner, es, policyfile.Options{Adopt: adopt})
	return string(out), conflicts, errors.Wrap(err, "cannot merge the fragment into the policy file")
}

func listed(cs []policyfile.Conflict) []v1alpha1.PolicyConflict {
	var out []v1alpha1.PolicyConflict
	for _, c := range cs[:min(len(cs), maxConflicts)] {
		out = append(out, v1alpha1.PolicyConflict{Path: path(c.Section, c.Key), Owner: c.Owner})
	}
	return out
}

func explain(cs []policyfile.Conflict) string {
	var parts []string
	for _, c := range cs[:min(len(cs), maxShown)] {
		parts = append(parts, c.String())
	}
	if len(cs) > maxShown {
		parts = append(parts, "and more")
	}
	return "In the policy file " + strings.Join(parts, ", ") + "; change one of the two, or take over what was set by hand with adoptionPolicy Adopt. The rest of the fragment is written"
}

func diff(upToDate bool) string {
	if upToDate {
		return ""
	}
	return "the policy file does not have the fragment as it is"
}

func notReady(reason xpv2.ConditionReason, message string) xpv2.Condition {
	return xpv2.Condition{
		Type:               xpv2.TypeReady,
		Status:             corev1.ConditionFalse,
		LastTransitionTime: metav1.Now(),
		Reason:             reason,
		Message:            message,
	}
}
