// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/secrets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/marks"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/orphans"
	"github.com/tailscale-gateway/tailscale-gateway/internal/policyfile"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry/apply"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Results of a deletion.
const (
	resultDeleted = "deleted"
	resultStays   = "stays: "
	resultFailed  = "failed: "
)

// maxPasses limits the steps of leaving a shared service, which takes four.
const maxPasses = 10

// A staysError is the reason why an item was not deleted although the report permits it.
type staysError string

// Error implements error.
func (e staysError) Error() string { return string(e) }

// A deleter deletes items of one tailnet, and of the cluster. It checks each item again: time has
// passed since the report.
type deleter struct {
	kube     client.Client
	api      *tailscale.Client // Nil for items of the cluster.
	cluster  string
	view     registry.View
	wait     func(ctx context.Context, d time.Duration) error
	progress io.Writer
}

// all deletes items in order, and returns what became of each, and whether a deletion failed. The
// Secrets of a Machine stay if its device does.
func (d *deleter) all(ctx context.Context, items []orphans.Item) (map[orphans.Item]string, bool) {
	out := map[orphans.Item]string{}
	stay := map[string]bool{}
	failed := false
	for _, i := range items {
		err := staysError("its device stays").orNil(i.Kind == orphans.KindSecret && stay[i.Object()])
		if err == nil {
			err = d.delete(ctx, i)
		}
		var stays staysError
		switch {
		case err == nil:
			out[i] = resultDeleted
			fmt.Fprintf(d.progress, "deleted %s %s\n", i.Kind, Quoted(i.Name))
			continue
		case errors.As(err, &stays):
			out[i] = resultStays + stays.Error()
		default:
			out[i], failed = resultFailed+err.Error(), true
		}
		stay[i.Object()] = true
		fmt.Fprintf(d.progress, "%s %s %s\n", i.Kind, Quoted(i.Name), Quoted(out[i]))
	}
	return out, failed
}

func (e staysError) orNil(condition bool) error {
	if condition {
		return e
	}
	return nil
}

func (d *deleter) delete(ctx context.Context, i orphans.Item) error {
	if i.Verdict != orphans.VerdictOrphan || i.Cluster != d.cluster {
		return staysError("it is not this cluster's")
	}
	if err := d.ownerless(ctx, i); err != nil {
		return err
	}
	switch i.Kind {
	case orphans.KindService:
		return stays(apply.Remove(ctx, d.api.Services(), d.self(i), i.Name, nil))
	case orphans.KindRecord:
		return d.leave(ctx, i, i.Shared)
	case orphans.KindShared:
		return d.leave(ctx, i, i.Name)
	case orphans.KindAuthKey:
		return d.key(ctx, i, d.api.Keys().AuthKey, d.api.Keys().RevokeAuthKey)
	case orphans.KindOAuthClient:
		return d.key(ctx, i, d.api.TrustCredentials().TrustCredential, d.api.TrustCredentials().DeleteOAuthClient)
	case orphans.KindFederatedIdentity:
		return d.key(ctx, i, d.api.TrustCredentials().TrustCredential, d.api.TrustCredentials().DeleteFederatedIdentity)
	case orphans.KindDevice:
		return d.device(ctx, i)
	case orphans.KindPolicy:
		if i.Name != d.self(i).Owner() {
			return staysError("it is not this cluster's")
		}
		_, err := d.api.PolicyFile().EditPolicyFile(ctx, func(text string) (string, error) {
			out, _, err := policyfile.Merge([]byte(text), i.Name, nil, policyfile.Options{})
			return string(out), err
		})
		return errors.Wrap(err, "cannot remove the entries from the policy file")
	case orphans.KindSecret:
		return d.secret(ctx, i)
	case orphans.KindRoute:
		return d.route(ctx, i)
	}
	return errors.Errorf("cannot delete the kind %q", i.Kind)
}

// stays returns an error for an object that changed since the report.
func stays(done bool, err error) error {
	if err == nil && !done {
		return staysError("it is gone, or has another owner now")
	}
	return err
}

func (d *deleter) self(i orphans.Item) registry.Self {
	return registry.Self{Cluster: d.cluster, Operator: i.Object()}
}

// ownerless returns an error if the owner of an item exists by now.
func (d *deleter) ownerless(ctx context.Context, i orphans.Item) error {
	kind, object, _ := strings.Cut(i.Owner, " ")
	namespace, name, _ := strings.Cut(object, "/")
	gvk := schema.GroupVersionKind{Group: v1alpha1.Group, Version: v1alpha1.Version, Kind: kind}
	if kind == gatewayKind.Kind {
		gvk = gatewayKind
	}
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(gvk)
	err := d.kube.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, o)
	switch {
	case err == nil:
		return staysError(i.Owner + " exists now")
	case kerrors.IsNotFound(err), apimeta.IsNoMatchError(err):
		return nil
	}
	return errors.Wrapf(err, "cannot check whether %s exists", i.Owner)
}

// key deletes a key or credential that still has its mark.
func (d *deleter) key(ctx context.Context, i orphans.Item, get func(context.Context, string) (*tailscale.Key, error), del func(context.Context, string) error) error {
	k, err := get(ctx, i.Name)
	if tailscale.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return errors.Wrapf(err, "cannot get key %q", i.Name)
	}
	if i.Proof() == "" || marks.Of(k.Description) != i.Proof() {
		return staysError("it has another mark now")
	}
	return errors.Wrapf(del(ctx, i.Name), "cannot delete key %q", i.Name)
}

// device deletes a device that still has the key in the state Secret, and is still offline.
func (d *deleter) device(ctx context.Context, i orphans.Item) error {
	dev, err := d.api.Devices().Device(ctx, i.Name)
	if tailscale.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return errors.Wrapf(err, "cannot get device %q", i.Name)
	}
	switch {
	case dev.NodeID != i.Name || i.Proof() == "" || dev.NodeKey != i.Proof():
		return staysError("it has another key now")
	case dev.ConnectedToControl:
		return staysError("it is online now")
	}
	return errors.Wrapf(d.api.Devices().DeleteDevice(ctx, i.Name), "cannot delete device %q", i.Name)
}

// leave removes this cluster's part of a shared service, and the service after its last cluster, by
// the steps of the provider. If clusters that are not alive have records, only the own record goes:
// the provider would also delete the service, which those clusters create again.
func (d *deleter) leave(ctx context.Context, i orphans.Item, service string) error {
	look := viewOf(d.api)
	v, err := look(ctx, tailscale.Current)
	if err != nil {
		return err
	}
	self, want := d.self(i), registry.Want{Service: service}
	// The registry's steps lead out of any shared service, so the mark must be this cluster's.
	mark := meta.AnnotationOwner
	if i.Kind == orphans.KindShared {
		mark = meta.AnnotationOwnerOperator
	}
	if s := v.Service(i.Name); s == nil || s.Annotations[mark] != self.Owner() {
		return staysError("it is gone, or has another owner now")
	}
	members, _ := v.Members(service)
	others := slices.DeleteFunc(members, func(m registry.Member) bool { return m.Cluster == d.cluster })
	if len(others) > 0 && !slices.ContainsFunc(others, func(m registry.Member) bool { return m.Alive }) {
		if i.Kind != orphans.KindRecord {
			return staysError("other clusters have records for it now")
		}
		_, err := apply.Action(ctx, d.api.Services(), v, self, want, registry.Action{Op: registry.OpDeleteRecord, Name: i.Name})
		return err
	}
	fmt.Fprintf(d.progress, "leaving %s: this takes up to %s\n", Quoted(service), registry.Pause)
	var start time.Time
	for range maxPasses {
		done, next, err := apply.DetachPass(ctx, d.api.Services(), look, self, want, start)
		if err != nil || done {
			return err
		}
		if start = next; !start.IsZero() {
			v, err := look(ctx, tailscale.Recent)
			if err != nil {
				return err
			}
			if err := d.wait(ctx, max(registry.Pause-v.ServicesAt.Sub(start), 0)+time.Duration(tailscale.Recent)); err != nil {
				return err
			}
		}
	}
	return errors.Errorf("service %q changes all the time; try again later", service)
}

// secret deletes a Secret of a proxy, and releases it.
func (d *deleter) secret(ctx context.Context, i orphans.Item) error {
	s := &corev1.Secret{}
	namespace, name, _ := strings.Cut(i.Name, "/")
	err := d.kube.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, s)
	if kerrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return errors.Wrapf(err, "cannot get Secret %s", i.Name)
	}
	if s.GetNamespace()+"/"+s.GetLabels()[meta.LabelMachine] != i.Object() || s.GetLabels()[meta.LabelSecretType] != i.Text {
		return staysError("it has other labels now")
	}
	if err := d.remove(ctx, s); err != nil {
		return err
	}
	return secrets.ReleaseState(ctx, d.kube, s)
}

// route deletes a generated route.
func (d *deleter) route(ctx context.Context, i orphans.Item) error {
	r := &metav1.PartialObjectMetadata{}
	r.SetGroupVersionKind(routeKind)
	namespace, name, _ := strings.Cut(i.Name, "/")
	err := d.kube.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, r)
	if kerrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return errors.Wrapf(err, "cannot get HTTPRoute %s", i.Name)
	}
	l := r.GetLabels()
	if _, generated := l[meta.LabelGenerated]; !generated || l[meta.LabelGatewayNamespace]+"/"+l[meta.LabelGateway] != i.Object() {
		return staysError("it has other labels now")
	}
	return d.remove(ctx, r)
}

// remove deletes an object of the cluster, unless it was made again.
func (d *deleter) remove(ctx context.Context, o client.Object) error {
	err := d.kube.Delete(ctx, o, client.Preconditions{UID: ptr.To(o.GetUID())})
	return errors.Wrapf(client.IgnoreNotFound(err), "cannot delete %s/%s", o.GetNamespace(), o.GetName())
}
