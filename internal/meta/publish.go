// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package meta

// LoadBalancerClass is the class of Services that the provider publishes in a tailnet.
const LoadBalancerClass = "gateway.tailscale.com/service"

// LabelPublish publishes a Service of any class with "true".
const LabelPublish = "gateway.tailscale.com/publish"

// Annotations of a Service that is published by its class or label.
const (
	// AnnotationHostname is the name of the Tailscale Service, without svc:.
	AnnotationHostname = "gateway.tailscale.com/hostname"

	// AnnotationTags are the tags of the Tailscale Service, separated by commas.
	AnnotationTags = "gateway.tailscale.com/tags"

	// AnnotationEndpoints names the TailscaleEndpoints whose proxies host the Service.
	AnnotationEndpoints = "gateway.tailscale.com/endpoints"

	// AnnotationTailnet names the TailscaleTailnet that the proxies join which are created for the Service.
	AnnotationTailnet = "gateway.tailscale.com/tailnet"
)

// ManagedByPublish is the value of LabelManagedBy of objects that publish Services with a class or label.
const ManagedByPublish = "tailscale-gateway-publish"
