// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the managed resources of the Tailscale provider, its provider configs,
// and the internal kinds that functions, agents and the extension share. User-facing kinds are
// in apis/gateway.
//
// +kubebuilder:object:generate=true
// +groupName=tailnet.gateway.tailscale.com
// +versionName=v1alpha1
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Package type metadata.
const (
	Group   = "tailnet.gateway.tailscale.com"
	Version = "v1alpha1"
)

var (
	// SchemeGroupVersion identifies this group and version.
	SchemeGroupVersion = schema.GroupVersion{Group: Group, Version: Version}

	// SchemeBuilder adds the kinds of this group.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds every kind of this group to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Kinds of this group, and their GroupVersionKinds.
const (
	ClusterProviderConfigKind  = "ClusterProviderConfig"
	ProviderConfigKind         = "ProviderConfig"
	ProviderConfigUsageKind    = "ProviderConfigUsage"
	TailnetKind                = "Tailnet"
	VIPServiceKind             = "VIPService"
	MachineKind                = "Machine"
	MachineSetKind             = "MachineSet"
	ProxySetKind               = "ProxySet"
	ServiceAttachmentKind      = "ServiceAttachment"
	HealthReportKind           = "HealthReport"
	GatewayReportKind          = "GatewayReport"
	AuthKeyKind                = "AuthKey"
	DeviceKind                 = "Device"
	DiscoveryKind              = "Discovery"
	PolicyFragmentKind         = "PolicyFragment"
	DNSKind                    = "DNS"
	SplitDNSKind               = "SplitDNS"
	WebhookKind                = "Webhook"
	OAuthClientKind            = "OAuthClient"
	FederatedIdentityKind      = "FederatedIdentity"
	ContactsKind               = "Contacts"
	LogstreamConfigurationKind = "LogstreamConfiguration"
	PostureIntegrationKind     = "PostureIntegration"
)

// GroupVersionKinds by kind.
var (
	ClusterProviderConfigGroupVersionKind   = SchemeGroupVersion.WithKind(ClusterProviderConfigKind)
	ProviderConfigGroupVersionKind          = SchemeGroupVersion.WithKind(ProviderConfigKind)
	ProviderConfigUsageGroupVersionKind     = SchemeGroupVersion.WithKind(ProviderConfigUsageKind)
	ProviderConfigUsageListGroupVersionKind = SchemeGroupVersion.WithKind("ProviderConfigUsageList")
	TailnetGroupVersionKind                 = SchemeGroupVersion.WithKind(TailnetKind)
	VIPServiceGroupVersionKind              = SchemeGroupVersion.WithKind(VIPServiceKind)
	MachineGroupVersionKind                 = SchemeGroupVersion.WithKind(MachineKind)
	MachineSetGroupVersionKind              = SchemeGroupVersion.WithKind(MachineSetKind)
	AuthKeyGroupVersionKind                 = SchemeGroupVersion.WithKind(AuthKeyKind)
	DeviceGroupVersionKind                  = SchemeGroupVersion.WithKind(DeviceKind)
	DiscoveryGroupVersionKind               = SchemeGroupVersion.WithKind(DiscoveryKind)
	PolicyFragmentGroupVersionKind          = SchemeGroupVersion.WithKind(PolicyFragmentKind)
	DNSGroupVersionKind                     = SchemeGroupVersion.WithKind(DNSKind)
	SplitDNSGroupVersionKind                = SchemeGroupVersion.WithKind(SplitDNSKind)
	WebhookGroupVersionKind                 = SchemeGroupVersion.WithKind(WebhookKind)
	OAuthClientGroupVersionKind             = SchemeGroupVersion.WithKind(OAuthClientKind)
	FederatedIdentityGroupVersionKind       = SchemeGroupVersion.WithKind(FederatedIdentityKind)
	ContactsGroupVersionKind                = SchemeGroupVersion.WithKind(ContactsKind)
	LogstreamConfigurationGroupVersionKind  = SchemeGroupVersion.WithKind(LogstreamConfigurationKind)
	PostureIntegrationGroupVersionKind      = SchemeGroupVersion.WithKind(PostureIntegrationKind)
)

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(SchemeGroupVersion,
		&ClusterProviderConfig{}, &ClusterProviderConfigList{},
		&ProviderConfig{}, &ProviderConfigList{},
		&ProviderConfigUsage{}, &ProviderConfigUsageList{},
		&Tailnet{}, &TailnetList{},
		&VIPService{}, &VIPServiceList{},
		&Machine{}, &MachineList{},
		&MachineSet{}, &MachineSetList{},
		&ProxySet{}, &ProxySetList{},
		&ServiceAttachment{}, &ServiceAttachmentList{},
		&HealthReport{}, &HealthReportList{},
		&GatewayReport{}, &GatewayReportList{},
		&AuthKey{}, &AuthKeyList{},
		&Device{}, &DeviceList{},
		&Discovery{}, &DiscoveryList{},
		&PolicyFragment{}, &PolicyFragmentList{},
		&DNS{}, &DNSList{},
		&SplitDNS{}, &SplitDNSList{},
		&Webhook{}, &WebhookList{},
		&OAuthClient{}, &OAuthClientList{},
		&FederatedIdentity{}, &FederatedIdentityList{},
		&Contacts{}, &ContactsList{},
		&LogstreamConfiguration{}, &LogstreamConfigurationList{},
		&PostureIntegration{}, &PostureIntegrationList{},
	)
	metav1.AddToGroupVersion(s, SchemeGroupVersion)
	return nil
}
