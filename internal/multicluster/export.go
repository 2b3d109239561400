// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// reasonInvalidMetadata is the reason of a ServiceExport whose labels or annotations no object can have.
const reasonInvalidMetadata mcsv1beta1.ServiceExportConditionReason = "InvalidMetadata"

// A RefusalError says why a Service cannot be exported, and is the reason and the message of a condition.
type RefusalError struct {
	Reason  mcsv1beta1.ServiceExportConditionReason
	Message string
}

// Error returns the message.
func (e *RefusalError) Error() string { return e.Message }

// Describe returns what a ServiceExport exports. The Service is nil if there is none. The error is nil or a
// RefusalError.
func Describe(e *mcsv1beta1.ServiceExport, s *corev1.Service) (*tailnetv1alpha1.ExportedService, error) {
	switch {
	case s == nil:
		return nil, &RefusalError{Reason: mcsv1beta1.ServiceExportReasonNoService, Message: fmt.Sprintf("Create a Service %q in this namespace, or delete the ServiceExport", e.GetName())}
	case s.Spec.Type == corev1.ServiceTypeExternalName:
		return nil, &RefusalError{Reason: mcsv1beta1.ServiceExportReasonInvalidServiceType, Message: "A Service of type ExternalName has no endpoints in this cluster and cannot be exported; export one of type ClusterIP"}
	}
	if problem := invalidMetadata(tailnetv1alpha1.ExportedService{Labels: e.Spec.ExportedLabels, Annotations: e.Spec.ExportedAnnotations}); problem != "" {
		return nil, &RefusalError{Reason: reasonInvalidMetadata, Message: problem}
	}
	out := &tailnetv1alpha1.ExportedService{
		Name:                  e.GetName(),
		Created:               e.CreationTimestamp,
		Type:                  tailnetv1alpha1.ExportedServiceClusterSetIP,
		SessionAffinity:       s.Spec.SessionAffinity,
		InternalTrafficPolicy: s.Spec.InternalTrafficPolicy,
		TrafficDistribution:   s.Spec.TrafficDistribution,
		Labels:                e.Spec.ExportedLabels,
		Annotations:           e.Spec.ExportedAnnotations,
	}
	if s.Spec.ClusterIP == corev1.ClusterIPNone {
		out.Type = tailnetv1alpha1.ExportedServiceHeadless
	}
	if c := s.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil {
		out.SessionAffinityTimeoutSeconds = c.ClientIP.TimeoutSeconds
	}
	for _, p := range s.Spec.Ports {
		out.Ports = append(out.Ports, tailnetv1alpha1.ExportedPort{Name: p.Name, Protocol: p.Protocol, AppProtocol: p.AppProtocol, Port: p.Port})
	}
	return out, nil
}

// TCPPorts returns the numbers of the ports that reach other clusters.
func TCPPorts(ports []tailnetv1alpha1.ExportedPort) []int32 {
	var out []int32
	for _, p := range ports {
		if protocolOf(p) == corev1.ProtocolTCP {
			out = append(out, p.Port)
		}
	}
	return out
}
