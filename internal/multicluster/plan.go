// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	kmeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
	"github.com/tailscale-gateway/tailscale-gateway/internal/quota"
)

const (
	// Proxies is the name of a namespace's TailscaleEndpoints, whose proxies host what the namespace exports
	// and reach what it imports. An imported Service has a Service with this prefix and a dash, so that a DNS
	// server can rewrite NAME.NAMESPACE.svc.clusterset.local without another process.
	Proxies = "clusterset"

	// maxImports is the maximum number of imported Services of a namespace: the endpoints of a
	// TailscaleEndpoints.
	maxImports = 128

	// maxName is the maximum length of an imported Service's name: that of an endpoint.
	maxName = 40

	// maxPortName is the maximum length of the name of an endpoint's port.
	maxPortName = 15
)

// Membership is this cluster's part in a set of clusters.
type Membership struct {
	// Cluster is the cluster ID, and Set the name of the set.
	Cluster string
	Set     string

	// Tailnet is the name of the TailscaleTailnet, and Domain the DNS name of the tailnet, which is empty
	// while the tailnet has no device.
	Tailnet string
	Domain  string
}

// Facts are what the objects of a namespace follow from.
type Facts struct {
	Membership

	Namespace string

	// Exports are the ServiceExports of the namespace.
	Exports []mcsv1beta1.ServiceExport

	// Services are the Services that they name, by name.
	Services map[string]*corev1.Service

	// Records are the clusters of the set that export a Service, by its name.
	Records map[string][]Exporter

	// Imports are the ServiceImports of this package in the namespace, by name.
	Imports map[string]*mcsv1beta1.ServiceImport

	// Reached are the Services that lead to imported Services, by their name without the prefix.
	Reached map[string]*corev1.Service

	// Slices are the EndpointSlices of the namespace with the name of an imported Service in a label.
	Slices []discoveryv1.EndpointSlice

	// Foreign are the names of TailscaleEndpoints and TailscaleServices of the namespace that are not of this
	// package, by their kind.
	Foreign map[string][]string
}

// Owns reports whether an object has the label of those that follow from a plan.
func Owns(o metav1.Object) bool {
	return o.GetLabels()[meta.LabelManagedBy] == meta.ManagedByMulticluster
}

// Named reports whether an object of this package may have a name.
func Named(name string) bool { return name == Proxies || strings.HasPrefix(name, Proxies+"-") }

// Leads reports whether a Service leads to an imported one: it is the Service that the proxies of the namespace
// have for the name in its label.
func Leads(s *corev1.Service) bool {
	return s.GetName() == names.EndpointService(Proxies, s.Labels[mcsv1beta1.LabelServiceName]) && s.Labels[meta.LabelEndpoints] == Proxies
}

// taken returns which object of another owner has a name that a ServiceExport needs, or "".
func (f Facts) taken(service string) string {
	switch {
	case slices.Contains(f.Foreign[gatewayv1alpha1.TailscaleEndpointsKind], Proxies):
		return gatewayv1alpha1.TailscaleEndpointsKind + "/" + Proxies
	case slices.Contains(f.Foreign[gatewayv1alpha1.TailscaleServicesKind], ObjectName(service)):
		return gatewayv1alpha1.TailscaleServicesKind + "/" + ObjectName(service)
	}
	return ""
}

// An ExportStatus is the status of a ServiceExport.
type ExportStatus struct {
	Export     *mcsv1beta1.ServiceExport
	Conditions []metav1.Condition
}

// A Plan has the objects of a namespace.
type Plan struct {
	// Endpoints is nil if nothing is exported or imported.
	Endpoints *gatewayv1alpha1.TailscaleEndpoints

	// Services publish what this cluster exports.
	Services []*gatewayv1alpha1.TailscaleServices

	// Imports are the wanted ServiceImports.
	Imports []*mcsv1beta1.ServiceImport

	// Slices are the wanted EndpointSlices of ServiceImports.
	Slices []*discoveryv1.EndpointSlice

	// Statuses are those of the ServiceExports.
	Statuses []ExportStatus

	// Lags reports whether the records of this cluster lag behind its ServiceExports.
	Lags bool
}

// ServiceName returns the name in the tailnet, with its prefix svc:, of a Service that the clusters of a set
// export. It always has a hash, so that no two Services have the same name.
func ServiceName(set, namespace, name string) string {
	return "svc:" + names.OtherTailscaleService(name, namespace, set)
}

// ObjectName returns the name of the TailscaleServices that publishes an exported Service.
func ObjectName(service string) string { return names.Child(Proxies, service) }

// New returns the objects of a namespace.
func New(f Facts) Plan {
	p := Plan{}
	records := maps.Clone(f.Records)
	if records == nil {
		records = map[string][]Exporter{}
	}
	for i := range f.Exports {
		e := &f.Exports[i]
		exported, err := Describe(e, f.Services[e.GetName()])
		// The record of this cluster lags behind.
		exporters := slices.DeleteFunc(slices.Clone(records[e.GetName()]), f.isOwn)
		if err == nil {
			exporters = append(exporters, Exporter{Cluster: f.Cluster, ExportedService: *exported})
			if f.unfit(e.GetName(), exported.Ports) == "" {
				p.Services = append(p.Services, f.publish(e, exported))
			}
		}
		delete(records, e.GetName())
		if len(exporters) > 0 {
			records[e.GetName()] = exporters
		}
		p.Statuses = append(p.Statuses, ExportStatus{Export: e, Conditions: f.conditions(e, exported, err, exporters)})
	}
	p.Lags = f.lags(p.Statuses)
	var endpoints []gatewayv1alpha1.Endpoint
	reachable, resolved, refusals := []string(nil), map[string]Resolution{}, map[string]string{}
	// Another implementation of the API imports what has its ServiceImport.
	maps.DeleteFunc(records, func(name string, _ []Exporter) bool { return f.Imports[name] != nil && !Owns(f.Imports[name]) })
	for _, name := range slices.Sorted(maps.Keys(records)) {
		r := Resolve(records[name])
		resolved[name], refusals[name] = r, f.refusal(name, r)
		if refusals[name] == "" && r.Type == tailnetv1alpha1.ExportedServiceClusterSetIP {
			reachable = append(reachable, name)
		}
	}
	// An imported Service keeps its place when more are exported.
	admitted, _ := quota.Keep(maxImports, reachable, slices.Sorted(maps.Keys(f.Reached)))
	for _, name := range slices.Sorted(maps.Keys(records)) {
		switch {
		case slices.Contains(admitted, name):
			endpoints = append(endpoints, f.endpoint(name, resolved[name]))
		case slices.Contains(reachable, name):
			refusals[name] = fmt.Sprintf("The namespace imports %d other Services, and a TailscaleEndpoints has no more", maxImports)
		}
		p.Imports = append(p.Imports, f.serviceImport(name, resolved[name], records[name], refusals[name]))
	}
	p.Slices = f.slices(p.Imports)
	if len(endpoints)+len(p.Services) > 0 {
		p.Endpoints = f.proxies(endpoints)
	}
	return p
}

// unfit returns why a Service cannot be exported, or "".
func (f Facts) unfit(name string, ports []tailnetv1alpha1.ExportedPort) string {
	switch object := f.taken(name); {
	case object != "":
		return object + " has the name that the export needs; give it another name"
	case len(ports) > maxPorts:
		return fmt.Sprintf("The Service has more than %d ports, and a record in the tailnet has room for no more", maxPorts)
	}
	return unreachable(name, ports)
}

// unreachable returns why no cluster can reach an imported Service, or "".
func unreachable(name string, ports []tailnetv1alpha1.ExportedPort) string {
	switch tcp := TCPPorts(ports); {
	case len(tcp) == 0:
		return "The Service has no TCP port, and Tailscale Services have no others"
	case len(tcp) > maxPorts:
		return fmt.Sprintf("The clusters export more than %d TCP ports together", maxPorts)
	case len(name) > maxName || names.EndpointService(Proxies, name) != Proxies+"-"+name:
		return fmt.Sprintf("Its name cannot be part of the name of a Service %s-NAME; export a Service with a name of at most %d characters that does not end in ingress or egress", Proxies, maxName)
	}
	return ""
}

// isOwn reports whether an exporter is this cluster.
func (f Facts) isOwn(e Exporter) bool { return e.Cluster == f.Cluster }

// lags reports whether a record is missing, or is there for a ServiceExport that is not. A Service that is
// not exported any more is imported until its record is gone: the record of another cluster may come until then.
func (f Facts) lags(statuses []ExportStatus) bool {
	for _, s := range statuses {
		c := kmeta.FindStatusCondition(s.Conditions, string(mcsv1beta1.ServiceExportConditionReady))
		if c != nil && c.Reason == string(mcsv1beta1.ServiceExportReasonPending) {
			return true
		}
	}
	for name, exporters := range f.Records {
		exported := slices.ContainsFunc(f.Exports, func(e mcsv1beta1.ServiceExport) bool { return e.GetName() == name })
		if !exported && slices.ContainsFunc(exporters, f.isOwn) {
			return true
		}
	}
	return false
}

// refusal returns why the namespace cannot reach an imported Service, or "".
func (f Facts) refusal(name string, r Resolution) string {
	problem := unreachable(name, r.Ports)
	switch {
	case slices.Contains(f.Foreign[gatewayv1alpha1.TailscaleEndpointsKind], Proxies):
		return fmt.Sprintf("%s %q is not of a ServiceExport; give it another name", gatewayv1alpha1.TailscaleEndpointsKind, Proxies)
	case problem != "":
		return problem
	case f.Domain == "":
		return "Waiting for a device in the tailnet, which shows the tailnet's domain"
	case len(f.Records[name]) == 0 && f.Reached[name] == nil:
		// Until then, the name in the tailnet may be that of another owner. A Service that was reached stays
		// while its record is written again.
		return "Waiting for the record in the tailnet"
	}
	return ""
}

// labels returns the labels of the objects of this package.
func labels(name string) map[string]string {
	return map[string]string{meta.LabelManagedBy: meta.ManagedByMulticluster, mcsv1beta1.LabelServiceName: name}
}

// proxies returns the TailscaleEndpoints. It has only the fields that the plan decides: users may set the others.
func (f Facts) proxies(endpoints []gatewayv1alpha1.Endpoint) *gatewayv1alpha1.TailscaleEndpoints {
	return &gatewayv1alpha1.TailscaleEndpoints{
		TypeMeta:   metav1.TypeMeta{APIVersion: gatewayv1alpha1.SchemeGroupVersion.String(), Kind: gatewayv1alpha1.TailscaleEndpointsKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: Proxies, Labels: map[string]string{meta.LabelManagedBy: meta.ManagedByMulticluster}},
		Spec: gatewayv1alpha1.TailscaleEndpointsSpec{
			Tailnet:   f.Tailnet,
			Proxy:     gatewayv1alpha1.Proxy{ConnectionType: gatewayv1alpha1.ConnectionTypeBidirectional},
			Endpoints: endpoints,
		},
	}
}

// endpoint returns the endpoint of an imported Service. Its Service has the labels by which Envoy Gateway finds
// the endpoints of a ServiceImport (internal/provider/kubernetes/predicates.go).
func (f Facts) endpoint(name string, r Resolution) gatewayv1alpha1.Endpoint {
	service := ServiceName(f.Set, f.Namespace, name)
	out := gatewayv1alpha1.Endpoint{
		Name:          name,
		TailscaleFQDN: service[len("svc:"):] + "." + f.Domain,
		ServiceLabels: map[string]tailnetv1alpha1.LabelValue{
			mcsv1beta1.LabelServiceName: tailnetv1alpha1.LabelValue(name),
		},
	}
	// A cluster ID may be what no label can be.
	if len(validation.IsValidLabelValue(r.Oldest)) == 0 {
		out.ServiceLabels[mcsv1beta1.LabelSourceCluster] = tailnetv1alpha1.LabelValue(r.Oldest)
	}
	for _, p := range r.Ports {
		if protocolOf(p) != corev1.ProtocolTCP {
			continue
		}
		port := gatewayv1alpha1.EndpointsPort{Port: p.Port, Protocol: speaks(p)}
		if len(p.Name) <= maxPortName {
			port.Name = p.Name
		}
		out.Ports = append(out.Ports, port)
	}
	return out
}

// speaks returns the protocol of a port. Only those whose name is the same in Kubernetes and here are known.
func speaks(p tailnetv1alpha1.ExportedPort) gatewayv1alpha1.EndpointProtocol {
	switch ptr.Deref(p.AppProtocol, "") {
	case "http":
		return gatewayv1alpha1.EndpointProtocolHTTP
	case "https":
		return gatewayv1alpha1.EndpointProtocolHTTPS
	case "kubernetes.io/h2c", "grpc":
		return gatewayv1alpha1.EndpointProtocolGRPC
	case "tls":
		return gatewayv1alpha1.EndpointProtocolTLS
	}
	return gatewayv1alpha1.EndpointProtocolTCP
}

// publish returns the TailscaleServices of an exported Service.
func (f Facts) publish(e *mcsv1beta1.ServiceExport, exported *tailnetv1alpha1.ExportedService) *gatewayv1alpha1.TailscaleServices {
	out := &gatewayv1alpha1.TailscaleServices{
		TypeMeta: metav1.TypeMeta{APIVersion: gatewayv1alpha1.SchemeGroupVersion.String(), Kind: gatewayv1alpha1.TailscaleServicesKind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.Namespace, Name: ObjectName(e.GetName()), Labels: labels(e.GetName()),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: mcsv1beta1.GroupVersion.String(), Kind: mcsv1beta1.ServiceExportKindName, Name: e.GetName(), UID: e.GetUID(),
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Spec: gatewayv1alpha1.TailscaleServicesSpec{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{meta.LabelEndpoints: Proxies}},
			VIPService: gatewayv1alpha1.VIPServiceTemplate{
				Name:    gatewayv1alpha1.ServiceName(ServiceName(f.Set, f.Namespace, e.GetName())),
				Comment: fmt.Sprintf("Service %s/%s of the cluster set %s", f.Namespace, e.GetName(), f.Set),
				Export:  exported,
			},
		},
	}
	for _, port := range TCPPorts(exported.Ports) {
		out.Spec.VIPService.Ports = append(out.Spec.VIPService.Ports, gatewayv1alpha1.ServicePort(tailnetv1alpha1.ServicePortOf(port)))
		out.Spec.Backends = append(out.Spec.Backends, gatewayv1alpha1.Backend{Name: e.GetName(), Port: port, VIPPort: ptr.To(port)})
	}
	return out
}

// serviceImport returns the ServiceImport of a Service, which this cluster cannot reach if there is a refusal.
func (f Facts) serviceImport(name string, r Resolution, exporters []Exporter, refusal string) *mcsv1beta1.ServiceImport {
	out := &mcsv1beta1.ServiceImport{
		TypeMeta: metav1.TypeMeta{APIVersion: mcsv1beta1.GroupVersion.String(), Kind: mcsv1beta1.ServiceImportKindName},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.Namespace, Name: name,
			Labels: maps.Clone(r.Labels), Annotations: maps.Clone(r.Annotations),
		},
		Spec: mcsv1beta1.ServiceImportSpec{
			Type:                  mcsv1beta1.ServiceImportType(r.Type),
			SessionAffinity:       affinityOf(r.ExportedService),
			InternalTrafficPolicy: r.InternalTrafficPolicy,
			TrafficDistribution:   r.TrafficDistribution,
			Ports:                 []mcsv1beta1.ServicePort{}, // A headless Service may have none, but the field is required.
		},
	}
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	maps.Copy(out.Labels, labels(name))
	if s := r.SessionAffinityTimeoutSeconds; s != nil {
		out.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: s}}
	}
	for _, p := range r.Ports {
		out.Spec.Ports = append(out.Spec.Ports, mcsv1beta1.ServicePort{Name: p.Name, Protocol: protocolOf(p), AppProtocol: p.AppProtocol, Port: p.Port})
	}
	if s := f.Reached[name]; s != nil && r.Type == tailnetv1alpha1.ExportedServiceClusterSetIP {
		out.Spec.IPs, out.Spec.IPFamilies = s.Spec.ClusterIPs, s.Spec.IPFamilies
	}
	for _, e := range exporters {
		out.Status.Clusters = append(out.Status.Clusters, mcsv1beta1.ClusterStatus{Cluster: e.Cluster})
	}
	slices.SortFunc(out.Status.Clusters, func(a, b mcsv1beta1.ClusterStatus) int { return cmp.Compare(a.Cluster, b.Cluster) })
	out.Status.EndpointSliceObjects = mcsv1beta1.EndpointSliceObjectsAbsent
	if f.hasSlice(name) {
		out.Status.EndpointSliceObjects = mcsv1beta1.EndpointSliceObjectsPresent
	}
	out.Status.Conditions = []metav1.Condition{importReady(r, out.Spec.IPs, refusal)}
	return out
}

// importReady returns the condition Ready of a ServiceImport.
func importReady(r Resolution, ips []string, refusal string) metav1.Condition {
	out := metav1.Condition{Type: string(mcsv1beta1.ServiceImportConditionReady), Status: metav1.ConditionFalse, Reason: string(mcsv1beta1.ServiceImportReasonPending)}
	switch {
	case r.Type == tailnetv1alpha1.ExportedServiceHeadless:
		out.Message = "A Service without a cluster IP is imported by its name only: Tailscale Services lead to a service, not to its pods"
	case refusal != "":
		out.Message = refusal
	case len(ips) == 0:
		out.Message = fmt.Sprintf("Waiting for the Service that leads to it; the conditions of TailscaleEndpoints %q show the progress", Proxies)
	default:
		out.Status, out.Reason, out.Message = metav1.ConditionTrue, string(mcsv1beta1.ServiceImportReasonReady), unreached(r.Ports)
	}
	return out
}

// unreached returns a message about ports that reach no other cluster, or "".
func unreached(ports []tailnetv1alpha1.ExportedPort) string {
	var out []string
	for _, p := range ports {
		if protocolOf(p) != corev1.ProtocolTCP {
			out = append(out, fmt.Sprintf("%d/%s", p.Port, protocolOf(p)))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "Only TCP reaches other clusters, not " + strings.Join(out, ", ") + ": Tailscale Services have no other protocol"
}

// conditions returns the conditions of a ServiceExport.
func (f Facts) conditions(e *mcsv1beta1.ServiceExport, exported *tailnetv1alpha1.ExportedService, err error, exporters []Exporter) []metav1.Condition {
	if err != nil {
		reason := mcsv1beta1.ServiceExportReasonNoService
		var r *RefusalError
		if errors.As(err, &r) {
			reason = r.Reason
		}
		return []metav1.Condition{
			condition(e, mcsv1beta1.ServiceExportConditionValid, metav1.ConditionFalse, reason, err.Error()),
			condition(e, mcsv1beta1.ServiceExportConditionReady, metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonFailed, "The Service cannot be exported: see the condition Valid"),
			condition(e, mcsv1beta1.ServiceExportConditionConflict, metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonNoConflicts, ""),
		}
	}
	out := []metav1.Condition{condition(e, mcsv1beta1.ServiceExportConditionValid, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonValid, "")}
	switch {
	case f.unfit(e.GetName(), exported.Ports) != "":
		out = append(out, condition(e, mcsv1beta1.ServiceExportConditionReady, metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonFailed, f.unfit(e.GetName(), exported.Ports)))
	case slices.ContainsFunc(f.Records[e.GetName()], f.isOwn):
		out = append(out, condition(e, mcsv1beta1.ServiceExportConditionReady, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonExported, unreached(exported.Ports)))
	default:
		out = append(out, condition(e, mcsv1beta1.ServiceExportConditionReady, metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonPending, fmt.Sprintf("Waiting for the record in the tailnet; the conditions of TailscaleServices %q show the progress", ObjectName(e.GetName()))))
	}
	if reason, message := Resolve(exporters).Conflict(); reason != "" {
		return append(out, condition(e, mcsv1beta1.ServiceExportConditionConflict, metav1.ConditionTrue, mcsv1beta1.ServiceExportConditionReason(reason), message))
	}
	return append(out, condition(e, mcsv1beta1.ServiceExportConditionConflict, metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonNoConflicts, ""))
}

// condition returns a condition without the time of its last transition, which the writer sets.
func condition(e *mcsv1beta1.ServiceExport, t mcsv1beta1.ServiceExportConditionType, status metav1.ConditionStatus, reason mcsv1beta1.ServiceExportConditionReason, message string) metav1.Condition {
	return metav1.Condition{Type: string(t), Status: status, ObservedGeneration: e.GetGeneration(), Reason: string(cmp.Or(reason, mcsv1beta1.ServiceExportReasonPending)), Message: message}
}

// Refused returns conditions of a ServiceExport with a problem of what would publish it.
func Refused(e *mcsv1beta1.ServiceExport, conditions []metav1.Condition, problem string) []metav1.Condition {
	out := slices.DeleteFunc(slices.Clone(conditions), func(c metav1.Condition) bool {
		return c.Type == string(mcsv1beta1.ServiceExportConditionReady)
	})
	return append(out, condition(e, mcsv1beta1.ServiceExportConditionReady, metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonFailed, problem))
}

// NotReady returns the condition of a ServiceExport with which nothing can be done.
func NotReady(e *mcsv1beta1.ServiceExport, message string) metav1.Condition {
	return condition(e, mcsv1beta1.ServiceExportConditionReady, metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonPending, message)
}
