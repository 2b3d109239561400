// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const (
	// subjectPrefix begins the user names of service accounts (k8s.io/apiserver
	// pkg/authentication/serviceaccount, ServiceAccountUsernamePrefix).
	subjectPrefix = "system:serviceaccount:"

	// defaultExpiration of a service account's token, in seconds. Kubernetes rejects shorter ones.
	defaultExpiration = 600
)

// identity returns the login configuration of a config with workload identity.
func (c *Connector) identity(pc config) (tailscale.Config, error) {
	w := pc.spec.Credentials.WorkloadIdentity
	t := tokens{kube: c.kube, audience: w.Audience, expiration: defaultExpiration}
	if w.ExpirationSeconds != nil {
		t.expiration = *w.ExpirationSeconds
	}
	account := "the provider's own service account"
	if ref := w.ServiceAccountRef; ref != nil {
		t.account = types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		account = "service account " + t.account.String()
	}
	// Otherwise, any user who may write a config could log in as the provider, or as any
	// namespace's service account.
	if pc.namespace != "" && t.account.Namespace != pc.namespace {
		return tailscale.Config{}, errors.Errorf("ProviderConfig %q must use a service account in its namespace", pc.name)
	}
	return tailscale.Config{
		ClientID:     w.ClientID,
		Identity:     t.get,
		IdentityName: fmt.Sprintf("%s %s %d", t.account, t.audience, t.expiration),
		Credential:   fmt.Sprintf("the federated identity %q of %s", w.ClientID, account),
		Hint:         fmt.Sprintf("check that its issuer is this cluster's, its subject %s and its audience %s", subject(t.account), w.Audience),
	}, nil
}

func subject(account types.NamespacedName) string {
	if account.Name == "" {
		return "the provider's service account"
	}
	return subjectPrefix + account.Namespace + ":" + account.Name
}

// tokens requests tokens of a service account from the API server.
type tokens struct {
	kube       client.Client
	account    types.NamespacedName // Empty means the provider's.
	audience   string
	expiration int64 // Seconds.
}

// get returns a new token. A token is used once, to log in, so none is kept.
func (t tokens) get(ctx context.Context) (string, error) {
	account, err := t.who(ctx)
	if err != nil {
		return "", err
	}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}}
	tr := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{t.audience}, ExpirationSeconds: &t.expiration}}
	err = t.kube.SubResource("token").Create(ctx, sa, tr)
	switch {
	case kerrors.IsNotFound(err):
		return "", errors.Errorf("service account %s does not exist", account)
	case kerrors.IsForbidden(err):
		return "", errors.Errorf("the provider may not create tokens of service account %s; allow it to create serviceaccounts/token by this name", account)
	case err != nil:
		return "", errors.Wrapf(err, "cannot create a token of service account %s", account)
	case tr.Status.Token == "":
		return "", errors.Errorf("the API server gave no token of service account %s", account)
	}
	return tr.Status.Token, nil
}

// who returns the service account. For the provider's own it asks the API server for the provider's
// user name, so that no setting can contradict it.
func (t tokens) who(ctx context.Context) (types.NamespacedName, error) {
	if t.account.Name != "" {
		return t.account, nil
	}
	r := &authenticationv1.SelfSubjectReview{}
	if err := t.kube.Create(ctx, r); err != nil {
		return types.NamespacedName{}, errors.Wrap(err, "cannot learn the provider's own service account")
	}
	namespace, name, ok := strings.Cut(strings.TrimPrefix(r.Status.UserInfo.Username, subjectPrefix), ":")
	if !ok || !strings.HasPrefix(r.Status.UserInfo.Username, subjectPrefix) {
		return types.NamespacedName{}, errors.New("the provider does not run as a service account; set workloadIdentity.serviceAccountRef")
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
