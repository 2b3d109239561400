// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"crypto/x509"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	authv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/check"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
)

// Names in Envoy Gateway's own chart, which has envoyGatewayLabel on its pods.
const (
	envoyGatewayKey   = "envoy-gateway.yaml"
	envoyGatewayLabel = "control-plane"
)

// gateway reads what is known of Envoy Gateway and the extension.
func (r *reader) gateway() check.GatewayFacts {
	o := r.options
	out := check.GatewayFacts{
		EnvoyGateway: r.deployment(o.EnvoyGatewayNamespace, check.EnvoyGatewayDeployment, check.EnvoyGatewayChart),
		Extension:    r.deployment(o.ExtensionNamespace, charts.Extension, charts.Extension),
		Config: ask(r, func() (string, error) {
			cm := &corev1.ConfigMap{}
			err := r.kube.Get(r.ctx, types.NamespacedName{Namespace: o.EnvoyGatewayNamespace, Name: check.EnvoyGatewayConfigMap}, cm)
			return cm.Data[envoyGatewayKey], err
		}),
		Started: ask(r, r.started),
		CronJob: ask(r, func() (bool, error) {
			err := r.kube.Get(r.ctx, types.NamespacedName{Namespace: o.ExtensionNamespace, Name: charts.Extension + "-certificates"}, &batchv1.CronJob{})
			return err == nil, err
		}),
		Secrets: map[string]check.Answer[check.Secret]{},
	}
	if o.EnvoyGateway == check.Auto && out.Extension.Value == nil {
		return out
	}
	for name := range check.Secrets() {
		out.Secrets[name] = ask(r, func() (check.Secret, error) { return r.secret(name) })
	}
	return out
}

func (r *reader) deployment(namespace, name, chart string) check.Answer[*appsv1.Deployment] {
	return ask(r, func() (*appsv1.Deployment, error) {
		d := &appsv1.Deployment{}
		if err := r.kube.Get(r.ctx, types.NamespacedName{Namespace: namespace, Name: name}, d); err != nil {
			return nil, err
		}
		r.release(chart, d)
		return d, nil
	})
}

// started returns when the oldest running container of Envoy Gateway started.
func (r *reader) started() (time.Time, error) {
	l := &corev1.PodList{}
	if err := r.kube.List(r.ctx, l, client.InNamespace(r.options.EnvoyGatewayNamespace), client.MatchingLabels{envoyGatewayLabel: check.EnvoyGatewayDeployment}); err != nil {
		return time.Time{}, err
	}
	var out time.Time
	for n := range l.Items {
		for _, c := range l.Items[n].Status.ContainerStatuses {
			if c.State.Running == nil {
				continue
			}
			if t := c.State.Running.StartedAt.Time; out.IsZero() || t.Before(out) {
				out = t
			}
		}
	}
	return out, nil
}

// secret returns what may be known of a Secret: it keeps no key.
func (r *reader) secret(name string) (check.Secret, error) {
	s := &corev1.Secret{}
	if err := r.kube.Get(r.ctx, types.NamespacedName{Namespace: r.options.ExtensionNamespace, Name: name}, s); err != nil {
		return check.Secret{}, err
	}
	out := check.Secret{Keys: map[string]bool{}}
	for k, v := range s.Data {
		if len(v) > 0 {
			out.Keys[k] = true
		}
	}
	out.Chain, out.Authorities = parseCertificates(s.Data[corev1.TLSCertKey]), parseCertificates(s.Data[check.KeyAuthorities])
	out.CertManager = s.GetAnnotations()[annotationCertificate]
	return out, nil
}

// annotationCertificate is on Secrets of cert-manager, with the name of the Certificate.
const annotationCertificate = "cert-manager.io/certificate-name"

// parseCertificates returns the certificates of a PEM file, and none if one of them is not valid.
func parseCertificates(b []byte) []*x509.Certificate {
	out, err := cert.ParseCertsPEM(b)
	if err != nil {
		return nil
	}
	return out
}

// rightsLimit is the number of questions about permissions at a time.
const rightsLimit = 16

// rights asks what service accounts may do.
func (r *reader) rights(f check.Facts) ([]check.Rights, error) {
	out, err := check.Required(r.options)
	if err != nil {
		return nil, err
	}
	if r.options.EnvoyGateway == check.Require || f.Gateway.Extension.Value != nil {
		more, err := check.RequiredByRoutes(r.options)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	for n := range out {
		answer := ask(r, func() ([]authv1.ResourceAttributes, error) { return r.missing(out[n]) })
		out[n].Missing, out[n].Unknown = answer.Value, answer.Unknown
	}
	return out, nil
}

// missing returns the permissions that an account does not have, in their order.
func (r *reader) missing(rights check.Rights) ([]authv1.ResourceAttributes, error) {
	var mu sync.Mutex
	denied := make([]bool, len(rights.Required))
	g, ctx := errgroup.WithContext(r.ctx)
	g.SetLimit(rightsLimit)
	for n, p := range rights.Required {
		g.Go(func() error {
			review := &authv1.SubjectAccessReview{Spec: authv1.SubjectAccessReviewSpec{
				User: "system:serviceaccount:" + rights.Namespace + ":" + rights.Account,
				// A real request has these groups too, and a binding may name one.
				Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + rights.Namespace, "system:authenticated"},
				ResourceAttributes: &p,
			}}
			if err := r.kube.Create(ctx, review); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			denied[n] = !review.Status.Allowed
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var out []authv1.ResourceAttributes
	for n, p := range rights.Required {
		if denied[n] {
			out = append(out, p)
		}
	}
	return out, nil
}
