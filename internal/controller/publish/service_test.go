// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/allow"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

var errBoom = errors.New("boom")

type recorder struct{ events []event.Event }

func (r *recorder) Event(_ runtime.Object, e event.Event)    { r.events = append(r.events, e) }
func (r *recorder) WithAnnotations(...string) event.Recorder { return r }

// grantTo allows namespaces by the name of a ClusterProviderConfig.
type grantTo map[string]string

func (g grantTo) Grant(_ context.Context, namespace string, ref xpv2.ProviderConfigReference) (*allow.Grant, error) {
	if g[ref.Name] != namespace {
		return nil, &clients.CredentialsError{Reason: meta.ReasonNamespaceNotAllowed, Message: "no"}
	}
	return &allow.Grant{}, nil
}

// managedOnly reads the objects that this package has created, as the cache does.
type managedOnly struct{ client.Reader }

func (m managedOnly) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if err := m.Reader.Get(ctx, key, o, opts...); err != nil {
		return err
	}
	if !owns(o) {
		return kerrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	return nil
}

func (m managedOnly) List(ctx context.Context, l client.ObjectList, opts ...client.ListOption) error {
	return m.Reader.List(ctx, l, append(opts, client.MatchingLabels{meta.LabelManagedBy: meta.ManagedByPublish})...)
}

func fakeClient(create error, objects ...client.Object) client.WithWatch {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, gatewayv1alpha1.AddToScheme, v1alpha1.AddToScheme} {
		utilruntime.Must(add(s))
	}
	return fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).
		WithStatusSubresource(&corev1.Service{}, &gatewayv1alpha1.TailscaleServices{}).
		WithInterceptorFuncs(interceptor.Funcs{Create: func(ctx context.Context, kube client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if create != nil {
				return create
			}
			return kube.Create(ctx, o, opts...)
		}}).Build()
}

func tailnet(name string) client.Object {
	return &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// strange is a TailscaleServices of the user with the Service's name.
func strange() *gatewayv1alpha1.TailscaleServices {
	return &gatewayv1alpha1.TailscaleServices{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-strange"},
		Spec:       gatewayv1alpha1.TailscaleServicesSpec{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "proxies"}}},
	}
}

func TestReconcile(t *testing.T) {
	resource := schema.GroupResource{Group: gatewayv1alpha1.Group, Resource: "tailscaleservices"}
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	renamed := annotated(meta.AnnotationHostname, "store")
	type want struct {
		spec    *gatewayv1alpha1.TailscaleServicesSpec // Nil if there is no TailscaleServices.
		ingress []corev1.LoadBalancerIngress
		reasons []event.Reason
		message string // A part of the last event's.
		wait    time.Duration
		err     error
	}
	cases := map[string]struct {
		reason  string
		objects []client.Object
		create  error // The API server's answer.
		twice   bool  // Reconcile twice.
		want    want
	}{
		"Created": {
			reason:  "A Service of the class gets an object.",
			objects: []client.Object{service(), tailnet("home")},
			want:    want{spec: &published(service()).Spec, reasons: []event.Reason{reasonCreated}, message: `Created TailscaleServices "web", whose conditions show the progress, for the name shop-web`},
		},
		"Again": {
			reason:  "It is created once, with one event.",
			objects: []client.Object{service(), tailnet("home")}, twice: true,
			want: want{spec: &published(service()).Spec, reasons: []event.Reason{reasonCreated}},
		},
		"NotAllowed": {
			reason:  "Nothing is created in a namespace that may use no tailnet, and one event says so.",
			objects: []client.Object{service(), tailnet("work")}, twice: true,
			want: want{reasons: []event.Reason{"NamespaceNotAllowed"}, message: "spec.allowedNamespaces", wait: relook},
		},
		"Foreign": {
			reason:  "An object of the user stays as it is.",
			objects: []client.Object{service(), tailnet("home"), strange()},
			want:    want{spec: &strange().Spec, reasons: []event.Reason{reasonExists}, message: "stays as it is", wait: repeat},
		},
		"ForeignLate": {
			reason:  "So does one of which the cache does not know yet.",
			objects: []client.Object{service(), tailnet("home")},
			create:  kerrors.NewAlreadyExists(resource, "web"),
		},
		"Invalid": {
			reason:  "A write that the API server refuses is not tried again at once.",
			objects: []client.Object{service(), tailnet("home")},
			create:  kerrors.NewInvalid(schema.GroupKind{Group: resource.Group, Kind: "TailscaleServices"}, "web", nil),
			want:    want{reasons: []event.Reason{reasonRefused}, message: "is invalid", wait: repeat},
		},
		"Quota": {
			reason:  "A quota may change, so the write is tried again.",
			objects: []client.Object{service(), tailnet("home")},
			create:  kerrors.NewForbidden(resource, "web", errors.New("exceeded quota")),
			want:    want{reasons: []event.Reason{reasonRefused}, message: "exceeded quota", wait: repeat, err: cmpopts.AnyError},
		},
		"Terminating": {
			reason:  "A namespace that is being deleted needs nothing.",
			objects: []client.Object{service(), tailnet("home")},
			create: &kerrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden, Details: &metav1.StatusDetails{
				Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}},
			}}},
		},
		"Unavailable": {
			reason:  "Other errors are retried, without an event.",
			objects: []client.Object{service(), tailnet("home")},
			create:  errBoom,
			want:    want{err: errBoom},
		},
		"Published": {
			reason:  "The status of a Service of the class is written.",
			objects: []client.Object{service(), published(service())},
			want:    want{spec: &published(service()).Spec, ingress: addresses("shop-web")},
		},
		"Renamed": {
			reason:  "A name that changes removes the object, and the next reconcile creates it.",
			objects: []client.Object{service(renamed, reported("shop-web")), published(service()), tailnet("home")}, twice: true,
			want: want{spec: &published(service(renamed)).Spec, reasons: []event.Reason{reasonCreated}, message: "for the name store"},
		},
		"Tags": {
			reason:  "Tags change in place.",
			objects: []client.Object{service(annotated(meta.AnnotationTags, "tag:a"), reported("shop-web")), published(service())},
			want:    want{spec: &published(service(annotated(meta.AnnotationTags, "tag:a"))).Spec, ingress: addresses("shop-web")},
		},
		"Withdrawn": {
			reason:  "A Service that does not ask any more, for example since the provider stopped, is withdrawn.",
			objects: []client.Object{service(ofType(corev1.ServiceTypeClusterIP)), published(service())},
		},
		"Gone": {
			reason:  "A Service that is gone needs nothing.",
			objects: []client.Object{published(service())},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kube := fakeClient(tc.create, tc.objects...)
			events := &recorder{}
			r := &reconciler{
				kube: kube, services: services{kube}, ours: managedOnly{kube}, grants: grantTo{"home": "shop"}, recorder: events,
				clock: func() time.Time { return at },
			}
			key := types.NamespacedName{Namespace: "shop", Name: "web"}
			result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			if tc.twice {
				result, err = r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			}
			got := want{wait: result.RequeueAfter, message: tc.want.message, err: tc.want.err}
			if diff := cmp.Diff(tc.want.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\nReconcile(...): -want error, +got:\n%s", tc.reason, diff)
			}
			for _, e := range events.events {
				got.reasons = append(got.reasons, e.Reason)
				if tc.want.message != "" && !strings.Contains(e.Message, tc.want.message) {
					t.Errorf("\n%s\nReconcile(...): want an event with %q, got %q", tc.reason, tc.want.message, e.Message)
				}
			}
			o, s := &gatewayv1alpha1.TailscaleServices{}, &corev1.Service{}
			if err := kube.Get(t.Context(), key, o); err == nil {
				o.Spec.VIPService.Comment = published(service()).Spec.VIPService.Comment
				if !owns(o) {
					o.Spec.VIPService.Comment = ""
				}
				got.spec = &o.Spec
			}
			if err := kube.Get(t.Context(), key, s); err == nil {
				got.ingress = s.Status.LoadBalancer.Ingress
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{}), cmpopts.EquateEmpty(), cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\nReconcile(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPublishedEvent checks that a Service whose start the provider has seen gets an event at its end, and that no
// start of the provider repeats the events of all Services.
func TestPublishedEvent(t *testing.T) {
	events := &recorder{}
	r := &reconciler{recorder: events, clock: func() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }}
	key := types.NamespacedName{Namespace: "shop", Name: "web"}
	f := facts{service: service()}
	done := plan{published: "shop-web.example.ts.net"}
	r.announce(key, f, done, nil)
	if len(events.events) > 0 {
		t.Fatalf("want no event of a Service that was published before, got %v", events.events)
	}
	r.announce(key, f, plan{create: published(service())}, nil)
	r.announce(key, f, done, nil)
	r.announce(key, f, done, nil)
	r.announce(key, f, plan{problem: &problem{reason: "NoHealthyBackend", message: "No backend"}}, nil)
	r.announce(key, f, done, nil)
	var got []event.Reason
	for _, e := range events.events {
		got = append(got, e.Reason)
	}
	if diff := cmp.Diff([]event.Reason{reasonCreated, reasonPublished, "NoHealthyBackend", reasonPublished}, got); diff != "" {
		t.Errorf("events: -want, +got:\n%s", diff)
	}
	r.announce(key, facts{}, plan{}, nil)
	if r.announced.knows(key) {
		t.Error("a Service that is gone should be forgotten")
	}
}

// TestRepeated checks that an event about a problem is repeated before Kubernetes forgets it.
func TestRepeated(t *testing.T) {
	a, key, at := &announcements{}, types.NamespacedName{Name: "web"}, time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		reason  string
		message string
		at      time.Time
		want    bool
	}{
		{reason: "The first one is due.", message: "a", at: at, want: true},
		{reason: "The same one is not.", message: "a", at: at.Add(repeat - time.Second)},
		{reason: "Another one is.", message: "b", at: at.Add(repeat - time.Second), want: true},
		{reason: "The same one is, later.", message: "b", at: at.Add(2 * repeat), want: true},
	} {
		if got := a.due(key, tc.message, tc.at); got != tc.want {
			t.Errorf("%s due(...): want %t, got %t", tc.reason, tc.want, got)
		}
	}
}
