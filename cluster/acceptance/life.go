// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	managedkinds "github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
	"github.com/tailscale-gateway/tailscale-gateway/test/lifecycle"
)

// clusterID is the cluster of all objects in memory: what they add to a tailnet is marked with it.
const clusterID = "acceptance"

// A life is an object of a kind, which exists in memory only, with the kind's controller and the
// tailnet of the run.
type life[T resource.ModernManaged] struct {
	*turn
	lifecycle.Case[T]

	mg        T
	kube      client.Client
	connector managed.TypedExternalConnector[T]
	publisher managed.LocalConnectionPublisher

	// additions returns what the object's spec adds to the tailnet. entries has the numbers in the
	// ledger of all that the object has added or may have added.
	additions func(T) []object
	entries   map[object]int
}

// newLife creates the object of a case.
func newLife[T resource.ModernManaged](ctx context.Context, t *turn, k managedkinds.Kind[T], c lifecycle.Case[T], additions func(T) []object) (*life[T], error) {
	s := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		return nil, errors.Wrap(err, "cannot build a scheme")
	}
	l := &life[T]{turn: t, Case: c, mg: c.New(), additions: additions, entries: map[object]int{}}
	// The API server and Crossplane set these fields.
	l.mg.SetNamespace(t.run.prefix)
	l.mg.SetName(t.row.name)
	l.mg.SetUID(types.UID(t.name(t.row.name)))
	l.mg.SetCreationTimestamp(metav1.Now())
	l.mg.SetFinalizers([]string{managed.FinalizerName})
	l.mg.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionAll})
	l.mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: t.run.prefix})
	l.mg.SetWriteConnectionSecretToReference(&xpv2.LocalSecretReference{Name: t.row.name})

	l.kube = fake.NewClientBuilder().WithScheme(s).WithObjects(l.mg).Build()
	if err := l.kube.Get(ctx, client.ObjectKeyFromObject(l.mg), l.mg); err != nil {
		return nil, errors.Wrap(err, "cannot get the object")
	}
	l.publisher = managed.NewAPILocalSecretPublisher(l.kube, s)
	l.connector = k.External(managedkinds.Env{Kube: l.kube, Live: l.kube, Record: event.NewNopRecorder()},
		func(context.Context, resource.ModernManaged) (*clients.Connection, error) {
			return &clients.Connection{Client: t.product, ClusterID: clusterID}, nil
		})
	return l, nil
}

// pass takes the object through its life.
func (l *life[T]) pass(ctx context.Context) error {
	if err := l.settle(ctx, "create"); err != nil {
		return err
	}
	l.Update(l.mg)
	if err := l.kube.Update(ctx, l.mg); err != nil {
		return errors.Wrap(err, "cannot update the object")
	}
	if err := l.settle(ctx, "update"); err != nil {
		return err
	}
	if err := l.Drift(ctx, l.official, l.mg); err != nil {
		return errors.Wrap(err, "cannot change by hand what the controller created")
	}
	if err := l.settle(ctx, "drift"); err != nil {
		return err
	}
	if err := l.kube.Delete(ctx, l.mg); err != nil {
		return errors.Wrap(err, "cannot delete the object")
	}
	if err := l.kube.Get(ctx, client.ObjectKeyFromObject(l.mg), l.mg); err != nil {
		return errors.Wrap(err, "cannot get the object")
	}
	if err := l.settle(ctx, "delete"); err != nil {
		return err
	}
	return l.forget()
}

// settle reconciles the object until the controller has nothing to do and the tailnet matches. Errors
// are repeated, as by Crossplane, unless the plan or the credential is the reason.
func (l *life[T]) settle(ctx context.Context, step string) error {
	took, err := l.until(ctx, step, func(ctx context.Context) (string, error) {
		err := l.converge(ctx)
		return messageOf(err), lacking(err)
	})
	l.measure(step, took)
	return err
}

// converge reconciles the object once, and returns an error if the controller is not done, or if the
// tailnet does not match.
func (l *life[T]) converge(ctx context.Context) error {
	done, err := l.reconcile(ctx)
	if err != nil {
		return err
	}
	if !done {
		return errors.New("the controller is not done")
	}
	return l.matches(ctx)
}

// reconcile does what Crossplane does with the object each time, and reports whether there was nothing to
// do.
func (l *life[T]) reconcile(ctx context.Context) (done bool, err error) {
	e, err := l.connector.Connect(ctx, l.mg)
	if err != nil {
		return false, err
	}
	o, err := e.Observe(ctx, l.mg)
	if err != nil {
		return false, err
	}
	details := o.ConnectionDetails
	switch {
	case xpmeta.WasDeleted(l.mg) && !o.ResourceExists:
		return true, nil
	case xpmeta.WasDeleted(l.mg):
		_, err = e.Delete(ctx, l.mg)
	case !o.ResourceExists:
		details, err = l.create(ctx, e)
	case !o.ResourceUpToDate:
		if err := l.intend(); err != nil {
			return false, err
		}
		var u managed.ExternalUpdate
		u, err = e.Update(ctx, l.mg)
		details = u.ConnectionDetails
	default:
		done = l.mg.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue
	}
	if err != nil {
		return false, errors.Join(err, l.kube.Update(ctx, l.mg))
	}
	_, err = l.publisher.PublishConnection(ctx, l.mg, details)
	return done, errors.Join(err, l.kube.Update(ctx, l.mg))
}

// create records in the ledger what the object adds, and creates it.
func (l *life[T]) create(ctx context.Context, e managed.TypedExternalClient[T]) (managed.ConnectionDetails, error) {
	first := xpmeta.GetExternalCreatePending(l.mg).IsZero()
	xpmeta.SetExternalCreatePending(l.mg, time.Now())
	if err := errors.Join(l.intend(), l.kube.Update(ctx, l.mg)); err != nil {
		return nil, err
	}
	c, err := e.Create(ctx, l.mg)
	if err == nil {
		xpmeta.SetExternalCreateSucceeded(l.mg, time.Now())
		return c.ConnectionDetails, nil
	}
	xpmeta.SetExternalCreateFailed(l.mg, time.Now())
	if first && tailscale.IsRefused(err) {
		return nil, errors.Join(err, l.forget())
	}
	return nil, err
}

// matches returns an error unless the tailnet has what the object's spec wants, or nothing of an object
// that is being deleted.
func (l *life[T]) matches(ctx context.Context) error {
	var want []object
	if !xpmeta.WasDeleted(l.mg) {
		if err := l.Check(ctx, l.official, l.mg); err != nil {
			return errors.Wrap(err, "the tailnet does not match the object")
		}
		want = l.additions(l.mg)
	}
	n := map[object]int{}
	for _, o := range want {
		n[o] = 1
	}
	for o := range l.entries {
		found, err := l.named(ctx, o)
		if err != nil {
			return err
		}
		if len(found) != n[o] {
			return errors.Errorf("the tailnet has %s %s %d times, want %d", o.kind, o.name, len(found), n[o])
		}
	}
	return nil
}

// intend records what the object is about to add to the tailnet.
func (l *life[T]) intend() error {
	for _, o := range l.additions(l.mg) {
		if _, ok := l.entries[o]; ok {
			continue
		}
		seq, err := l.run.ledger.intend(l.owner(), o.kind, o.name, o.id)
		if err != nil {
			return err
		}
		l.entries[o] = seq
	}
	return nil
}

// forget records that nothing of the object exists.
func (l *life[T]) forget() error {
	var errs []error
	for o, seq := range l.entries {
		errs = append(errs, l.run.ledger.gone(seq))
		delete(l.entries, o)
	}
	return errors.Join(errs...)
}

// lacking returns a skip if an error of the product's client means that the plan or the credential lacks
// something, or nil.
func lacking(err error) error {
	switch tailscale.ClassOf(err) {
	case tailscale.ClassPlanRequired:
		return skipf(skipPlan, "%v", err)
	case tailscale.ClassForbidden:
		return skipf(skipScope, "%v", err)
	}
	return nil
}

// messageOf returns the text of an error, or an empty string for nil.
func messageOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
