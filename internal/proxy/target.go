// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// A TargetPort is a port on which the cluster reaches a target in the tailnet.
type TargetPort struct {
	// Name of the port, unique in its Service.
	Name string

	// Port that clients connect to.
	Port int32

	// ProxyPort is the port of the egress pods.
	ProxyPort int32

	// Protocol is TCP or UDP.
	Protocol corev1.Protocol

	// SingleStack reports that the pods carry the port in one address family.
	SingleStack bool

	// AppProtocol is the application protocol, in Kubernetes' notation. Empty if unknown.
	AppProtocol string
}

// TargetService builds the Service by which any pod reaches an endpoint in the tailnet, through
// the group's ready pods. It has an address of each of the cluster's families if the pods carry
// all ports in both: clients use either. The policy is always set, because the API server keeps
// the policy of a Service that stops to name one.
func TargetService(o Options, name, endpoint string, ports []TargetPort) *corev1.Service {
	om := o.objectMeta()
	om.Name = name
	om.Labels[meta.LabelEndpoint] = endpoint
	s := &corev1.Service{ObjectMeta: om, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Selector: o.PodLabels(), IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicyPreferDualStack)}}
	if slices.ContainsFunc(ports, func(p TargetPort) bool { return p.SingleStack }) {
		s.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicySingleStack)
	}
	for _, p := range ports {
		sp := corev1.ServicePort{Name: p.Name, Port: p.Port, TargetPort: intstr.FromInt32(p.ProxyPort), Protocol: p.Protocol}
		if p.AppProtocol != "" {
			sp.AppProtocol = ptr.To(p.AppProtocol)
		}
		s.Spec.Ports = append(s.Spec.Ports, sp)
	}
	return s
}

// EgressConfigMap builds the ConfigMap with the ports and targets of the group's agents.
func EgressConfigMap(o Options, data map[string]string) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: o.objectMeta(), Data: data}
	metav1.SetMetaDataLabel(&c.ObjectMeta, meta.LabelBackup, "true")
	return c
}
