// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package ownership tells whose an object of a tailnet is, where Tailscale
// assigns its id and the object cannot carry annotations: by a marker in its
// description, by what is known of the attempts to create it, and by the claims
// of other objects of the cluster. What follows is decided by the controllers.
package ownership

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/claims"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// annotationForeign is the id of an object of the tailnet that was somebody
// else's when this one was to be created. The attempt is no sign that it is ours.
const annotationForeign = "gateway.tailscale.com/foreign"

// maxDescription of keys and credentials in Tailscale, in characters.
const maxDescription = 50

// notAllowed are the characters that a description cannot have.
var notAllowed = regexp.MustCompile(`[^A-Za-z0-9 -]`)

// Marker is what the descriptions begin with of all that is made for an object:
// no other object of any cluster has the same.
func Marker(clusterID string, mg resource.Managed) string {
	sum := sha256.Sum256([]byte(clusterID + "/" + mg.GetNamespace() + "/" + mg.GetName()))
	return "tsgw " + hex.EncodeToString(sum[:7])
}

// Description is the marker and what a person wants to read, else the object's
// name, as much of it as fits.
func Description(marker, text string, mg resource.Managed) string {
	if text == "" {
		text = mg.GetNamespace() + "-" + mg.GetName()
	}
	d := marker + " " + notAllowed.ReplaceAllString(text, "-")
	return strings.TrimRight(d[:min(len(d), maxDescription)], " ")
}

// Marked reports whether a description has the marker.
func Marked(description, marker string) bool {
	return description == marker || strings.HasPrefix(description, marker+" ")
}

// Tried reports whether a create of the object was ever begun.
func Tried(mg resource.Managed) bool { return !xpmeta.GetExternalCreatePending(mg).IsZero() }

// Attempted reports whether the last create of the object was begun and its end is
// not recorded, so that an object of the tailnet that looks like it, and has the
// id, may be what came of it.
func Attempted(mg resource.Managed, id string) bool {
	return Tried(mg) && xpmeta.GetExternalCreateSucceeded(mg).Before(xpmeta.GetExternalCreatePending(mg)) && mg.GetAnnotations()[annotationForeign] != id
}

// Made reports whether the object of the tailnet with the id is the managed object's to
// delete.
func Made(mg resource.Managed, id string) bool {
	return xpmeta.GetExternalName(mg) == id || Attempted(mg, id)
}

// Manages reports whether an object's management policies let it make or change
// anything. One that does not only observes.
func Manages(mg resource.Managed) bool {
	return claims.Writes(mg) || slices.Contains(mg.GetManagementPolicies(), xpv2.ManagementActionCreate)
}

// SetForeign notes in a Create that the object of the tailnet with the id is
// somebody else's.
func SetForeign(mg resource.Managed, id string) {
	xpmeta.AddAnnotations(mg, map[string]string{annotationForeign: id})
}

// Created records in a Create that the object of the tailnet with the id is this
// one's.
func Created(mg resource.Managed, id string) {
	xpmeta.RemoveAnnotations(mg, annotationForeign)
	xpmeta.SetExternalName(mg, id)
}

// Foreign sets the condition of an object that must not touch what exists, and
// returns its error.
func Foreign(mg resource.Managed, format string, args ...any) error {
	err := errors.Errorf(format, args...)
	mg.SetConditions(claims.NotReady(meta.ReasonForeignObject, err.Error()))
	return err
}

// Missing is the error of an object that names something which does not exist,
// and never did for it.
func Missing(mg resource.Managed, what string) error {
	return errors.Errorf("there is no %s with the id %q; correct or remove the annotation %s", what, xpmeta.GetExternalName(mg), xpmeta.AnnotationKeyExternalName)
}

// A ConflictError says that an older object of the cluster manages what another
// one wants.
type ConflictError struct{ message string }

// Error implements error.
func (e *ConflictError) Error() string { return e.message }

// Lost reports whether an error says that another object manages what this one
// wants. What that one manages goes with it.
func Lost(err error) bool {
	var c *ConflictError
	return errors.As(err, &c)
}

// Rival returns a ConflictError, and sets the condition, if an older object of
// the cluster manages what this one wants. Claim says what an object wants,
// nothing if it is "".
func Rival(ctx context.Context, kube client.Reader, l resource.ManagedList, kind string, mg resource.ModernManaged, claim func(resource.Managed) string) error {
	if claim(mg) == "" || !Manages(mg) {
		return nil
	}
	// The whole cluster's: objects of several namespaces may mean one tailnet.
	if err := kube.List(ctx, l); err != nil {
		return errors.Wrapf(err, "cannot list objects of kind %s", kind)
	}
	var others []claims.Claimant
	for _, o := range l.GetItems() {
		if m, ok := o.(resource.ModernManaged); ok && Manages(m) && claim(m) != "" {
			others = append(others, claims.New(m, "", claim(m)))
		}
	}
	lost := claims.Lost(claims.New(mg, "", claim(mg)), others)
	if len(lost) == 0 {
		return nil
	}
	err := &ConflictError{message: claims.Message(kind, lost)}
	mg.SetConditions(claims.NotReady(meta.ReasonConflict, err.Error()))
	return err
}
