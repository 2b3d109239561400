// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package check finds what keeps an installation from working, from facts about a cluster. It groups what it finds by
// cause: a check that fails blocks those that depend on it. The package has no client and no clock.
package check

import (
	"crypto/x509"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authv1 "k8s.io/api/authorization/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/causes"
)

// Values of Options.EnvoyGateway.
const (
	// Auto checks Envoy Gateway if the extension is installed.
	Auto = "auto"

	// Require checks Envoy Gateway, also if neither it nor the extension is installed.
	Require = "require"

	// Skip does not check Envoy Gateway.
	Skip = "skip"
)

// Options are what the caller of the command chose.
type Options struct {
	// CrossplaneNamespace is where Crossplane and the provider run, as CrossplaneAccount and ProviderAccount.
	CrossplaneNamespace string
	CrossplaneAccount   string
	ProviderAccount     string

	EnvoyGatewayNamespace string
	ExtensionNamespace    string

	// EnvoyGateway is Auto, Require or Skip.
	EnvoyGateway string

	// Admission checks the admission policies, and Objects the objects of users.
	Admission bool
	Objects   bool

	// Version of the plugin, which is that of the charts to install.
	Version string

	// Context and Kubeconfig are in the commands that fix something. Either may be empty.
	Context    string
	Kubeconfig string
}

// An Answer is what the API server answered. Unknown says why there is no answer, and is empty if there is one. An
// unknown fact counts neither as absent nor as right.
type Answer[T any] struct {
	Value   T
	Unknown string
}

// Facts are what was read of a cluster.
type Facts struct {
	// At is when the facts were read.
	At time.Time

	// Kubernetes is the version of the API server.
	Kubernetes Answer[string]

	// Deployments of Crossplane's namespace.
	Deployments Answer[[]appsv1.Deployment]

	// Packages are ours, by product.
	Packages Answer[map[string]Package]

	// Definitions are our CompositeResourceDefinitions, by name.
	Definitions Answer[map[string]Definition]

	// Compositions are the names of all Compositions.
	Compositions Answer[map[string]bool]

	// Served has what the API server serves, as GROUP/RESOURCE.
	Served Answer[map[string]bool]

	// CRDs are those of ours and of Gateway API, by name.
	CRDs Answer[map[string]CRD]

	// Roles are names of our ClusterRoles and ClusterRoleBindings.
	Roles Answer[map[string]bool]

	// Rights are the permissions of service accounts.
	Rights []Rights

	// Policies are the admission policies with our names, by name.
	Policies map[string]Answer[Policy]

	// Releases are the Helm releases of our charts and of Envoy Gateway, by chart.
	Releases map[string]Release

	// Gateway is about Envoy Gateway and the extension.
	Gateway GatewayFacts

	// Objects are those of users and what is composed from them, and Usages how much of limits they use.
	Objects Answer[[]causes.Object]
	Usages  Answer[[]Usage]

	// Network is about NetworkPolicies.
	Network NetworkFacts

	// Images are those that containers of ours run, and Listed those of a release that the caller named.
	Images Answer[[]Image]
	Listed []string
}

// A Release is a release of Helm.
type Release struct{ Name, Namespace, Version string }

// A Package is a package of Crossplane.
type Package struct {
	// Kind of the package in lower case, and the Name of the object.
	Kind, Name string

	// Image that the object names, and the one that Crossplane has acted on. The latter may be empty.
	Image, Current string

	Installed, Healthy causes.Condition
}

// A Definition is a CompositeResourceDefinition.
type Definition struct {
	// Claims reports that the definition has claims.
	Claims bool

	Established, Offered causes.Condition
}

// A CRD is a CustomResourceDefinition.
type CRD struct {
	Created time.Time

	// Bundle is the version of Gateway API that the CRD belongs to.
	Bundle string
}

// Rights are the permissions that a service account should have.
type Rights struct {
	// Name of the component, such as Crossplane.
	Name string

	Namespace, Account string

	Required []authv1.ResourceAttributes

	// Missing are those that the account does not have, and Unknown says why that is not known.
	Missing []authv1.ResourceAttributes
	Unknown string
}

// A Policy is a ValidatingAdmissionPolicy with the binding of the same name. Either may be nil.
type Policy struct {
	Policy  *admissionv1.ValidatingAdmissionPolicy
	Binding *admissionv1.ValidatingAdmissionPolicyBinding
}

// GatewayFacts are about Envoy Gateway and the extension.
type GatewayFacts struct {
	// Deployments of Envoy Gateway and of the extension. They are nil if there are none.
	EnvoyGateway Answer[*appsv1.Deployment]
	Extension    Answer[*appsv1.Deployment]

	// Config is Envoy Gateway's configuration in YAML.
	Config Answer[string]

	// Started is when the oldest container of Envoy Gateway started. It is zero if none runs.
	Started Answer[time.Time]

	// Routes are those with backends of our kinds. They are read only if Envoy Gateway is older than a kind.
	Routes Answer[[]Route]

	// Secrets of the extension, by name.
	Secrets map[string]Answer[Secret]

	// CronJob reports whether the chart's CronJob creates certificates.
	CronJob Answer[bool]
}

// A Secret is a Secret with a certificate. Its private key is not read.
type Secret struct {
	// Keys of the data that are not empty.
	Keys map[string]bool

	// Chain are the certificates under tls.crt, and Authorities those under ca.crt. Either is empty if it has none.
	Chain, Authorities []*x509.Certificate

	// CertManager is the Certificate of cert-manager from which the Secret is. It is empty if the Secret is from none.
	CertManager string
}
