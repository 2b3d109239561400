// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaletailnet

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// composeConfig returns the provider config of all objects of this tailnet. Its name is the
// tailnet's, by which objects refer to it.
func composeConfig(f facts) *tailnetv1alpha1.ClusterProviderConfig {
	return &tailnetv1alpha1.ClusterProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Name: f.name, Labels: labels(f)},
		Spec: tailnetv1alpha1.ProviderConfigSpec{
			Tailnet:     f.spec.Tailnet,
			APIURL:      f.spec.APIURL,
			ControlURL:  f.spec.ControlURL,
			Credentials: credentials(f.spec),
			Tags:        compose.Tags(f.spec.Tags),
			ClusterID:   f.clusterID,
			ClusterSet:  f.spec.ClusterSet,
			Drain:       f.spec.Drain,
			TailnetLock: tailnetLock(f.spec),

			AllowedNamespaces: f.spec.AllowedNamespaces,
		},
	}
}

// tailnetLock returns the reference to the signing key of a spec, or nil.
func tailnetLock(s gatewayv1alpha1.TailscaleTailnetSpec) *tailnetv1alpha1.TailnetLock {
	if s.TailnetLockSigningKeySecret == nil {
		return nil
	}
	return &tailnetv1alpha1.TailnetLock{SigningKeySecretRef: tailnetv1alpha1.SigningKeySecretReference(*s.TailnetLockSigningKeySecret)}
}

// credentials returns the credential of a spec.
func credentials(s gatewayv1alpha1.TailscaleTailnetSpec) tailnetv1alpha1.Credentials {
	switch {
	case s.WorkloadIdentity != nil:
		w := &tailnetv1alpha1.WorkloadIdentity{ClientID: s.WorkloadIdentity.ClientID, Audience: s.WorkloadIdentity.Audience}
		if sa := s.WorkloadIdentity.ServiceAccountRef; sa != nil {
			w.ServiceAccountRef = &tailnetv1alpha1.ServiceAccountReference{Namespace: sa.Namespace, Name: sa.Name}
		}
		return tailnetv1alpha1.Credentials{WorkloadIdentity: w}
	case s.APIKeySecret != nil:
		return tailnetv1alpha1.Credentials{APIKeySecretRef: &tailnetv1alpha1.APIKeySecretReference{
			SecretReference: xpv2.SecretReference{Name: s.APIKeySecret.Name, Namespace: s.APIKeySecret.Namespace},
			Key:             s.APIKeySecret.Key,
		}}
	}
	return tailnetv1alpha1.Credentials{OAuthSecretRef: &xpv2.SecretReference{Name: s.OAuthSecretName, Namespace: s.OAuthSecretNamespace}}
}

// namespace returns the namespace of the Tailnet: that of the credential, because the provider
// permits a Tailnet in that namespace to use the credential, whatever namespaces are allowed.
func namespace(s gatewayv1alpha1.TailscaleTailnetSpec) string {
	switch w := s.WorkloadIdentity; {
	case w != nil && w.ServiceAccountRef != nil:
		return w.ServiceAccountRef.Namespace
	case w != nil:
		return w.Namespace
	case s.APIKeySecret != nil:
		return s.APIKeySecret.Namespace
	}
	return s.OAuthSecretNamespace
}

// composeTailnet returns the Tailnet, which observes the tailnet and tests the credential.
func composeTailnet(f facts) *tailnetv1alpha1.Tailnet {
	return &tailnetv1alpha1.Tailnet{
		ObjectMeta: metav1.ObjectMeta{
			Name:      f.name,
			Namespace: namespace(f.spec),
			Labels:    labels(f),
		},
		Spec: tailnetv1alpha1.TailnetSpec{
			ManagedResourceSpec: xpv2.ManagedResourceSpec{ProviderConfigReference: compose.ProviderConfigRef(f.name)},
		},
	}
}

// labels returns the labels of both children.
func labels(f facts) map[string]string {
	return map[string]string{meta.LabelTailnet: f.name}
}

// ready reports whether the tailnet was observed and its credential is still accepted.
func ready(t *tailnetv1alpha1.Tailnet) bool {
	return t.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue &&
		t.GetCondition(meta.TypeAuthenticated).Status != corev1.ConditionFalse
}

// authenticated returns the condition Authenticated, which the provider reports.
func authenticated(t *tailnetv1alpha1.Tailnet) compose.Condition {
	c := t.GetCondition(meta.TypeAuthenticated)
	switch c.Status {
	case corev1.ConditionTrue:
		return compose.Condition{Type: meta.TypeAuthenticated, Status: compose.True, Reason: c.Reason, Message: c.Message}
	case corev1.ConditionFalse:
		return compose.Condition{Type: meta.TypeAuthenticated, Status: compose.False, Reason: c.Reason, Message: c.Message}
	case corev1.ConditionUnknown:
	}
	message := "Waiting for the provider to try the credential; if this lasts, see whether the provider is installed and healthy"
	if s := t.GetCondition(xpv2.TypeSynced); s.Status == corev1.ConditionFalse {
		message = s.Message
	}
	return compose.Condition{Type: meta.TypeAuthenticated, Reason: compose.ReasonWaiting, Message: message}
}

// noClusterID returns the condition Authenticated while no cluster ID is known.
func noClusterID() compose.Condition {
	return compose.Condition{
		Type:    meta.TypeAuthenticated,
		Reason:  compose.ReasonWaiting,
		Message: "Crossplane cannot read namespace kube-system, whose UID identifies this cluster; let it get, list and watch namespaces, or set spec.clusterID",
	}
}

// status returns the status of the TailscaleTailnet.
func status(t *tailnetv1alpha1.Tailnet, clusterID string) gatewayv1alpha1.TailscaleTailnetStatus {
	o := t.Status.AtProvider
	s := gatewayv1alpha1.TailscaleTailnetStatus{ClusterID: clusterID, CredentialStatus: o.Credential}
	info := gatewayv1alpha1.TailnetInfo{
		Name:           o.Name,
		ID:             o.ID,
		Organization:   o.Organization,
		OrganizationID: o.OrganizationID,
		MagicDNSSuffix: o.MagicDNSSuffix,
		DeviceCount:    o.DeviceCount,
		ServiceCount:   o.ServiceCount,

		ConnectedDevices: o.ConnectedDevices,
	}
	if info != (gatewayv1alpha1.TailnetInfo{}) {
		s.TailnetInfo = &info
	}
	return s
}
