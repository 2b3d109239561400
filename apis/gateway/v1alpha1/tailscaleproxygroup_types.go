// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// A ProxyGroupTailnet is a tailnet in which a group has proxies.
type ProxyGroupTailnet struct {
	// Name of the TailscaleTailnet.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Replicas in this tailnet, per zone if zones is set. Absent means spec.replicas. kubectl
	// scale and autoscalers do not change it.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=64
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
}

// A Zone is the value of a node's label topology.kubernetes.io/zone.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
type Zone string

// A ProxyGroupTemplate configures all TailscaleEndpoints of a group.
type ProxyGroupTemplate struct {
	// Labels of the TailscaleEndpoints, which a TailscaleServices can select. They also have
	// the label gateway.tailscale.com/proxy-group with the group's name.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('gateway.tailscale.com/') && !k.startsWith('tailnet.gateway.tailscale.com/'))",message="labels of gateway.tailscale.com are reserved; use another prefix"
	// +optional
	Labels map[string]tailnetv1alpha1.LabelValue `json:"labels,omitempty"`

	// Tags of the machines, in addition to those of each tailnet.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// Proxy configures the pods.
	// +kubebuilder:default={}
	// +optional
	Proxy ProxyPods `json:"proxy,omitempty"`

	// Ports that the proxies serve, as in a TailscaleEndpoints: those of services that ingress
	// proxies may host, and of endpoints that set no port.
	// +optional
	Ports EndpointsPorts `json:"ports,omitempty"`

	// Endpoints are targets that the cluster reaches through the group's egress
	// proxies, in each of its tailnets.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	// +optional
	Endpoints []Endpoint `json:"endpoints,omitempty"`
}

// A TailscaleProxyGroupSpec configures a group of proxies in several tailnets and zones.
// +kubebuilder:validation:XValidation:rule="!has(self.template) || !has(self.template.endpoints) || self.type != 'ingress' || self.template.endpoints.all(e, has(e.externalTarget))",message="template.endpoints with tailscaleIP or tailscaleFQDN need type egress or bidirectional"
// +kubebuilder:validation:XValidation:rule="!has(self.zones) || !has(self.template) || !has(self.template.proxy) || !has(self.template.proxy.nodeSelector) || !('topology.kubernetes.io/zone' in self.template.proxy.nodeSelector)",message="zones already selects the zone; remove topology.kubernetes.io/zone from template.proxy.nodeSelector"
// +kubebuilder:validation:XValidation:rule="!has(self.template) || !has(self.template.endpoints) || (has(self.template.proxy) && has(self.template.proxy.networking) && self.template.proxy.networking == 'Kernel') || !self.template.endpoints.exists(e, has(e.protocol) && e.protocol == 'UDP')",message="template.endpoints with protocol UDP need template.proxy.networking Kernel"
// +kubebuilder:validation:XValidation:rule="!has(self.template) || !has(self.template.ports) || (has(self.template.proxy) && has(self.template.proxy.networking) && self.template.proxy.networking == 'Kernel') || !self.template.ports.exists(p, has(p.protocol) && p.protocol == 'UDP')",message="template.ports with protocol UDP need template.proxy.networking Kernel"
// +kubebuilder:validation:XValidation:rule="!has(self.template) || !has(self.template.endpoints) || !has(self.template.proxy) || !has(self.template.proxy.networkPolicy) || self.template.proxy.networkPolicy.enabled || !self.template.endpoints.exists(e, has(e.clients))",message="template.endpoints with clients need template.proxy.networkPolicy.enabled"
type TailscaleProxyGroupSpec struct {
	// Type is the direction in which the proxies carry traffic: ingress from the tailnets into
	// the cluster, egress from the cluster into the tailnets, or bidirectional, with replicas
	// for each direction.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another TailscaleProxyGroup instead"
	Type ConnectionType `json:"type"`

	// Tailnets in which the group has proxies. Removing an entry removes its proxies, and no
	// others.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Tailnets []ProxyGroupTailnet `json:"tailnets"`

	// Replicas in each tailnet, and in each of its zones if zones is set. kubectl scale and
	// autoscalers set it, too.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=64
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Zones in which the group has proxies: each tailnet gets separate proxies in each zone,
	// which run only on nodes of that zone. Absent spreads the pods over zones where possible.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Zones []Zone `json:"zones,omitempty"`

	// Template configures all proxies of the group.
	// +kubebuilder:default={}
	// +optional
	Template ProxyGroupTemplate `json:"template,omitempty"`
}

// A ProxyGroupDevice is one machine of a group in its tailnet.
type ProxyGroupDevice struct {
	// Hostname in the tailnet.
	Hostname string `json:"hostname"`

	// +optional
	TailscaleFQDN string `json:"tailscaleFQDN,omitempty"`

	// Addresses in the tailnet, IPv4 first.
	// +listType=atomic
	// +optional
	Addresses []string `json:"addresses,omitempty"`

	// Tailnet is the name of the TailscaleTailnet.
	Tailnet string `json:"tailnet"`

	// Zone of the machine, if it is pinned to one.
	// +optional
	Zone string `json:"zone,omitempty"`

	// Pod is the name of the pod that runs the machine.
	Pod string `json:"pod"`

	// Online reports whether the machine is connected to the control server.
	Online bool `json:"online"`
}

// A ProxyGroupEndpoints is one TailscaleEndpoints of a group.
type ProxyGroupEndpoints struct {
	// Name of the TailscaleEndpoints.
	Name string `json:"name"`

	// Tailnet is the name of the TailscaleTailnet.
	Tailnet string `json:"tailnet"`

	// Zone of the pods, if they are pinned to one.
	// +optional
	Zone string `json:"zone,omitempty"`

	// DesiredReplicas is the number of desired devices.
	DesiredReplicas int32 `json:"desiredReplicas"`

	// OnlineReplicas is the number of devices that are in the tailnet.
	OnlineReplicas int32 `json:"onlineReplicas"`
}

// A TailscaleProxyGroupStatus is the observed state of a TailscaleProxyGroup.
type TailscaleProxyGroupStatus struct {
	xpv2.ConditionedStatus `json:",inline"`

	// Endpoints are the TailscaleEndpoints of the group.
	// +listType=map
	// +listMapKey=name
	// +optional
	Endpoints []ProxyGroupEndpoints `json:"endpoints,omitempty"`

	// Devices are the machines of the group.
	// +listType=map
	// +listMapKey=pod
	// +optional
	Devices []ProxyGroupDevice `json:"devices,omitempty"`

	// DesiredReplicas is the number of desired devices in all tailnets, zones and directions.
	// +optional
	DesiredReplicas *int32 `json:"desiredReplicas,omitempty"`

	// OnlineReplicas is the number of devices that are in their tailnets.
	// +optional
	OnlineReplicas *int32 `json:"onlineReplicas,omitempty"`

	// Replicas is the number of ready replicas of the set that has the fewest, among those with
	// spec.replicas. The scale subresource reports it.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Selector is the label selector of the group's pods, as a string. Autoscalers use it to
	// find the pods.
	// +optional
	Selector string `json:"selector,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="TYPE",type="string",JSONPath=".spec.type"
// +kubebuilder:printcolumn:name="ONLINE",type="integer",JSONPath=".status.onlineReplicas"
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".status.desiredReplicas"
// +kubebuilder:printcolumn:name="REASON",type="string",JSONPath=".status.conditions[?(@.type=='ProxyGroupReady')].reason"
// +kubebuilder:resource:scope=Namespaced,path=tailscaleproxygroups,singular=tailscaleproxygroup,categories={tailscale,crossplane},shortName=tspg

// A TailscaleProxyGroup is a highly available group of proxies in several tailnets and zones,
// with a TailscaleEndpoints for each.
type TailscaleProxyGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   TailscaleProxyGroupSpec   `json:"spec"`
	Status TailscaleProxyGroupStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// TailscaleProxyGroupList is a list of TailscaleProxyGroups.
type TailscaleProxyGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TailscaleProxyGroup `json:"items"`
}

// TailscaleProxyGroupKind is the kind of a TailscaleProxyGroup.
const TailscaleProxyGroupKind = "TailscaleProxyGroup"

func init() {
	register(&TailscaleProxyGroup{}, &TailscaleProxyGroupList{})
}
