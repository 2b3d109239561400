// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	tsclient "tailscale.com/client/tailscale/v2"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/test/lifecycle"
)

// siem is the name of a Secret with a token of another system.
const siem = "siem"

func seedToken(e *env) {
	e.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: siem},
		StringData: map[string]string{"token": "siem-token-notasecret", "other": "another-token-notasecret"},
	})
}

func tokenRef(key string) *xpv2.LocalSecretKeySelector {
	return &xpv2.LocalSecretKeySelector{LocalSecretReference: xpv2.LocalSecretReference{Name: siem}, Key: key}
}

func init() { addCase(logstreamConfigurationCase()) }

func logstreamConfigurationCase() kindCase[*v1alpha1.LogstreamConfiguration] {
	type seen struct {
		Destination, URL, User string
		Minutes                int
	}
	set := func(e *env, logType tsclient.LogType, url string) {
		e.must(e.tailnet.Logging().SetLogstreamConfiguration(e.Context(), logType, tsclient.SetLogstreamConfigurationRequest{
			DestinationType: tsclient.LogstreamSplunkEndpoint, URL: url, Token: "their-token-notasecret",
		}))
	}
	return kindCase[*v1alpha1.LogstreamConfiguration]{
		Kind: v1alpha1.LogstreamConfigurationKind,
		Seed: seedToken,
		New: func(*env) *v1alpha1.LogstreamConfiguration {
			return &v1alpha1.LogstreamConfiguration{Spec: v1alpha1.LogstreamConfigurationSpec{ForProvider: v1alpha1.LogstreamConfigurationParameters{
				LogType: "configuration", DestinationType: "elastic", URL: "https://siem.example.com/logs", User: "tailnet", TokenSecretRef: tokenRef("token"),
			}}}
		},
		Others: func(e *env) func() (any, error) {
			set(e, tsclient.LogTypeNetwork, "https://others.example.com")
			return func() (any, error) {
				return e.tailnet.Logging().LogstreamConfiguration(e.Context(), tsclient.LogTypeNetwork)
			}
		},
		Count: func(e *env) int {
			n := 0
			for _, t := range []tsclient.LogType{tsclient.LogTypeConfig, tsclient.LogTypeNetwork} {
				_, err := e.tailnet.Logging().LogstreamConfiguration(e.Context(), t)
				switch {
				case err == nil:
					n++
				case !tsclient.IsNotFound(err):
					e.must(err)
				}
			}
			return n
		},
		Check: func(e *env, mg *v1alpha1.LogstreamConfiguration) error {
			l, err := e.tailnet.Logging().LogstreamConfiguration(e.Context(), tsclient.LogTypeConfig)
			if err != nil {
				return err
			}
			p := mg.Spec.ForProvider
			return lifecycle.Differ(
				seen{Destination: p.DestinationType, URL: p.URL, User: p.User, Minutes: int(ptr.Deref(p.UploadPeriodMinutes, 0))},
				seen{Destination: string(l.DestinationType), URL: l.URL, User: l.User, Minutes: l.UploadPeriodMinutes})
		},
		Drift: func(e *env, _ *v1alpha1.LogstreamConfiguration) {
			set(e, tsclient.LogTypeConfig, "https://changed.example.com")
		},
		Update: func(_ *env, mg *v1alpha1.LogstreamConfiguration) {
			p := &mg.Spec.ForProvider
			p.DestinationType, p.URL, p.User = "axiom", "https://axiom.example.com", ""
			p.UploadPeriodMinutes, p.TokenSecretRef = ptr.To[int32](5), tokenRef("other")
		},
		Foreign: func(e *env, _ *v1alpha1.LogstreamConfiguration) string {
			set(e, tsclient.LogTypeConfig, "https://theirs.example.com")
			return ""
		},
		Adopt: func(mg *v1alpha1.LogstreamConfiguration, _ string) {
			mg.Spec.ForProvider.AdoptionPolicy = v1alpha1.AdoptionPolicyAdopt
		},
		Refused: "adoptionPolicy",
		Bad: []badInput[*v1alpha1.LogstreamConfiguration]{
			{Name: "UnknownLogType", Break: func(mg *v1alpha1.LogstreamConfiguration) { mg.Spec.ForProvider.LogType = "audit" }, Want: []string{"spec.forProvider.logType", "configuration"}},
			{Name: "UnknownDestination", Break: func(mg *v1alpha1.LogstreamConfiguration) { mg.Spec.ForProvider.DestinationType = "fax" }, Want: []string{"spec.forProvider.destinationType", "splunk"}},
			{Name: "NoURL", Break: func(mg *v1alpha1.LogstreamConfiguration) { mg.Spec.ForProvider.URL = "" }, Want: []string{"spec.forProvider", "url and tokenSecretRef must be set"}},
			{Name: "NoToken", Break: func(mg *v1alpha1.LogstreamConfiguration) { mg.Spec.ForProvider.TokenSecretRef = nil }, Want: []string{"spec.forProvider", "url and tokenSecretRef must be set"}},
			{Name: "S3WithoutBucket", Break: func(mg *v1alpha1.LogstreamConfiguration) { mg.Spec.ForProvider.DestinationType = "s3" }, Want: []string{"spec.forProvider", "s3 must be set"}},
			{Name: "S3KeyWithoutSecret", Break: func(mg *v1alpha1.LogstreamConfiguration) {
				mg.Spec.ForProvider.DestinationType, mg.Spec.ForProvider.User = "s3", ""
				mg.Spec.ForProvider.S3 = &v1alpha1.LogstreamS3{Bucket: "b", Region: "r", AuthenticationType: "accesskey", AccessKeyID: "i"}
			}, Want: []string{"spec.forProvider.s3", "accesskey needs"}},
			{Name: "LogTypeLater", OnUpdate: true, Break: func(mg *v1alpha1.LogstreamConfiguration) { mg.Spec.ForProvider.LogType = "network" }, Want: []string{"spec.forProvider.logType", "is immutable"}},
		},
	}
}
