// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscalegateway

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

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

	// Suffixes of the names of Services.
	suffixHooks   = ""
	suffixEDS     = "-eds"
	suffixMetrics = "-metrics"

	// Suffixes of the names of roles and their bindings.
	suffixRights = ""
	suffixLease  = "-lease"

	// Suffixes of the names of the Secrets with certificates that the extension creates: its own,
	// and the one that Envoy Gateway presents and trusts (extension/credentials).
	suffixCertificates = "-certificates"
	suffixClient       = "-client"
)

// wantsExtension reports whether the Gateway has a separate extension. The extension reads one
// namespace, which must be the Gateway's.
func (gp *gatewayPlan) wantsExtension() bool {
	return gp.spec.ExtensionServer != nil && !gp.step && gp.gateway.ref.Namespace == gp.owner.Namespace
}

// planExtension returns the extension that is wanted. It is nil if there is none.
func (gp *gatewayPlan) planExtension() *extension {
	if !gp.wantsExtension() {
		return nil
	}
	return &extension{gatewayPlan: gp, name: names.Child(gp.owner.Name, "extension")}
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
	made := "Secret " + e.owner.Namespace + "/" + e.name + suffixClient
	if t := e.spec.ExtensionServer.TLS; t != nil {
		return made + " as tls.clientCertificateRef, and as tls.certificateRef one whose tls.crt is what the certificate of Secret " + t.CertificateRef.Name + " chains to"
	}
	return made + " as tls.certificateRef and as tls.clientCertificateRef"
}

// ready returns a condition that is True if a replica answers.
func (e *extension) ready() compose.Condition {
	if e.readyReplicas() > 0 {
		return compose.Condition{Status: compose.True, Reason: meta.ReasonExtensionServing, Message: "Extension " + e.name + " answers at " + e.address() + " for an Envoy Gateway whose configuration names it, with " + e.references()}
	}
	m := "Waiting for a pod of Deployment " + e.name
	if t := e.spec.ExtensionServer.TLS; t != nil {
		m += ", which needs Secret " + t.CertificateRef.Name
	}
	return compose.Condition{Status: compose.False, Reason: meta.ReasonExtensionNotReady, Message: m}
}

// extensionChildren returns the children of the extension. The pods are created once the address
// for Envoys is known: Envoys connect to an address, because those on the host's network cannot
// resolve names of the cluster.
func (gp *gatewayPlan) extensionChildren() children {
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
	switch {
	case e.observed.eds != nil && e.observed.eds.Spec.ClusterIP != "":
		out.add(keyExtension, e.composeDeployment(), e.readyReplicas() == e.replicas())
	case e.observed.deployment != nil:
		// Keep the running Deployment: Crossplane deletes children that are omitted.
		out.incomplete = true
		out.add(keyExtension, &appsv1.Deployment{ObjectMeta: e.objectMeta(""), Spec: e.observed.deployment.Spec}, false)
	default:
		out.incomplete = true
	}
	return out
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
		"--eds-target="+net.JoinHostPort(e.observed.eds.Spec.ClusterIP, strconv.Itoa(portEDS)),
		fmt.Sprintf("--eds-server-name=%s-eds.%s.svc", e.name, e.owner.Namespace),
		"--xds-mode=GoogleGRPC", fmt.Sprintf("--observe-address=:%d", portMetrics), fmt.Sprintf("--drain=%ds", drainSeconds),
		"--only-gateway="+e.gateway.ref.Namespace+"/"+e.gateway.ref.Name)
}

// tls reports whether the user supplies a certificate for the servers.
func (e *extension) tls() bool { return e.spec.ExtensionServer.TLS != nil }

// image returns the image of the pods.
func (e *extension) image() string { return cmp.Or(e.spec.ExtensionServer.Image, e.extensionImage) }
