// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package multicluster plans the objects of the Multi-Cluster Services API (KEP-1645) in one namespace: what
// this cluster exports, what it imports, and the proxies for both. It is pure.
package multicluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// An Exporter is a cluster that exports a Service.
type Exporter struct {
	// Cluster is the cluster ID.
	Cluster string

	tailnetv1alpha1.ExportedService
}

// A difference is a property that clusters export differently.
type difference struct {
	reason mcsv1beta1.ServiceExportConditionReason

	// field of the Service or of the ServiceExport.
	field string

	// cluster exports another value than the oldest ServiceExport.
	cluster string
}

// A Resolution is what the exporters of a Service agree on: the values of the oldest ServiceExport, and the
// ports of all.
type Resolution struct {
	tailnetv1alpha1.ExportedService

	// Oldest is the cluster whose values count.
	Oldest string

	differences []difference
}

// Resolve returns what the exporters of a Service agree on. There must be at least one. Of two
// ServiceExports of the same second, that of the smaller cluster ID counts as older.
func Resolve(exporters []Exporter) Resolution {
	sorted := slices.SortedFunc(slices.Values(exporters), func(a, b Exporter) int {
		return cmp.Or(a.Created.Compare(b.Created.Time), cmp.Compare(a.Cluster, b.Cluster))
	})
	oldest := sorted[0]
	out := Resolution{ExportedService: oldest.ExportedService, Oldest: oldest.Cluster}
	out.Type = typeOf(oldest.ExportedService)
	out.Ports = slices.Clone(oldest.Ports)
	for _, e := range sorted[1:] {
		out.join(oldest.ExportedService, e)
	}
	return out
}

// join adds the ports of an exporter, and what differs from the oldest one.
func (r *Resolution) join(oldest tailnetv1alpha1.ExportedService, e Exporter) {
	differs := func(same bool, reason mcsv1beta1.ServiceExportConditionReason, field string) {
		if !same {
			r.differences = append(r.differences, difference{reason: reason, field: field, cluster: e.Cluster})
		}
	}
	differs(samePorts(oldest.Ports, e.Ports), mcsv1beta1.ServiceExportReasonPortConflict, "spec.ports")
	differs(typeOf(oldest) == typeOf(e.ExportedService), mcsv1beta1.ServiceExportReasonTypeConflict, "spec.clusterIP")
	differs(affinityOf(oldest) == affinityOf(e.ExportedService), mcsv1beta1.ServiceExportReasonSessionAffinityConflict, "spec.sessionAffinity")
	differs(ptr.Equal(oldest.SessionAffinityTimeoutSeconds, e.SessionAffinityTimeoutSeconds), mcsv1beta1.ServiceExportReasonSessionAffinityConfigConflict, "spec.sessionAffinityConfig")
	omitted := oldest.MetadataOmitted || e.MetadataOmitted
	differs(omitted || maps.Equal(oldest.Annotations, e.Annotations), mcsv1beta1.ServiceExportReasonAnnotationsConflict, "exportedAnnotations")
	differs(omitted || maps.Equal(oldest.Labels, e.Labels), mcsv1beta1.ServiceExportReasonLabelsConflict, "exportedLabels")
	differs(ptr.Equal(oldest.InternalTrafficPolicy, e.InternalTrafficPolicy), mcsv1beta1.ServiceExportReasonInternalTrafficPolicyConflict, "spec.internalTrafficPolicy")
	differs(ptr.Equal(oldest.TrafficDistribution, e.TrafficDistribution), mcsv1beta1.ServiceExportReasonTrafficDistributionConflict, "spec.trafficDistribution")
	for _, p := range e.Ports {
		if !hasPort(r.Ports, p) {
			r.Ports = append(r.Ports, p)
		}
	}
}

// Conflict returns the reasons of the condition Conflict, joined with commas, and its message. Both are
// empty if all exporters agree.
func (r Resolution) Conflict() (reason, message string) {
	var reasons, fields []string
	for _, d := range r.differences {
		if !slices.Contains(reasons, string(d.reason)) {
			reasons = append(reasons, string(d.reason))
		}
		fields = append(fields, fmt.Sprintf("%s in cluster %q", d.field, d.cluster))
	}
	if len(reasons) == 0 {
		return "", ""
	}
	return strings.Join(reasons, ","), fmt.Sprintf("Clusters export different Services, and the oldest ServiceExport, of cluster %q, decides. Different are %s", r.Oldest, strings.Join(fields[:min(len(fields), maxFields)], ", "))
}

// maxFields limits the fields that a message names.
const maxFields = 8

// samePorts reports whether two lists have the same ports in any order.
func samePorts(a, b []tailnetv1alpha1.ExportedPort) bool {
	key := func(p tailnetv1alpha1.ExportedPort) string {
		return fmt.Sprintf("%s/%s/%d/%s", p.Name, protocolOf(p), p.Port, ptr.Deref(p.AppProtocol, ""))
	}
	keys := func(ports []tailnetv1alpha1.ExportedPort) []string {
		out := make([]string, len(ports))
		for i, p := range ports {
			out[i] = key(p)
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(keys(a), keys(b))
}

func protocolOf(p tailnetv1alpha1.ExportedPort) corev1.Protocol {
	return cmp.Or(p.Protocol, corev1.ProtocolTCP)
}

func affinityOf(e tailnetv1alpha1.ExportedService) corev1.ServiceAffinity {
	return cmp.Or(e.SessionAffinity, corev1.ServiceAffinityNone)
}

func typeOf(e tailnetv1alpha1.ExportedService) tailnetv1alpha1.ExportedServiceType {
	return cmp.Or(e.Type, tailnetv1alpha1.ExportedServiceClusterSetIP)
}
