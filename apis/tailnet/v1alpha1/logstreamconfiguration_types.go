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

// LogstreamS3 configures a bucket of S3, or of a store with the same protocol, as the
// destination.
// +kubebuilder:validation:XValidation:rule="self.authenticationType == 'accesskey' ? has(self.accessKeyID) && has(self.secretAccessKeySecretRef) : has(self.roleARN) && has(self.externalID)",message="accesskey needs accessKeyID and secretAccessKeySecretRef, rolearn needs roleARN and externalID"
type LogstreamS3 struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Bucket string `json:"bucket"`

	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Region string `json:"region"`

	// KeyPrefix is the prefix of object names.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	KeyPrefix string `json:"keyPrefix,omitempty"`

	// +kubebuilder:validation:Enum=accesskey;rolearn
	AuthenticationType string `json:"authenticationType"`

	// +kubebuilder:validation:MaxLength=128
	// +optional
	AccessKeyID string `json:"accessKeyID,omitempty"`

	// SecretAccessKeySecretRef references a key of a Secret in this namespace.
	// +optional
	SecretAccessKeySecretRef *xpv2.LocalSecretKeySelector `json:"secretAccessKeySecretRef,omitempty"`

	// RoleARN is the ARN of the role that Tailscale assumes.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	RoleARN string `json:"roleARN,omitempty"`

	// ExternalID that Tailscale sends when it assumes the role.
	// +kubebuilder:validation:MaxLength=1224
	// +optional
	ExternalID string `json:"externalID,omitempty"`
}

// LogstreamGCS configures a bucket of Google Cloud Storage as the destination.
type LogstreamGCS struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=222
	Bucket string `json:"bucket"`

	// KeyPrefix is the prefix of object names.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	KeyPrefix string `json:"keyPrefix,omitempty"`

	// Scopes of the access tokens.
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Scopes []string `json:"scopes,omitempty"`

	// CredentialsSecretRef references a key of a Secret in this namespace that holds a workload
	// identity federation configuration in JSON.
	CredentialsSecretRef xpv2.LocalSecretKeySelector `json:"credentialsSecretRef"`
}

// LogstreamConfigurationParameters configure the destination of a tailnet's logs.
// +kubebuilder:validation:XValidation:rule="(self.destinationType == 's3') == has(self.s3)",message="s3 must be set for destinationType s3, and only then"
// +kubebuilder:validation:XValidation:rule="(self.destinationType == 'gcs') == has(self.gcs)",message="gcs must be set for destinationType gcs, and only then"
// +kubebuilder:validation:XValidation:rule="self.destinationType in ['s3', 'gcs'] || (has(self.url) && has(self.tokenSecretRef))",message="url and tokenSecretRef must be set for this destinationType"
// +kubebuilder:validation:XValidation:rule="self.destinationType != 's3' || !has(self.user)",message="user must not be set for destinationType s3"
type LogstreamConfigurationParameters struct {
	// LogType selects the logs: configuration (audit) or network (flow).
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another LogstreamConfiguration instead"
	LogType LogType `json:"logType"`

	// DestinationType is the type of the system that receives the logs.
	// +kubebuilder:validation:Enum=splunk;elastic;panther;cribl;datadog;axiom;s3;gcs
	DestinationType string `json:"destinationType"`

	// URL of the destination. For s3, it is the endpoint of a store other than Amazon S3.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^\s]+$`
	// +optional
	URL string `json:"url,omitempty"`

	// User for authentication at the destination, if it needs one.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	User string `json:"user,omitempty"`

	// TokenSecretRef references a key of a Secret in this namespace that holds the token or
	// password for the destination.
	// +optional
	TokenSecretRef *xpv2.LocalSecretKeySelector `json:"tokenSecretRef,omitempty"`

	// UploadPeriodMinutes is the interval between two uploads, in minutes.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1440
	// +optional
	UploadPeriodMinutes *int32 `json:"uploadPeriodMinutes,omitempty"`

	// CompressionFormat of the logs.
	// +kubebuilder:validation:Enum=none;zstd;gzip
	// +optional
	CompressionFormat string `json:"compressionFormat,omitempty"`

	// S3 configures the destination type s3.
	// +optional
	S3 *LogstreamS3 `json:"s3,omitempty"`

	// GCS configures the destination type gcs.
	// +optional
	GCS *LogstreamGCS `json:"gcs,omitempty"`

	// AdoptionPolicy decides about an existing configuration for the log type that this object
	// did not create. Refuse reports an error, Adopt takes it over.
	// +kubebuilder:default=Refuse
	// +optional
	AdoptionPolicy AdoptionPolicy `json:"adoptionPolicy,omitempty"`
}

// A LogstreamConfigurationObservation is what Tailscale reports of a log stream.
type LogstreamConfigurationObservation struct {
	// +optional
	LogType string `json:"logType,omitempty"`

	// +optional
	DestinationType string `json:"destinationType,omitempty"`

	// +optional
	URL string `json:"url,omitempty"`

	// SecretHash is a salted, slow hash of the last sent configuration, including secrets,
	// because Tailscale does not return secrets.
	// +optional
	SecretHash string `json:"secretHash,omitempty"`
}

// A LogstreamConfigurationSpec is the desired state of a LogstreamConfiguration.
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

// LogstreamConfigurationKind is the kind of a LogstreamConfiguration.
const LogstreamConfigurationKind = "LogstreamConfiguration"

// LogstreamConfigurationGroupVersionKind is the GroupVersionKind of the kind.
var LogstreamConfigurationGroupVersionKind = SchemeGroupVersion.WithKind(LogstreamConfigurationKind)

func init() {
	register(&LogstreamConfiguration{}, &LogstreamConfigurationList{})
}
