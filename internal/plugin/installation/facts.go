// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package installation plans an installation from facts about a cluster and a tailnet. The plan says what is
// to be done, by which commands, and what blocks it, before anything changes. The package has no client and no
// clock, and knows no secret.
package installation

import (
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/check"
)

// Options are what the caller of the command chose.
type Options struct {
	// Check has the names in the cluster, and the kubeconfig and the context of commands.
	Check check.Options

	// As and AsGroup are whom commands impersonate.
	As      string
	AsGroup []string

	// Release and Namespace are those of the Helm release. The Secret with the credential is in the same
	// namespace.
	Release, Namespace string

	// Chart is a path or a reference, and Version the version of the chart; the default of both is that of the
	// plugin. Values and Set are passed to Helm.
	Chart, Version string
	Values, Set    []string

	// Crossplane installs Crossplane if there is none, and Downgrade allows an older chart.
	Crossplane, Downgrade bool

	// Secret is the name of the Secret with the credential. It is created of the caller's OAuth client if Client
	// is true.
	Secret string
	Client bool

	// Tailnet is the name of the first TailscaleTailnet, or empty, and Tags those of its proxies.
	Tailnet string
	Tags    []string

	// CredentialTag is the tag of the credential where the tailnet does not say which it has.
	CredentialTag string

	// SkipTailnet asks the tailnet nothing, and MergePolicy edits its policy file.
	SkipTailnet, MergePolicy bool
}

// Completed returns the options with what a release has, and with defaults where neither names anything.
func (o Options) Completed(r *Release) Options {
	same := r != nil && (o.Tailnet == "" || o.Tailnet == r.Tailnet)
	switch {
	case o.Secret != "":
	case o.Client:
		o.Secret = DefaultSecret
	case same:
		o.Secret = r.Secret
	}
	if o.Tailnet != "" && len(o.Tags) == 0 && !same {
		o.Tags = []string{defaultTag}
	}
	return o
}

// DefaultSecret is the name of the Secret that is created of an OAuth client.
const DefaultSecret = "tailscale-oauth"

// Facts are what was read.
type Facts struct {
	// Cluster has the versions, the packages and the releases of the cluster.
	Cluster check.Facts

	// Helm is the version of the helm program. ChartVersion is the version of the chart that it would install.
	Helm         check.Answer[string]
	ChartVersion check.Answer[string]

	// Release is the Helm release, or nil if there is none.
	Release check.Answer[*Release]

	// Denied are permissions that the caller does not have, such as "create clusterroles".
	Denied check.Answer[[]string]

	// Namespace reports whether the namespace of the release exists.
	Namespace check.Answer[bool]

	// Secret is the Secret with the credential, or nil if there is none.
	Secret check.Answer[*Secret]

	// Tailnet is what the tailnet answered, or nil if it was not asked.
	Tailnet *Tailnet
}

// A Release is a release of Helm, with those of its values that plans read.
type Release struct {
	Name, Namespace, Version, Status string

	// Tailnet, Secret and Tags are tailnet.name, tailnet.oauthSecretName and tailnet.spec.tags.
	Tailnet, Secret string
	Tags            []string

	// Credential reports that the values name a credential of the tailnet, of any kind.
	Credential bool
}

// A Secret is what may be known of the Secret with the credential.
type Secret struct {
	// Missing are keys without a value.
	Missing []string

	// Same reports that the Secret has the OAuth client that the caller named, if the caller named one.
	Same bool
}

// A Tailnet is what a tailnet answered.
type Tailnet struct {
	// Failure says why the tailnet did not answer, or refused the credential. Nothing else is known then.
	Failure string

	// Scopes are those of the credential. They are nil if the tailnet does not say. Refused are scopes for want of
	// which it refused to answer.
	Scopes  []string
	Refused []string

	// Tags are those of the credential. They are nil if the credential may not read them.
	Tags []string

	// Policy is the text of the policy file.
	Policy check.Answer[string]
}
