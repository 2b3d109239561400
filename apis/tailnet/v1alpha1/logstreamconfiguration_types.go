// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A LogType is a kind of logs of a tailnet.
// +kubebuilder:validation:Enum=configuration;network
type LogType string

// LogstreamS3 says how logs get to a bucket of S3 or a store that speaks its
// protocol.
// +kubebuilder:validation:XValidation:rule="self.authenticationType == 'accesskey' ? has(self.accessKeyID) && has(self.secretAccessKeySecretRef) : has(self.roleARN) && has(self.externalID)",message="accesskey needs accessKeyID and secretAccessKeySecretRef, rolearn needs roleARN and externalID"
type LogstreamS3 struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Bucket string `json:"bucket"`

	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Region string `json:"region"`

	// KeyPrefix is put before the names of objects.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	KeyPrefix string `json:"keyPrefix,omitempty"`

	// +kubebuilder:validation:Enum=accesskey;rolearn
	AuthenticationType string `json:"authenticationType"`

	// +kubebuilder:validation:MaxLength=128
	// +optional
	AccessKeyID string `json:"accessKeyID,omitempty"`

	// SecretAccessKeySecretRef is a key of a Secret in this namespace.
	// +optional
	SecretAccessKeySecretRef *xpv2.LocalSecretKeySelector `json:"secretAccessKeySecretRef,omitempty"`

	// RoleARN of the role that Tailscale assumes.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	RoleARN string `json:"roleARN,omitempty"`

	// ExternalID that Tailscale gives when it assumes the role.
	// +kubebuilder:validation:MaxLength=1224
	// +optional
	ExternalID string `json:"externalID,omitempty"`
}

// LogstreamGCS says how logs get to a bucket of Google Cloud Storage.
type LogstreamGCS struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=222
	Bucket string `json:"bucket"`

	// KeyPrefix is put before the names of objects.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	KeyPrefix string `json:"keyPrefix,omitempty"`

	// Scopes of the access tokens.
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Scopes []string `json:"scopes,omitempty"`

	// CredentialsSecretRef is a key of a Secret in this namespace, with a workload
	// identity federation configuration in JSON.
	CredentialsSecretRef xpv2.LocalSecretKeySelector `json:"credentialsSecretRef"`
}

// LogstreamConfigurationParameters are where a tailnet's logs are sent.
// +kubebuilder:validation:XValidation:rule="(self.destinationType == 's3') == has(self.s3)",message="s3 must be set for destinationType s3, and only then"
// +kubebuilder:validation:XValidation:rule="(self.destinationType == 'gcs') == has(self.gcs)",message="gcs must be set for destinationType gcs, and only then"
// +kubebuilder:validation:XValidation:rule="self.destinationType in ['s3', 'gcs'] || (has(self.url) && has(self.tokenSecretRef))",message="url and tokenSecretRef must be set for this destinationType"
// +kubebuilder:validation:XValidation:rule="self.destinationType != 's3' || !has(self.user)",message="user must not be set for destinationType s3"
type LogstreamConfigurationParameters struct {
	// LogType is which logs are sent: configuration (audit) or network (flow).
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; make another LogstreamConfiguration instead"
	LogType LogType `json:"logType"`

	// DestinationType is what receives the logs.
	// +kubebuilder:validation:Enum=splunk;elastic;panther;cribl;datadog;axiom;s3;gcs
	DestinationType string `json:"destinationType"`

	// URL that logs are sent to. For s3 it is the endpoint of a store that is not
	// Amazon's.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^\s]+$`
	// +optional
	URL string `json:"url,omitempty"`

	// User that logs are sent as, where the destination wants one.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	User string `json:"user,omitempty"`

	// TokenSecretRef is a key of a Secret in this namespace, with the token or
	// password of the destination.
	// +optional
	TokenSecretRef *xpv2.LocalSecretKeySelector `json:"tokenSecretRef,omitempty"`

	// UploadPeriodMinutes is how often logs are sent, in minutes.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1440
	// +optional
	UploadPeriodMinutes *int32 `json:"uploadPeriodMinutes,omitempty"`

	// CompressionFormat of the logs.
	// +kubebuilder:validation:Enum=none;zstd;gzip
	// +optional
	CompressionFormat string `json:"compressionFormat,omitempty"`

	// S3 is set for destinationType s3.
	// +optional
	S3 *LogstreamS3 `json:"s3,omitempty"`

	// GCS is set for destinationType gcs.
	// +optional
	GCS *LogstreamGCS `json:"gcs,omitempty"`

	// AdoptionPolicy says what to do when logs of the type are sent somewhere already,
	// and not by this object. Refuse reports it, Adopt takes it over.
	// +kubebuilder:default=Refuse
	// +optional
	AdoptionPolicy AdoptionPolicy `json:"adoptionPolicy,omitempty"`
}

// A LogstreamConfigurationObservation is what Tailscale reports of it.
type LogstreamConfigurationObservation struct {
	// +optional
	LogType string `json:"logType,omitempty"`

	// +optional
	DestinationType string `json:"destinationType,omitempty"`

	// +optional
	URL string `json:"url,omitempty"`

	// SecretHash is a salted and slow hash of what was sent last, secrets and all:
	// Tailscale does not give them back.
	// +optional
	SecretHash string `json:"secretHash,omitempty"`
}

// A LogstreamConfigurationSpec is the wanted state of a LogstreamConfiguration.
type LogstreamConfigurationSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider LogstreamConfigurationParameters `json:"forProvider"`
}

// A LogstreamConfigurationStatus is the observed state of a LogstreamConfiguration.
type LogstreamConfigurationStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// +optional
	AtProvider LogstreamConfigurationObservation `json:"atProvider,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="LOGS",type="string",JSONPath=".spec.forProvider.logType"
// +kubebuilder:printcolumn:name="DESTINATION",type="string",JSONPath=".spec.forProvider.destinationType"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,tailscale},shortName=logstream

// A LogstreamConfiguration sends a tailnet's audit or flow logs to another
// system.
type LogstreamConfiguration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   LogstreamConfigurationSpec   `json:"spec"`
	Status LogstreamConfigurationStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// LogstreamConfigurationList is a list of LogstreamConfiguration.
type LogstreamConfigurationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LogstreamConfiguration `json:"items"`
}
