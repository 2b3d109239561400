// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/permits"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

func objects(data map[string][]byte) []client.Object {
	spec := v1alpha1.ProviderConfigSpec{
		APIURL: "http://localhost", Tailnet: "-", Tags: []v1alpha1.Tag{"tag:k8s"},
		Credentials: v1alpha1.Credentials{OAuthSecretRef: &xpv2.SecretReference{Namespace: "team", Name: "oauth"}},
	}
	return []client.Object{
		&v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "home", UID: "cluster-uid"}, Spec: spec},
		&v1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "home", UID: "uid"}, Spec: spec},
		&v1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "thief", UID: "thief"}, Spec: spec},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "oauth"}, Data: data},
	}
}

// restricted returns the objects with a first config that only namespace team may use.
func restricted(objs []client.Object) []client.Object {
	if c, ok := objs[0].(*v1alpha1.ClusterProviderConfig); ok {
		c.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromList, Names: []string{"team"}}
	}
	return objs
}

// withCredentials returns the objects with other credentials in all configs.
func withCredentials(objs []client.Object, cr v1alpha1.Credentials) []client.Object {
	for _, o := range objs {
		switch c := o.(type) {
		case *v1alpha1.ClusterProviderConfig:
			c.Spec.Credentials = cr
		case *v1alpha1.ProviderConfig:
			c.Spec.Credentials = cr
		}
	}
	return objs
}

func apiKeyRef(namespace, key string) v1alpha1.Credentials {
	return v1alpha1.Credentials{APIKeySecretRef: &v1alpha1.APIKeySecretReference{
		SecretReference: xpv2.SecretReference{Namespace: namespace, Name: "oauth"}, Key: key,
	}}
}

func workload(ref *v1alpha1.ServiceAccountReference) v1alpha1.Credentials {
	return v1alpha1.Credentials{WorkloadIdentity: &v1alpha1.WorkloadIdentity{ClientID: "kWork", Audience: "aud", ServiceAccountRef: ref}}
}

func TestConnect(t *testing.T) {
	good := map[string][]byte{meta.SecretKeyClientID: []byte("id\n"), meta.SecretKeyClientSecret: []byte("hush")}
	cases := map[string]struct {
		reason       string
		objects      []client.Object
		namespace    string
		kind         string
		name         string
		deleted      bool
		permit       types.UID
		neverAllowed bool
		clusterID    string
		err          string
		auth         xpv2.ConditionReason
		ready        xpv2.ConditionReason
		protected    bool
		usages       int
	}{
		"Cluster": {
			reason: "A cluster config serves any namespace; its Secret is protected and its use recorded.", objects: objects(good),
			namespace: "apps", kind: v1alpha1.ClusterProviderConfigKind, name: "home", clusterID: "cluster-uid", protected: true, usages: 1,
		},
		"Namespaced": {
			reason: "A namespaced config serves its namespace.", objects: objects(good),
			namespace: "team", kind: v1alpha1.ProviderConfigKind, name: "home", clusterID: "uid", protected: true, usages: 1,
		},
		"Thief": {
			reason: "A namespaced config must not use another namespace's Secret.", objects: objects(good),
			namespace: "apps", kind: v1alpha1.ProviderConfigKind, name: "thief", err: "in its namespace", usages: 1,
		},
		"Deleted": {
			reason: "A resource that is being deleted makes no usage and adds no finalizer.", objects: objects(good),
			namespace: "apps", kind: v1alpha1.ClusterProviderConfigKind, name: "home", deleted: true, clusterID: "cluster-uid",
		},
		"NoConfig": {
			reason: "A config that is gone is named.", objects: objects(good),
			namespace: "apps", kind: v1alpha1.ClusterProviderConfigKind, name: "gone", err: `cannot get ClusterProviderConfig "gone"`, usages: 1,
		},
		"NoSecret": {
			reason: "A Secret that is missing is named.", objects: objects(nil)[:3],
			namespace: "apps", kind: v1alpha1.ClusterProviderConfigKind, name: "home", err: "team/oauth", auth: meta.ReasonSecretNotFound, usages: 1,
		},
		"IncompleteSecret": {
			reason: "A key that is missing is named, and no value.", objects: objects(map[string][]byte{meta.SecretKeyClientID: []byte("hush")}),
			namespace: "apps", kind: v1alpha1.ClusterProviderConfigKind, name: "home", err: "lacks client_secret", auth: meta.ReasonSecretIncomplete, usages: 1,
		},
		"NamespaceAllowed": {
			reason: "A namespace of the list may use the config.", objects: restricted(objects(good)),
			namespace: "team", kind: v1alpha1.ClusterProviderConfigKind, name: "home", clusterID: "cluster-uid", protected: true, usages: 1,
		},
		"NamespaceNotAllowed": {
			reason: "Another namespace is refused, and the error names the contact.", objects: restricted(objects(good)),
			namespace: "apps", kind: v1alpha1.ClusterProviderConfigKind, name: "home",
			err: `ClusterProviderConfig "home" may not be used in namespace "apps"; ask`, auth: meta.ReasonNamespaceNotAllowed, ready: meta.ReasonNamespaceNotAllowed, usages: 1,
		},
		"OnceAllowedDeleted": {
			reason: "A resource that was allowed once can clean up.", objects: restricted(objects(good)),
			namespace: "apps", kind: v1alpha1.ClusterProviderConfigKind, name: "home", deleted: true, permit: "cluster-uid", clusterID: "cluster-uid",
		},
		"NeverAllowedDeleted": {
			reason: "A resource that was never allowed has nothing to clean up, regardless of its status.", objects: restricted(objects(good)),
			namespace: "apps", kind: v1alpha1.ClusterProviderConfigKind, name: "home", deleted: true,
			err: `ClusterProviderConfig "home" may not be used in namespace "apps" and never was`, neverAllowed: true,
		},
		"OtherConfigDeleted": {
			reason: "Permission for one config is none for another.", objects: restricted(objects(good)),
			namespace: "apps", kind: v1alpha1.ClusterProviderConfigKind, name: "home", deleted: true, permit: "uid",
			err: "never was", neverAllowed: true,
		},
		"NamespaceAllowedDeleted": {
			reason: "A resource that is older than the record may clean up while its namespace is allowed.", objects: restricted(objects(good)),
			namespace: "team", kind: v1alpha1.ClusterProviderConfigKind, name: "home", deleted: true, clusterID: "cluster-uid",
		},
		"APIKey": {
			reason:    "An API key's Secret is protected as well.",
			objects:   withCredentials(objects(map[string][]byte{meta.SecretKeyAPIKey: []byte("hush")}), apiKeyRef("team", "")),
			namespace: "apps", kind: v1alpha1.ClusterProviderConfigKind, name: "home", clusterID: "cluster-uid", protected: true, usages: 1,
		},
		"APIKeyMissing": {
			reason:    "The key that is missing is named.",
			objects:   withCredentials(objects(map[string][]byte{meta.SecretKeyAPIKey: []byte("hush")}), apiKeyRef("team", "other")),
			namespace: "apps", kind: v1alpha1.ClusterProviderConfigKind, name: "home", err: "lacks other", auth: meta.ReasonSecretIncomplete, ready: meta.ReasonSecretIncomplete, usages: 1,
		},
		"APIKeyThief": {
			reason:    "A namespaced config must not use another namespace's API key.",
			objects:   withCredentials(objects(nil), apiKeyRef("team", "")),
			namespace: "apps", kind: v1alpha1.ProviderConfigKind, name: "thief", err: "in its namespace", usages: 1,
		},
		"Workload": {
			reason: "A workload identity needs no Secret.", objects: withCredentials(objects(nil), workload(nil)),
			namespace: "apps", kind: v1alpha1.ClusterProviderConfigKind, name: "home", clusterID: "cluster-uid", usages: 1,
		},
		"NamespacedWorkload": {
			reason:    "A namespaced config may use a service account in the same namespace.",
			objects:   withCredentials(objects(nil), workload(&v1alpha1.ServiceAccountReference{Namespace: "team", Name: "robot"})),
			namespace: "team", kind: v1alpha1.ProviderConfigKind, name: "home", clusterID: "uid", usages: 1,
		},
		"WorkloadThief": {
			reason:    "A namespaced config must not log in as another namespace's service account.",
			objects:   withCredentials(objects(nil), workload(&v1alpha1.ServiceAccountReference{Namespace: "team", Name: "robot"})),
			namespace: "apps", kind: v1alpha1.ProviderConfigKind, name: "thief", err: "in its namespace", usages: 1,
		},
		"NamespacedProviderIdentity": {
			reason: "A namespaced config must not log in as the provider.", objects: withCredentials(objects(nil), workload(nil)),
			namespace: "team", kind: v1alpha1.ProviderConfigKind, name: "home", err: "in its namespace", usages: 1,
		},
		"NoCredentials": {
			reason: "A config without credentials is refused.", objects: withCredentials(objects(nil), v1alpha1.Credentials{}),
			namespace: "team", kind: v1alpha1.ClusterProviderConfigKind, name: "home", err: "no credentials", auth: meta.ReasonSecretNotFound, ready: meta.ReasonSecretNotFound, usages: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(tc.objects...).Build()
			mg := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: "m", UID: "m"}}
			mg.SetGroupVersionKind(v1alpha1.MachineGroupVersionKind)
			mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: tc.kind, Name: tc.name})
			if tc.deleted {
				at := metav1.Now()
				mg.DeletionTimestamp = &at
			}
			record := permits.New(kube, "system")
			if tc.permit != "" {
				if err := record.Add(t.Context(), "m", permits.Permit{Kind: "Machine", Namespace: tc.namespace, Config: tc.permit}); err != nil {
					t.Fatal(err)
				}
			}
			c := NewConnector(kube, tailscale.NewPool(tailscale.Options{Rate: 1000, Burst: 1000, Metrics: tailscale.NewMetrics(), Transport: tailnets{}}), record, tailscale.Hosts{"localhost:80"})
			got, err := c.Connect(t.Context(), mg)
			var neverAllowed *NeverAllowedError
			if errors.As(err, &neverAllowed) != tc.neverAllowed {
				t.Errorf("\n%s\nConnect(...): want a NeverAllowedError: %t, got %v", tc.reason, tc.neverAllowed, err)
			}
			permitted, herr := record.Has(t.Context(), "m", types.UID(tc.clusterID))
			if want := tc.clusterID != "" && (!tc.deleted || tc.permit != ""); herr != nil || permitted != want {
				t.Errorf("\n%s\nwant a record that it is allowed: %t, got %t, %v", tc.reason, want, permitted, herr)
			}
			switch {
			case tc.err == "" && err != nil:
				t.Fatalf("\n%s\nConnect(...): %v", tc.reason, err)
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Fatalf("\n%s\nConnect(...): want %q in the error, got: %v", tc.reason, tc.err, err)
			case err == nil:
				if diff := cmp.Diff(tc.clusterID, got.ClusterID); diff != "" || len(got.Tags) != 1 {
					t.Errorf("\n%s\nConnect(...): -want, +got:\n%s", tc.reason, diff)
				}
			case strings.Contains(err.Error(), "hush"):
				t.Errorf("\n%s\nConnect(...): the error has a secret", tc.reason)
			}
			if tc.auth != "" {
				cond, ok := Authenticated(err)
				if !ok || cond.Reason != tc.auth {
					t.Errorf("\n%s\nAuthenticated(...): want %s, got %v", tc.reason, tc.auth, cond)
				}
			}
			if got := mg.GetCondition(xpv2.TypeReady); tc.ready != "" && (got.Reason != tc.ready || got.Message != err.Error()) {
				t.Errorf("\n%s\nReady: want %s with the error, got %v", tc.reason, tc.ready, got)
			}
			checkMarks(t, kube, tc.reason, tc.protected, tc.usages)
		})
	}
}

func TestRotation(t *testing.T) {
	cases := map[string]struct {
		reason string
		cr     v1alpha1.Credentials
		old    map[string][]byte
		next   map[string][]byte
	}{
		"OAuthClient": {
			reason: "A new OAuth client is used at once.",
			cr:     v1alpha1.Credentials{OAuthSecretRef: &xpv2.SecretReference{Namespace: "team", Name: "oauth"}},
			old:    map[string][]byte{meta.SecretKeyClientID: []byte("id"), meta.SecretKeyClientSecret: []byte("old")},
			next:   map[string][]byte{meta.SecretKeyClientID: []byte("id"), meta.SecretKeyClientSecret: []byte("new")},
		},
		"APIKey": {
			reason: "A new API key is used at once.", cr: apiKeyRef("team", ""),
			old: map[string][]byte{meta.SecretKeyAPIKey: []byte("old")}, next: map[string][]byte{meta.SecretKeyAPIKey: []byte("new")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(withCredentials(objects(tc.old), tc.cr)...).Build()
			c := NewConnector(kube, tailscale.NewPool(tailscale.Options{Rate: 1000, Burst: 1000, Metrics: tailscale.NewMetrics(), Transport: tailnets{"old": {domain: "a.ts.net"}, "new": {domain: "a.ts.net"}}}), permits.New(kube, "system"), tailscale.Hosts{"localhost:80"})
			mg := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "m", UID: "m"}}
			mg.SetGroupVersionKind(v1alpha1.MachineGroupVersionKind)
			mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: "home"})
			connect := func() *tailscale.Client {
				t.Helper()
				conn, err := c.Connect(t.Context(), mg)
				if err != nil {
					t.Fatalf("Connect(...): %v", err)
				}
				return conn.Client
			}
			first := connect()
			if connect() != first {
				t.Errorf("\n%s\nwant the same client while nothing changes", tc.reason)
			}
			s := &corev1.Secret{}
			if err := kube.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "oauth"}, s); err != nil {
				t.Fatal(err)
			}
			s.Data = tc.next
			if err := kube.Update(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if connect() == first {
				t.Errorf("\n%s\nwant another client", tc.reason)
			}
		})
	}
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func checkMarks(t *testing.T, kube client.Client, reason string, protected bool, usages int) {
	t.Helper()
	l := &corev1.SecretList{}
	if err := kube.List(t.Context(), l, client.MatchingLabels{meta.LabelSecretType: SecretTypeCredentials}); err != nil {
		t.Fatal(err)
	}
	if got := len(l.Items) == 1 && len(l.Items[0].GetFinalizers()) == 1; got != protected {
		t.Errorf("\n%s\nwant Secret protected: %t, got %t", reason, protected, got)
	}
	ul := &v1alpha1.ProviderConfigUsageList{}
	if err := kube.List(t.Context(), ul); err != nil {
		t.Fatal(err)
	}
	if len(ul.Items) != usages {
		t.Errorf("\n%s\nwant %d usages, got %d", reason, usages, len(ul.Items))
	}
}

func TestTrackInTerminatingNamespace(t *testing.T) {
	data := map[string][]byte{meta.SecretKeyClientID: []byte("id"), meta.SecretKeyClientSecret: []byte("hush")}
	kube := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(objects(data)...).Build()
	c := NewConnector(kube, tailscale.NewPool(tailscale.Options{Rate: 1000, Burst: 1000, Metrics: tailscale.NewMetrics(), Transport: tailnets{}}), permits.New(kube, "system"), tailscale.Hosts{"localhost:80"})
	c.usage = resource.ModernTrackerFn(func(context.Context, resource.ModernManaged) error {
		return errors.Wrap(terminating(), "cannot apply usage")
	})
	mg := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "m"}}
	mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: "home"})
	if _, err := c.Connect(t.Context(), mg); err != nil {
		t.Errorf("Connect(...): want the deletion of a resource in a namespace that is being deleted: %v", err)
	}
}

// terminating returns the API server's error for a create in a namespace that is being deleted.
func terminating() error {
	err := kerrors.NewForbidden(schema.GroupResource{Resource: "providerconfigusages"}, "m", errors.New("namespace is being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

// TestHosts shows that the provider connects only to the platform team's hosts when a namespaced
// config names a host.
func TestHosts(t *testing.T) {
	const sim = "http://sim.example.com:8080"
	hosts := tailscale.Hosts{"api.tailscale.com", "controlplane.tailscale.com"}
	cases := map[string]struct {
		reason       string
		kind         string
		api, control string
		deleted      bool
		permitted    bool
		field        string
		neverAllowed bool
	}{
		"Tailscale":      {reason: "Tailscale's hosts are allowed.", kind: v1alpha1.ProviderConfigKind, api: "https://api.tailscale.com", control: "https://controlplane.tailscale.com"},
		"NoControl":      {reason: "A config without a control server is allowed.", kind: v1alpha1.ProviderConfigKind, api: "https://api.tailscale.com"},
		"Cluster":        {reason: "The platform team may name any host.", kind: v1alpha1.ClusterProviderConfigKind, api: "http://169.254.169.254"},
		"OfCluster":      {reason: "A ProviderConfig may name the hosts of a ClusterProviderConfig.", kind: v1alpha1.ProviderConfigKind, api: sim, control: sim + "/"},
		"API":            {reason: "Other API hosts are refused.", kind: v1alpha1.ProviderConfigKind, api: "http://169.254.169.254", field: "spec.apiURL"},
		"Control":        {reason: "Other control servers are refused.", kind: v1alpha1.ProviderConfigKind, api: "https://api.tailscale.com", control: "https://evil.example.org", field: "spec.controlURL"},
		"Port":           {reason: "Another port of an allowed host is refused.", kind: v1alpha1.ProviderConfigKind, api: "http://sim.example.com:9090", field: "spec.apiURL"},
		"User":           {reason: "The text before an @ is not the host.", kind: v1alpha1.ProviderConfigKind, api: "https://api.tailscale.com@evil.org", field: "spec.apiURL"},
		"Deleted":        {reason: "The deletion of a resource that was never allowed does not wait.", kind: v1alpha1.ProviderConfigKind, api: "http://169.254.169.254", deleted: true, neverAllowed: true, field: "spec.apiURL"},
		"DeletedAllowed": {reason: "The deletion of a resource that was allowed waits until the resource can clean up.", kind: v1alpha1.ProviderConfigKind, api: "http://169.254.169.254", deleted: true, permitted: true, field: "spec.apiURL"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			os := objects(map[string][]byte{meta.SecretKeyClientID: []byte("id"), meta.SecretKeyClientSecret: []byte("hush")})
			for _, o := range os {
				switch c := o.(type) {
				case *v1alpha1.ClusterProviderConfig:
					if c.Spec.APIURL = sim; tc.kind == v1alpha1.ClusterProviderConfigKind {
						c.Spec.APIURL, c.Spec.ControlURL = tc.api, tc.control
					}
				case *v1alpha1.ProviderConfig:
					c.Spec.APIURL, c.Spec.ControlURL = tc.api, tc.control
				}
			}
			kube := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(os...).Build()
			record := permits.New(kube, "system")
			if tc.permitted {
				if err := record.Add(t.Context(), "m", permits.Permit{Kind: "Machine", Namespace: "team", Config: "uid"}); err != nil {
					t.Fatal(err)
				}
			}
			mg := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "m", UID: "m"}}
			mg.SetGroupVersionKind(v1alpha1.MachineGroupVersionKind)
			mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: tc.kind, Name: "home"})
			if tc.deleted {
				at := metav1.Now()
				mg.DeletionTimestamp = &at
			}
			pool := tailscale.NewPool(tailscale.Options{Rate: 1000, Burst: 1000, Metrics: tailscale.NewMetrics(), Transport: tailnets{}})
			_, err := NewConnector(kube, pool, record, hosts).Connect(t.Context(), mg)
			if tc.field == "" {
				if err != nil {
					t.Errorf("\n%s\nConnect(...): %v", tc.reason, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.field) || !strings.Contains(err.Error(), "--allowed-hosts") {
				t.Errorf("\n%s\nConnect(...): want an error that names %s and the flag, got %v", tc.reason, tc.field, err)
			}
			var neverAllowed *NeverAllowedError
			if errors.As(err, &neverAllowed) != tc.neverAllowed {
				t.Errorf("\n%s\nConnect(...): want a NeverAllowedError: %t, got %v", tc.reason, tc.neverAllowed, err)
			}
			if c := mg.GetCondition(xpv2.TypeReady); !tc.neverAllowed && c.Reason != meta.ReasonHostNotAllowed {
				t.Errorf("\n%s\nReady: want %s, got %v", tc.reason, meta.ReasonHostNotAllowed, c)
			}
		})
	}
}
