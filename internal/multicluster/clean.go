// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// maxPorts is the maximum number of ports of a Service: those of a record, and of an endpoint.
const maxPorts = 16

// maxAffinity is the maximum timeout of a session affinity, in seconds, in Kubernetes.
const maxAffinity = 86400

// Clean returns what of an exported Service may be in objects of Kubernetes, and whether its name may. Any client
// that can write services of the tailnet can write any record, and the API server would refuse the objects of a
// whole namespace for one invalid value.
func Clean(e tailnetv1alpha1.ExportedService) (tailnetv1alpha1.ExportedService, bool) {
	if len(validation.IsDNS1123Label(e.Name)) > 0 {
		return e, false
	}
	if e.Type != tailnetv1alpha1.ExportedServiceHeadless {
		e.Type = tailnetv1alpha1.ExportedServiceClusterSetIP
	}
	e.Ports = cleanPorts(e.Ports)
	if e.SessionAffinity != corev1.ServiceAffinityClientIP {
		e.SessionAffinity = corev1.ServiceAffinityNone
	}
	if s := e.SessionAffinityTimeoutSeconds; s != nil && (*s < 1 || *s > maxAffinity) {
		e.SessionAffinityTimeoutSeconds = nil
	}
	if p := e.InternalTrafficPolicy; p != nil && *p != corev1.ServiceInternalTrafficPolicyCluster && *p != corev1.ServiceInternalTrafficPolicyLocal {
		e.InternalTrafficPolicy = nil
	}
	if d := e.TrafficDistribution; d != nil && len(validation.IsQualifiedName(*d)) > 0 {
		e.TrafficDistribution = nil
	}
	if invalidMetadata(e) != "" {
		e.Labels, e.Annotations, e.MetadataOmitted = nil, nil, true
	}
	return e, true
}

// cleanPorts returns the ports that a Service may have together.
func cleanPorts(ports []tailnetv1alpha1.ExportedPort) []tailnetv1alpha1.ExportedPort {
	var out []tailnetv1alpha1.ExportedPort
	for _, p := range ports {
		p.Protocol = cmp.Or(p.Protocol, corev1.ProtocolTCP)
		supported := slices.Contains([]corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}, p.Protocol)
		if !supported || len(validation.IsValidPortNum(int(p.Port))) > 0 || p.Name != "" && len(validation.IsDNS1123Label(p.Name)) > 0 || hasPort(out, p) || len(out) == maxPorts {
			continue
		}
		if p.AppProtocol != nil && len(validation.IsQualifiedName(*p.AppProtocol)) > 0 {
			p.AppProtocol = nil
		}
		out = append(out, p)
	}
	return out
}

// hasPort reports whether ports have the name or the number of a port: a Service has each name, and each number
// of a protocol, once.
func hasPort(ports []tailnetv1alpha1.ExportedPort, p tailnetv1alpha1.ExportedPort) bool {
	return slices.ContainsFunc(ports, func(q tailnetv1alpha1.ExportedPort) bool {
		return p.Name == q.Name || p.Port == q.Port && protocolOf(p) == protocolOf(q)
	})
}

// invalidMetadata returns why exported labels or annotations cannot be those of an object, or "".
func invalidMetadata(e tailnetv1alpha1.ExportedService) string {
	spec := field.NewPath("spec")
	errs := append(metav1validation.ValidateLabels(e.Labels, spec.Child("exportedLabels")), apivalidation.ValidateAnnotations(e.Annotations, spec.Child("exportedAnnotations"))...)
	if len(errs) == 0 {
		return ""
	}
	return errs.ToAggregate().Error()
}
