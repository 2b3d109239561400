// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// desire the service's children.
func (s *service) desire(r *compose.Run) error {
	if s.refused() {
		return nil
	}
	if err := s.desireEndpoints(r); err != nil {
		return err
	}
	if err := s.desireVIPService(r); err != nil {
		return err
	}
	return s.desireAttachments(r)
}

// desireEndpoints makes those of the template. A selector that is wrong deletes
// none that are there.
func (s *service) desireEndpoints(r *compose.Run) error {
	broken := s.sel.err != nil && s.endpoints != nil && s.xr.Spec.EndpointTemplate != nil
	provision := s.sel.provision && (s.verdict.Accepted || s.endpoints != nil)
	if !provision && !broken || !provisioned(s.endpoints, s.xr.Spec.EndpointTemplate) {
		return nil
	}
	return r.Desire(nameEndpoints, s.composeEndpoints(), endpointsReady(s.endpoints))
}

func endpointsReady(e *gatewayv1alpha1.TailscaleEndpoints) bool {
	return e != nil && e.Status.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue
}

// desireVIPService keeps the service also while no endpoints are selected, for
// its address, but does not make one then.
func (s *service) desireVIPService(r *compose.Run) error {
	if s.moving() || s.tailnet() == "" {
		return nil
	}
	mayMake := s.verdict.Accepted && s.sel.err == nil && !s.severalTailnets()
	if s.vip == nil && !mayMake {
		return nil
	}
	return r.Desire(nameVIPService, s.composeVIPService(), s.vipReady())
}

// desireAttachments tells each selected endpoints what to serve, once there is an
// address to serve it on. What is served stays as it is while the object asks for
// what cannot be.
func (s *service) desireAttachments(r *compose.Run) error {
	if s.sel.err != nil || s.severalTailnets() {
		for name, a := range s.attachments {
			if err := r.Desire(name, s.copyAttachment(a), true); err != nil {
				return err
			}
		}
		return nil
	}
	for _, p := range s.sel.sets {
		name := prefixAttachment + p.Spec.Endpoints
		old := s.attachments[name]
		var a *tailnetv1alpha1.ServiceAttachment
		switch {
		case s.moving():
		case s.portsErr == nil && len(s.addresses()) > 0:
			a = s.composeAttachment(p)
		case old != nil:
			a = s.copyAttachment(old)
		}
		if a == nil {
			continue
		}
		if err := r.Desire(name, a, true); err != nil {
			return err
		}
	}
	return nil
}

func (s *service) labels() map[string]string {
	return map[string]string{meta.LabelServices: s.owner.Name}
}

func (s *service) composeEndpoints() *gatewayv1alpha1.TailscaleEndpoints {
	t := s.xr.Spec.EndpointTemplate
	return &gatewayv1alpha1.TailscaleEndpoints{
		ObjectMeta: metav1.ObjectMeta{
			Name:      provisionedName(s.owner),
			Namespace: s.owner.Namespace,
			Labels:    provisionedLabels(s.owner, s.xr),
		},
		Spec: gatewayv1alpha1.TailscaleEndpointsSpec{Tailnet: t.Tailnet, Tags: t.Tags, Proxy: t.Proxy},
	}
}

func (s *service) composeVIPService() *tailnetv1alpha1.VIPService {
	t := s.xr.Spec.VIPService
	ports := make([]tailnetv1alpha1.ServicePort, len(t.Ports))
	for i, p := range t.Ports {
		ports[i] = tailnetv1alpha1.ServicePort(p)
	}
	l := s.labels()
	l[meta.LabelTailnet] = s.tailnet()
	return &tailnetv1alpha1.VIPService{
		ObjectMeta: metav1.ObjectMeta{Name: s.owner.Name, Namespace: s.owner.Namespace, Labels: l},
		Spec: tailnetv1alpha1.VIPServiceSpec{
			ManagedResourceSpec: xpv2.ManagedResourceSpec{ProviderConfigReference: compose.ProviderConfigRef(s.tailnet())},
			ForProvider: tailnetv1alpha1.VIPServiceParameters{
				Name:        tailnetv1alpha1.ServiceName(s.serviceName()),
				DisplayName: t.DisplayName,
				Comment:     t.Comment,
				Ports:       ports,
				Tags:        compose.Tags(t.Tags),
				Annotations: t.Annotations,
				Sharing:     tailnetv1alpha1.Sharing(s.xr.Spec.Sharing),
				RecordTags:  compose.Tags(t.RecordTags),
				AutoApprove: t.AutoApprove,
				HostTags:    s.hostTags(),
			},
		},
	}
}

// hostTags tell which machines may be approved as hosts.
func (s *service) hostTags() []tailnetv1alpha1.Tag {
	switch {
	case s.sel.provision && len(s.sel.sets) == 0:
		return compose.Tags(s.tailnetTags, compose.Tags(s.xr.Spec.EndpointTemplate.Tags))
	case s.vip != nil && (s.severalTailnets() || len(s.sel.sets) == 0):
		return s.vip.Spec.ForProvider.HostTags
	}
	return s.sel.tags()
}

func (s *service) composeAttachment(p tailnetv1alpha1.ProxySet) *tailnetv1alpha1.ServiceAttachment {
	ports := make([]tailnetv1alpha1.AttachmentPort, len(s.ports))
	for i, a := range s.ports {
		ports[i] = tailnetv1alpha1.AttachmentPort{
			Port: a.port,
			// Without the cluster's domain, which a pod's search list adds.
			Backend: &tailnetv1alpha1.AttachmentBackend{Host: a.backend.Name + "." + s.owner.Namespace + ".svc", Port: a.backend.Port},
		}
	}
	l := s.labels()
	l[meta.LabelEndpoints] = p.Spec.Endpoints
	l[meta.LabelDirection] = proxy.DirectionIngress
	return &tailnetv1alpha1.ServiceAttachment{
		ObjectMeta: metav1.ObjectMeta{
			Name:      compose.ChildName(s.owner.Name, p.Spec.Endpoints),
			Namespace: s.owner.Namespace,
			Labels:    l,
		},
		Spec: tailnetv1alpha1.ServiceAttachmentSpec{
			Endpoints:   p.Spec.Endpoints,
			Services:    s.owner.Name,
			Direction:   tailnetv1alpha1.DirectionIngress,
			ServiceName: tailnetv1alpha1.ServiceName(s.serviceName()),
			Addresses:   s.addresses(),
			Ports:       ports,
			HealthCheck: healthCheck(s.xr.Spec.LoadBalancing),
		},
	}
}

// copyAttachment composes one that was observed as it is.
func (s *service) copyAttachment(a *tailnetv1alpha1.ServiceAttachment) *tailnetv1alpha1.ServiceAttachment {
	l := s.labels()
	l[meta.LabelEndpoints] = a.Spec.Endpoints
	l[meta.LabelDirection] = proxy.DirectionIngress
	return &tailnetv1alpha1.ServiceAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: a.GetName(), Namespace: a.GetNamespace(), Labels: l},
		Spec:       a.Spec,
	}
}
