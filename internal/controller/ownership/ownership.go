// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package ownership decides which managed object owns an object of the tailnet, where Tailscale
// assigns the ID and the object cannot carry annotations. It uses a marker in the object's
// description, the recorded attempts to create it, and the parts of other objects in the cluster.
// Lookup finds such objects for all kinds.
package ownership

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/contention"
	"github.com/tailscale-gateway/tailscale-gateway/internal/marks"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// annotationForeign holds the ID of an object of the tailnet that existed before the managed object
// was created: an attempted create does not make it ours.
const annotationForeign = "gateway.tailscale.com/foreign"

// annotationMadeNothing holds the start of a create, as the external-create-pending annotation has
// it, that made nothing for certain, and neither did the creates before it.
const annotationMadeNothing = "gateway.tailscale.com/create-made-nothing"

// maxDescription is the maximum length of the description of a key or credential in Tailscale, in
// characters.
const maxDescription = 50

// notAllowed matches the characters that a description may not have.
var notAllowed = regexp.MustCompile(`[^A-Za-z0-9 -]`)

// Marker returns the beginning of the descriptions of everything that is made for a
// managed object. It is unique among the objects of all clusters.
func Marker(clusterID string, mg resource.Managed) string {
	return marks.Credential(clusterID, mg.GetNamespace(), mg.GetName())
}

// Description returns the marker and the text, or the object's name if the text is empty,
// cut to the allowed length.
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

// CreateStarted reports whether a create of the object was ever started.
func CreateStarted(mg resource.Managed) bool { return !xpmeta.GetExternalCreatePending(mg).IsZero() }

// Unanswered reports whether the result of the object's last create is unknown: it was started, its
// success was not recorded, and neither was that it made nothing.
func Unanswered(mg resource.Managed) bool {
	a := mg.GetAnnotations()
	return CreateStarted(mg) && xpmeta.GetExternalCreateSucceeded(mg).Before(xpmeta.GetExternalCreatePending(mg)) &&
		a[annotationMadeNothing] != a[xpmeta.AnnotationKeyExternalCreatePending]
}

// Attempted reports whether the result of the object's last create is unknown. An object of the
// tailnet that looks like it, and has the ID, may then be the create's result.
func Attempted(mg resource.Managed, id string) bool {
	return Unanswered(mg) && mg.GetAnnotations()[annotationForeign] != id
}

// A notSentError is an error from before the request that creates an object.
type notSentError struct{ error }

// Unwrap returns the error.
func (e notSentError) Unwrap() error { return e.error }

// NotSent marks the error of a Create that has not sent the request that creates the object. It
// returns nil for nil.
func NotSent(err error) error {
	if err == nil {
		return nil
	}
	return notSentError{err}
}

// RecordFailure records in a Create whether its error leaves unknown if the tailnet has a new
// object. Unresolved reports whether the result of an earlier create was unknown. A create first looks
// for the result of an earlier one, so that an answer which refuses it ends the doubt, too, except
// that something like the object exists.
func RecordFailure(mg resource.Managed, err error, unresolved bool) {
	var notSent notSentError
	certain := tailscale.IsRefused(err) && (!unresolved || tailscale.ClassOf(err) != tailscale.ClassConflict)
	if errors.As(err, &notSent) {
		certain = !unresolved
	}
	if !certain {
		xpmeta.RemoveAnnotations(mg, annotationMadeNothing)
		return
	}
	xpmeta.AddAnnotations(mg, map[string]string{annotationMadeNothing: mg.GetAnnotations()[xpmeta.AnnotationKeyExternalCreatePending]})
}

// Owns reports whether the managed object owns the object of the tailnet with the ID, and may
// delete it.
func Owns(mg resource.Managed, id string) bool {
	return xpmeta.GetExternalName(mg) == id || Attempted(mg, id)
}

// Manages reports whether an object's management policies let it make or change anything. Otherwise
// it only observes.
func Manages(mg resource.Managed) bool {
	return contention.Writes(mg) || slices.Contains(mg.GetManagementPolicies(), xpv2.ManagementActionCreate)
}

// SetNotOwned records in a Create that the object of the tailnet with the ID has another owner.
func SetNotOwned(mg resource.Managed, id string) {
	xpmeta.AddAnnotations(mg, map[string]string{annotationForeign: id})
}

// SetOwned records in a Create that the managed object owns the object of the tailnet with the ID.
func SetOwned(mg resource.Managed, id string) {
	xpmeta.RemoveAnnotations(mg, annotationForeign)
	xpmeta.SetExternalName(mg, id)
}

// NotOwned sets the condition of an object that must not change an existing object of the tailnet,
// and returns an error with the message.
func NotOwned(mg resource.Managed, format string, args ...any) error {
	err := errors.Errorf(format, args...)
	mg.SetConditions(contention.NotReady(meta.ReasonForeignObject, err.Error()))
	return err
}

// Missing returns the error of a managed object whose external name names an object that does not
// exist and that it never made.
func Missing(mg resource.Managed, singular string) error {
	return errors.Errorf("there is no %s with the id %q; correct or remove the annotation %s", singular, xpmeta.GetExternalName(mg), xpmeta.AnnotationKeyExternalName)
}

// A ConflictError reports that an older object of the cluster manages the same part of the tailnet as another object.
type ConflictError struct{ message string }

// Error implements error.
func (e *ConflictError) Error() string { return e.message }

// IsConflict reports whether an error is a ConflictError.
func IsConflict(err error) bool {
	var c *ConflictError
	return errors.As(err, &c)
}

// IgnoreConflict returns nil for a ConflictError of an object that is being deleted: the object of
// the tailnet stays with the managed object that manages it.
func IgnoreConflict(mg resource.Managed, err error) error {
	if xpmeta.WasDeleted(mg) && IsConflict(err) {
		return nil
	}
	return err
}

// ByExternalName returns the external name of an object as its part of the tailnet.
func ByExternalName(mg resource.Managed) string { return xpmeta.GetExternalName(mg) }

// CheckConflict returns a ConflictError, and sets the condition, if an older object of the cluster
// manages the same part of the tailnet. part returns the name of an object's part, or "" for none.
func CheckConflict(ctx context.Context, kube client.Reader, l resource.ManagedList, kind string, mg resource.ModernManaged, part func(resource.Managed) string) error {
	if part(mg) == "" || !Manages(mg) {
		return nil
	}
	// Lists all namespaces, because objects of several namespaces may use one tailnet.
	if err := kube.List(ctx, l); err != nil {
		return errors.Wrapf(err, "cannot list objects of kind %s", kind)
	}
	var others []contention.Contender
	for _, o := range l.GetItems() {
		if m, ok := o.(resource.ModernManaged); ok && Manages(m) && part(m) != "" {
			others = append(others, contention.New(m, "", part(m)))
		}
	}
	lost := contention.Conflicts(contention.New(mg, "", part(mg)), others)
	if len(lost) == 0 {
		return nil
	}
	err := &ConflictError{message: contention.Message(kind, lost)}
	mg.SetConditions(contention.NotReady(meta.ReasonConflict, err.Error()))
	return err
}
