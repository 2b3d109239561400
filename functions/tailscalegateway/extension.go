// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscalegateway

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/allow"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// An extension is an extension server of Envoy Gateway that serves only one Gateway. Its objects
// match those of the installed extension's chart, except for its permissions: they are limited to
// the namespace, so that no user gains permissions beyond the namespace.
type extension struct {
	*gatewayPlan

	// name is the name of all its objects, except for suffixes.
	name string
}

// Resource names of an extension's children.
const (
	keyExtension        = "extension"
	keyExtensionAccount = "extension-account"
	keyExtensionRights  = "extension-rights"
	keyExtensionLease   = "extension-lease"
	keyExtensionLeading = "extension-leading"
	keyExtensionHooks   = "extension-hooks"
	keyExtensionEDS     = "extension-eds"
	keyExtensionMetrics = "extension-metrics"
	keyExtensionBudget  = "extension-budget"
	keyExtensionPolicy  = "extension-policy"
)

// Ports of an extension, and their names.
const (
	portHooks   = 5005
	portEDS     = 5006
	portMetrics = 8080

	nameHooks   = "hooks"
	nameEDS     = "eds"
	nameMetrics = "metrics"

	// flagEDSTarget is the flag with the address that Envoys dial.
	flagEDSTarget = "--eds-target="

	// Suffixes of the names of Services.
	suffixHooks   = ""
	suffixEDS     = "-eds"
	suffixMetrics = "-metrics"

	// Suffixes of the names of roles and their bindings.
	suffixRights = ""
	suffixLease  = "-lease"
)

// planExtension returns the extension that is wanted and may run. It is nil if there is none.
func planExtension(gp *gatewayPlan) *extension {
	if gp.spec.ExtensionServer == nil || gp.step || extensionRefused(gp) != nil {
		return nil
	}
	return &extension{gatewayPlan: gp, name: names.Child(gp.owner.Name, "extension")}
}

// extensionRefused returns a condition with the reason for which the Gateway must not have a
// dedicated extension. It is nil if it may. The extension runs with permissions that the author of
// the TailscaleGateway need not have, so it is never more than what somebody else permits: a Gateway
// of this namespace, a tailnet, and the installed image or one that a grant names.
func extensionRefused(gp *gatewayPlan) *compose.Condition {
	refuse := func(reason xpv2.ConditionReason, message string) *compose.Condition {
		return &compose.Condition{Status: compose.False, Reason: reason, Message: message}
	}
	if gp.gateway.ref.Namespace != gp.owner.Namespace {
		return refuse(meta.ReasonOtherNamespace, "An extension of a Gateway's own reads one namespace: make the TailscaleGateway in namespace "+gp.gateway.ref.Namespace+", or remove spec.extensionServer and use the installed extension")
	}
	if gp.gateway.gateway == nil && gp.gateway.open {
		c := gp.gateway.valid()
		return refuse(c.Reason, "No extension runs without a Gateway. "+c.Message)
	}
	if gp.gateway.gateway == nil {
		return refuse(meta.ReasonGatewayNotFound, fmt.Sprintf("No extension runs for Gateway %s, which does not exist; create it, or correct spec.gatewayRef", gp.gateway.name()))
	}
	// One that runs stays, like proxies.
	if v := gp.noTailnet(); v != nil && gp.observed.deployment == nil {
		return refuse(v.Reason, "No extension starts before a tailnet of spec.tailnets may be used. "+v.Message)
	}
	if v := extensionImageViolation(gp); v != nil {
		return refuse(meta.ReasonNotGranted, v.Error())
	}
	return nil
}

// noTailnet returns the first verdict if none of the tailnets may be used, and nil if there is one,
// or if the spec names none.
func (gp *gatewayPlan) noTailnet() *compose.TailnetVerdict {
	for _, t := range gp.tailnets {
		if t.verdict.Accepted {
			return nil
		}
	}
	if len(gp.tailnets) == 0 {
		return nil
	}
	return &gp.tailnets[0].verdict
}

// extensionImageViolation returns a violation for an image that no tailnet grants. Without a tailnet
// that may be used there is no grant.
func extensionImageViolation(gp *gatewayPlan) *allow.ViolationError {
	const field = "spec.extensionServer.image"
	image := gp.spec.ExtensionServer.Image
	if image == "" || image == gp.extensionImage {
		return nil
	}
	var out *allow.ViolationError
	for _, t := range gp.tailnets {
		if t.verdict.Grant == nil {
			continue
		}
		v := t.verdict.Grant.ExtensionImage(field, image)
		if v == nil {
			return nil
		}
		out = cmp.Or(out, v)
	}
	return cmp.Or(out, &allow.ViolationError{Field: field, Problem: fmt.Sprintf("image %q is not the installed one; remove the field, or name a tailnet in spec.tailnets whose spec.allowedNamespaces.grants has the repository in extensionImages", image)})
}

// replicas returns how many pods are wanted.
func (e *extension) replicas() int32 {
	return ptr.Deref(e.spec.ExtensionServer.Replicas, defaultReplicas)
}

// readyReplicas returns how many of the wanted pods are ready.
func (e *extension) readyReplicas() int32 {
	if e.observed.deployment == nil {
		return 0
	}
	return min(e.observed.deployment.Status.ReadyReplicas, e.replicas())
}

// address returns the address for Envoy Gateway's configuration.
func (e *extension) address() string {
	return net.JoinHostPort(serviceHost(e.owner.Namespace, e.name), strconv.Itoa(portHooks))
}

// references returns the objects that Envoy Gateway's configuration must reference in addition to
// the address, for a message: the extension answers only clients with a certificate that it issued.
func (e *extension) references() string {
	clientSecret := "Secret " + e.owner.Namespace + "/" + names.ExtensionClient(e.name)
	if t := e.spec.ExtensionServer.TLS; t != nil {
		return clientSecret + " as tls.clientCertificateRef, and as tls.certificateRef one whose tls.crt is what the certificate of Secret " + t.CertificateRef.Name + " chains to"
	}
	return clientSecret + " as tls.certificateRef and as tls.clientCertificateRef"
}

// ready returns a condition that is True if a replica answers.
func (e *extension) ready() compose.Condition {
	if e.readyReplicas() > 0 {
		return compose.Condition{Status: compose.True, Reason: meta.ReasonExtensionServing, Message: "Extension " + e.name + " answers at " + e.address() + " for an Envoy Gateway whose configuration names it, with " + e.references()}
	}
	m := "Waiting for a pod of Deployment " + e.name
	if t := e.spec.ExtensionServer.TLS; t != nil {
		m += ", which needs Secret " + t.CertificateRef.Name + " of type kubernetes.io/tls, with the keys tls.crt, tls.key and ca.crt"
	}
	return compose.Condition{Status: compose.False, Reason: meta.ReasonExtensionNotReady, Message: m}
}

// extensionChildren returns the children of the extension. The pods are created once the address
// for Envoys is known: Envoys connect to an address, because those on the host's network cannot
// resolve names of the cluster.
func extensionChildren(gp *gatewayPlan) children {
	var out children
	e := gp.extension
	if e == nil {
		return out
	}
	out.add(keyExtensionAccount, e.serviceAccount(), true)
	out.add(keyExtensionRights, e.roleBinding(suffixRights, rbacv1.RoleRef{Kind: "ClusterRole", Name: extensionRole}), true)
	out.add(keyExtensionLease, e.leaseRole(), true)
	out.add(keyExtensionLeading, e.roleBinding(suffixLease, rbacv1.RoleRef{Kind: "Role", Name: e.name + suffixLease}), true)
	out.add(keyExtensionHooks, e.service(suffixHooks), true)
	out.add(keyExtensionEDS, e.service(suffixEDS), true)
	out.add(keyExtensionMetrics, e.service(suffixMetrics), true)
	out.add(keyExtensionPolicy, e.networkPolicy(), true)
	if e.replicas() > 1 {
		out.add(keyExtensionBudget, e.budget(), true)
	}
	current := e.observed.eds != nil && e.observed.eds.Spec.ClusterIP != ""
	out.incomplete = !current
	if e.edsTarget() != "" {
		out.add(keyExtension, e.composeDeployment(), current && e.readyReplicas() == e.replicas())
	}
	return out
}

// edsTarget returns the address of the Service for endpoints, or that of the running Deployment
// while there is no Service: Crossplane deletes children that are omitted. It is empty if there is
// none. Nothing else of the Deployment stays, so that an image or a Secret that is no longer granted
// does not.
func (e *extension) edsTarget() string {
	if e.observed.eds != nil && e.observed.eds.Spec.ClusterIP != "" {
		return net.JoinHostPort(e.observed.eds.Spec.ClusterIP, strconv.Itoa(portEDS))
	}
	if e.observed.deployment == nil {
		return ""
	}
	for _, c := range e.observed.deployment.Spec.Template.Spec.Containers {
		for _, a := range c.Args {
			if t, ok := strings.CutPrefix(a, flagEDSTarget); ok {
				return t
			}
		}
	}
	return ""
}

// selector returns the labels that select the pods. They are the chart's.
func (e *extension) selector() map[string]string {
	return map[string]string{"app.kubernetes.io/name": extensionChart, "app.kubernetes.io/instance": e.name}
}

// labels returns the labels of all objects of the extension.
func (e *extension) labels() map[string]string {
	out := map[string]string{"app.kubernetes.io/part-of": "tailscale-gateway", meta.LabelGateway: e.owner.Name}
	maps.Copy(out, e.selector())
	return out
}

// objectMeta returns the metadata of an object.
func (e *extension) objectMeta(suffix string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: e.name + suffix, Namespace: e.owner.Namespace, Labels: e.labels()}
}

// args returns the arguments of the binary. It issues the certificates that the user does not
// supply.
func (e *extension) args() []string {
	out := []string{fmt.Sprintf("--hooks-address=:%d", portHooks)}
	if e.tls() {
		out = append(out, "--hooks-tls="+tlsPath)
	}
	out = append(out, fmt.Sprintf("--eds-address=:%d", portEDS))
	if e.tls() {
		out = append(out, "--eds-tls="+tlsPath)
	}
	return append(out, "--make-certificates="+e.name,
		flagEDSTarget+e.edsTarget(),
		fmt.Sprintf("--eds-server-name=%s-eds.%s.svc", e.name, e.owner.Namespace),
		"--xds-mode=GoogleGRPC", fmt.Sprintf("--observe-address=:%d", portMetrics), fmt.Sprintf("--drain=%ds", drainSeconds),
		"--only-gateway="+e.gateway.ref.Namespace+"/"+e.gateway.ref.Name)
}

// tls reports whether the user supplies a certificate for the servers.
func (e *extension) tls() bool { return e.spec.ExtensionServer.TLS != nil }

// image returns the image of the pods, which extensionRefused has permitted.
func (e *extension) image() string { return cmp.Or(e.spec.ExtensionServer.Image, e.extensionImage) }
