// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
	"github.com/tailscale-gateway/tailscale-gateway/internal/text"
)

// proxies is the name of the TailscaleEndpoints whose proxies host the Services of a namespace that name no other.
const proxies = "published"

// Limits of what a Service asks for. Those of tags and ports are the limits of a TailscaleServices.
const (
	maxTags = 32
	maxTag  = 54

	// maxPorts is the maximum number of TCP ports.
	maxPorts = 64

	// maxTailnet is the maximum length of the name of a TailscaleTailnet.
	maxTailnet = 63

	// maxAnnotation is the maximum length of an annotation. The cache cuts longer ones, so that they are refused
	// rather than read in part.
	maxAnnotation = 2048

	// maxShown is the length at which a message cuts a value.
	maxShown = 80
)

// The class and the annotations of Tailscale's operator, and the finalizers that it sets (tailscale.com v1.102.5
// cmd/k8s-operator/sts.go, svc.go and svc-for-pg.go).
const (
	operatorClass    = "tailscale"
	operatorExpose   = "tailscale.com/expose"
	operatorHostname = "tailscale.com/hostname"
	operatorTags     = "tailscale.com/tags"
	operatorGroup    = "tailscale.com/proxy-group"

	operatorFinalizer      = "tailscale.com/finalizer"
	operatorGroupFinalizer = "tailscale.com/service-pg-finalizer"
)

// annotations are those that the controller reads.
var annotations = []string{
	meta.AnnotationHostname, meta.AnnotationTags, meta.AnnotationEndpoints, meta.AnnotationTailnet,
	operatorExpose, operatorHostname, operatorTags, operatorGroup,
}

// tagForm is the form of a tag, as in the schema of a TailscaleServices.
var tagForm = regexp.MustCompile(`^tag:[a-zA-Z][a-zA-Z0-9-]*$`)

// Reasons of events on a Service about what it asks for.
const (
	// reasonUnsupported means that a Service of this form cannot be published.
	reasonUnsupported event.Reason = "UnsupportedService"

	// reasonInvalidAnnotation means that the value of an annotation cannot be used.
	reasonInvalidAnnotation event.Reason = "InvalidAnnotation"

	// reasonOperated means that Tailscale's operator publishes the Service.
	reasonOperated event.Reason = "ManagedByOperator"
)

// An effect is what a problem means for what was published before.
type effect int

const (
	// withdraw removes it. The zero value leaves it in place.
	withdraw effect = iota + 1

	// suspend leaves everything to another controller.
	suspend
)

// A problem is why a Service is not published as it asks, and the text of an event.
type problem struct {
	reason  event.Reason
	message string
	effect  effect

	// wait is when to look again, although nothing has changed. Zero means when the event is repeated.
	wait time.Duration
}

// A request is what a Service asks for.
type request struct {
	// hostname is the name of the Tailscale Service, without svc:.
	hostname string

	tags []gatewayv1alpha1.Tag

	// endpoints is the name of the TailscaleEndpoints whose proxies host the Service. With explicit it is the
	// user's, and otherwise it is created if there is none.
	endpoints string
	explicit  bool

	// tailnet is the TailscaleTailnet that created proxies join. Empty means the only one that allows the namespace.
	tailnet string
}

// asks reports whether a Service asks to be published: by its class or label, or in the way of Tailscale's operator
// if that counts.
func asks(s *corev1.Service, operator bool) bool {
	return s.DeletionTimestamp == nil && (asksHere(s) || operator && asksOperator(s))
}

func asksHere(s *corev1.Service) bool {
	return classOf(s) == meta.LoadBalancerClass || s.Labels[meta.LabelPublish] == "true"
}

func asksOperator(s *corev1.Service) bool {
	return classOf(s) == operatorClass || s.Annotations[operatorExpose] == "true"
}

// isClassed reports whether the load balancer status of a Service is that of this controller.
func isClassed(s *corev1.Service, operator bool) bool {
	class := classOf(s)
	return class == meta.LoadBalancerClass || operator && class == operatorClass
}

// classOf returns the class of a Service of type LoadBalancer, or "".
func classOf(s *corev1.Service) string {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return ""
	}
	return ptr.Deref(s.Spec.LoadBalancerClass, "")
}

// requestOf returns what a Service asks for, or why it cannot be published.
func requestOf(s *corev1.Service, operator bool) (*request, *problem) {
	operator = operator && asksOperator(s)
	if operator && !asksHere(s) && isOperated(s) {
		return nil, &problem{reason: reasonOperated, effect: suspend, message: fmt.Sprintf("Tailscale's operator publishes this Service, as its finalizer shows. If you have uninstalled the operator, remove the finalizers %s and %s from the Service", operatorFinalizer, operatorGroupFinalizer)}
	}
	if p := unfit(s); p != nil {
		return nil, p
	}
	for _, key := range annotations {
		if len(s.Annotations[key]) > maxAnnotation {
			return nil, invalid(key, "is longer than %d bytes; shorten it", maxAnnotation)
		}
	}
	r := &request{}
	for _, parse := range []func(*request, *corev1.Service, bool) *problem{parseHostname, parseTags, parsePlace} {
		if p := parse(r, s, operator); p != nil {
			return nil, p
		}
	}
	return r, nil
}

// isOperated reports whether Tailscale's operator has begun to publish a Service.
func isOperated(s *corev1.Service) bool {
	return slices.Contains(s.Finalizers, operatorFinalizer) || slices.Contains(s.Finalizers, operatorGroupFinalizer)
}

// unfit returns why a Service of this form cannot be published, or nil.
func unfit(s *corev1.Service) *problem {
	tcp := 0
	for _, p := range s.Spec.Ports {
		if cmp.Or(p.Protocol, corev1.ProtocolTCP) == corev1.ProtocolTCP {
			tcp++
		}
	}
	switch {
	case s.Spec.Type == corev1.ServiceTypeExternalName:
		return &problem{reason: reasonUnsupported, effect: withdraw, message: "A Service of type ExternalName leads out of the cluster; write a TailscaleServices with a backend of kind External instead"}
	case s.Spec.ClusterIP == corev1.ClusterIPNone:
		return &problem{reason: reasonUnsupported, effect: withdraw, message: "A headless Service has no address to which proxies could connect; publish another Service of the same pods with a cluster IP"}
	case len(s.Spec.LoadBalancerSourceRanges) > 0:
		return &problem{reason: reasonUnsupported, message: "Nothing would enforce spec.loadBalancerSourceRanges; remove it, and limit who may connect in the tailnet's policy file"}
	case tcp == 0:
		return &problem{reason: reasonUnsupported, message: "The Service has no TCP port; add one, or write a TailscaleServices with the port do-not-validate, which includes UDP"}
	case tcp > maxPorts:
		return &problem{reason: reasonUnsupported, message: fmt.Sprintf("The Service has more than %d TCP ports; publish another Service of the same pods with fewer", maxPorts)}
	}
	return nil
}

// invalid returns the problem of an annotation.
func invalid(key, format string, args ...any) *problem {
	return &problem{reason: reasonInvalidAnnotation, message: "Annotation " + key + " " + fmt.Sprintf(format, args...)}
}

// annotation returns the key and the value of the first annotation that a Service has. That of Tailscale's operator
// counts only if the Service asks in its way.
func annotation(s *corev1.Service, operator bool, key, operatorKey string) (string, string) {
	if v := strings.TrimSpace(s.Annotations[key]); v != "" || !operator {
		return key, v
	}
	return operatorKey, strings.TrimSpace(s.Annotations[operatorKey])
}

// parseHostname reads the hostname. The default is that of Tailscale's operator, which differs between namespaces.
func parseHostname(r *request, s *corev1.Service, operator bool) *problem {
	key, v := annotation(s, operator, meta.AnnotationHostname, operatorHostname)
	if v != "" && len(validation.IsDNS1123Label(v)) > 0 {
		return invalid(key, "is %q, which is no name in a tailnet; use lower-case letters, digits and dashes, 63 at most", text.Cut(v, maxShown))
	}
	r.hostname = cmp.Or(v, names.TailscaleService(s.GetNamespace(), s.GetName()))
	return nil
}

// parseTags reads the tags, sorted.
func parseTags(r *request, s *corev1.Service, operator bool) *problem {
	key, v := annotation(s, operator, meta.AnnotationTags, operatorTags)
	if v == "" {
		return nil
	}
	for tag := range strings.SplitSeq(v, ",") {
		tag = strings.TrimSpace(tag)
		if len(tag) > maxTag || !tagForm.MatchString(tag) {
			return invalid(key, "has %q, which is no tag; write tag: and a name, and commas between several", text.Cut(tag, maxShown))
		}
		r.tags = append(r.tags, gatewayv1alpha1.Tag(tag))
	}
	slices.Sort(r.tags)
	r.tags = slices.Compact(r.tags)
	if len(r.tags) > maxTags {
		return invalid(key, "has more than %d tags; remove some", maxTags)
	}
	return nil
}

// parsePlace reads which proxies host the Service.
func parsePlace(r *request, s *corev1.Service, operator bool) *problem {
	if v := strings.TrimSpace(s.Annotations[meta.AnnotationEndpoints]); v != "" {
		if len(validation.IsDNS1123Label(v)) > 0 {
			return invalid(meta.AnnotationEndpoints, "is %q, which is no name of a TailscaleEndpoints", text.Cut(v, maxShown))
		}
		r.endpoints, r.explicit = v, true
		return nil
	}
	group := proxies
	if v := strings.TrimSpace(s.Annotations[operatorGroup]); operator && v != "" {
		if len(validation.IsDNS1123Label(v)) > 0 {
			return invalid(operatorGroup, "is %q, which is no name of a TailscaleEndpoints", text.Cut(v, maxShown))
		}
		group = v
	}
	r.endpoints = names.Child(group)
	r.tailnet = strings.TrimSpace(s.Annotations[meta.AnnotationTailnet])
	if r.tailnet == "" {
		return nil
	}
	if len(r.tailnet) > maxTailnet || len(validation.IsDNS1123Subdomain(r.tailnet)) > 0 {
		return invalid(meta.AnnotationTailnet, "is %q, which is no name of a TailscaleTailnet", text.Cut(r.tailnet, maxShown))
	}
	r.endpoints = names.Child(group, r.tailnet)
	return nil
}
