// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/permits"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

func TestWorkloadIdentity(t *testing.T) {
	const issuerURL, audience = "https://kubernetes.example", "api.tailscale.com/kWork"
	issuer := simtest.NewIssuer(t, issuerURL)
	sim := simtest.StartAPI(t, func(o *tailnetsim.Options) {
		o.WorkloadIdentities = []tailnetsim.WorkloadIdentity{{
			ClientID: "kWork", Issuer: issuerURL, Audience: audience, Subject: "system:serviceaccount:crossplane-system:provider-tailscale",
			Keys: issuer.Keys(), Scopes: []string{"services"},
		}}
	})
	forbidden := kerrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts/token"}, "robot", errors.New("no"))
	cases := map[string]struct {
		reason   string
		account  *v1alpha1.ServiceAccountReference
		audience string
		user     string // The provider's user name.
		err      error  // Of the token request.
		want     tailscale.Class
		text     string
	}{
		"ProviderItself": {
			reason:   "The provider logs in as the service account that it runs as.",
			audience: audience, user: "system:serviceaccount:crossplane-system:provider-tailscale",
		},
		"Named": {
			reason:  "The provider logs in as the service account that the config names.",
			account: &v1alpha1.ServiceAccountReference{Namespace: "crossplane-system", Name: "provider-tailscale"}, audience: audience,
		},
		"OtherAudience": {
			reason:  "A token for another audience is rejected, and the federated identity is named.",
			account: &v1alpha1.ServiceAccountReference{Namespace: "crossplane-system", Name: "provider-tailscale"}, audience: "other",
			want: tailscale.ClassUnauthorized, text: `rejected the federated identity "kWork" of service account crossplane-system/provider-tailscale`,
		},
		"OtherAccount": {
			reason:  "Another service account is rejected.",
			account: &v1alpha1.ServiceAccountReference{Namespace: "team", Name: "robot"}, audience: audience,
			want: tailscale.ClassUnauthorized, text: "its subject system:serviceaccount:team:robot",
		},
		"NotAllowed": {
			reason:  "A permission that is missing is named.",
			account: &v1alpha1.ServiceAccountReference{Namespace: "team", Name: "robot"}, audience: audience, err: forbidden,
			want: tailscale.ClassUnauthorized, text: `Cannot log in with the federated identity "kWork" of service account team/robot: cannot get an identity token: the provider may not create tokens of service account team/robot`,
		},
		"NoServiceAccount": {
			reason: "A provider outside of a cluster needs the name of a service account.", audience: audience, user: "kubernetes-admin",
			want: tailscale.ClassUnauthorized, text: "set workloadIdentity.serviceAccountRef",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := v1alpha1.ProviderConfigSpec{APIURL: sim.URL, Tailnet: "-", Credentials: v1alpha1.Credentials{
				WorkloadIdentity: &v1alpha1.WorkloadIdentity{ClientID: "kWork", Audience: tc.audience, ServiceAccountRef: tc.account},
			}}
			kube := fake.NewClientBuilder().WithScheme(scheme(t)).
				WithObjects(&v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "home", UID: "uid"}, Spec: spec}).
				WithInterceptorFuncs(apiServer(t, issuer, tc.user, tc.err)).Build()
			c := NewConnector(kube, tailscale.NewPool(tailscale.Options{Rate: 100, Burst: 100, Metrics: tailscale.NewMetrics()}), permits.New(kube, "system"), nil)
			mg := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "m", UID: "m"}}
			mg.SetGroupVersionKind(v1alpha1.MachineGroupVersionKind)
			mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: "home"})
			conn, err := c.Connect(t.Context(), mg)
			if err != nil {
				t.Fatalf("Connect(...): %v", err)
			}
			_, err = conn.Client.Services().Services(t.Context(), tailscale.AtMost(time.Second))
			if got := tailscale.ClassOf(err); got != tc.want {
				t.Fatalf("\n%s\nServices(...): want class %q, got %q: %v", tc.reason, tc.want, got, err)
			}
			if err == nil {
				return
			}
			cond, _ := Authenticated(err)
			if cond.Reason != meta.ReasonCredentialRejected || !strings.Contains(cond.Message, tc.text) || strings.Contains(cond.Message, "eyJ") {
				t.Errorf("\n%s\nAuthenticated(...): want %q, got %v", tc.reason, tc.text, cond)
			}
		})
	}
}

// apiServer returns the answers of an API server that knows the provider as user.
func apiServer(t *testing.T, issuer *simtest.Issuer, user string, refusal error) interceptor.Funcs {
	t.Helper()
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if r, ok := o.(*authenticationv1.SelfSubjectReview); ok {
				r.Status.UserInfo.Username = user
				return nil
			}
			return c.Create(ctx, o, opts...)
		},
		SubResourceCreate: func(_ context.Context, _ client.Client, sub string, o, body client.Object, _ ...client.SubResourceCreateOption) error {
			tr, ok := body.(*authenticationv1.TokenRequest)
			sa, ok2 := o.(*corev1.ServiceAccount)
			if !ok || !ok2 || sub != "token" {
				return errors.New("unexpected request")
			}
			if refusal != nil {
				return refusal
			}
			expiry := time.Now().Add(time.Duration(*tr.Spec.ExpirationSeconds) * time.Second)
			tr.Status.Token = issuer.Token(t, subjectPrefix+sa.GetNamespace()+":"+sa.GetName(), tr.Spec.Audiences[0], expiry)
			return nil
		},
	}
}

func TestScopeMissingNamesSecret(t *testing.T) {
	cond, ok := Authenticated(&tailscale.Error{Class: tailscale.ClassForbidden, Status: 403, Scope: "services", Credential: "the OAuth client in Secret team/oauth", Message: "no"})
	if !ok || cond.Reason != meta.ReasonScopeMissing || !strings.Contains(cond.Message, `The OAuth client in Secret team/oauth`) || !strings.Contains(cond.Message, `"services"`) {
		t.Errorf("Authenticated(...): want the Secret and the scope to be named, got %v", cond)
	}
}
