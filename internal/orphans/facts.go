// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package orphans decides which objects of a tailnet and of a cluster were made by this cluster and
// have no owner any more. It uses the marks that the provider leaves on its objects. The package is
// pure: callers collect the facts, and delete what a report allows.
package orphans

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Facts are the inputs of a report. Callers list the tailnet before the cluster: an object of the
// cluster exists before the object of the tailnet that it makes, so an object that is made
// meanwhile cannot look like an orphan.
type Facts struct {
	// Cluster is the ID of this cluster in the tailnet.
	Cluster string

	// Confirmed reports that the cluster itself names the ID. Otherwise only the user does.
	Confirmed bool

	// Siblings are the IDs of other provider configs of this cluster.
	Siblings map[string]string

	// View holds the tailnet's services and devices, with the times of the lists by the API's
	// clock.
	View registry.View

	// AuthKeys are the valid auth keys, and Credentials the OAuth clients and federated identities.
	AuthKeys    []tailscale.Key
	Credentials []tailscale.Key

	// InUse is the ID of the credential with which the caller asks, or "".
	InUse string

	// Policy is the number of entries of each owner in the policy file.
	Policy map[string]int

	// Online holds the names of online devices that host a service, by service.
	Online map[string][]string

	// Living are the objects of the cluster, and what they hold in the tailnet.
	Living Living

	// Former are objects that the cluster may have had. A mark proves whether it did.
	Former []types.NamespacedName

	// Domain is the tailnet's DNS name, or "" while it has no devices.
	Domain string

	// Secrets are state and config Secrets of proxies, and Routes are generated routes.
	Secrets []Secret
	Routes  []Route
}

// Names are objects of one kind, as NAMESPACE/NAME.
type Names map[string]bool

// Living are the managed objects of the cluster.
type Living struct {
	VIPServices Names

	// Owners are the marks of the living PolicyFragments in the policy file.
	Owners Names

	Machines            Names
	AuthKeys            Names
	OAuthClients        Names
	FederatedIdentities Names

	// IDs are the IDs of devices, keys and credentials that living objects name.
	IDs Names

	// Gateways are the TailscaleGateways.
	Gateways Names
}

// A Secret holds the state or the configuration of a proxy.
type Secret struct {
	Namespace, Name string

	// Type is meta.SecretTypeState or meta.SecretTypeConfig.
	Type string

	// Machine is the name of the Machine that made the Secret.
	Machine string

	// NodeID is the device that a state names: any pod may name any. NodeKey is the public key of
	// the private key in the state, which only the device has.
	NodeID, NodeKey string

	// Domain is the tailnet's DNS name in the state, or "".
	Domain string

	Created time.Time

	// Deleted is when the deletion of the Secret began, or zero. Our finalizer keeps a state Secret.
	Deleted time.Time
}

// A Route is a route that the extension generated.
type Route struct {
	Namespace, Name string

	// Gateway is NAMESPACE/NAME of the TailscaleGateway.
	Gateway string

	Created time.Time
}

// Split returns the Secrets of proxies of a tailnet, and the others. A config Secret follows the
// state Secret of its Machine.
func Split(all []Secret, v registry.View, domain string) (matching, others []Secret) {
	machines := map[types.NamespacedName]bool{}
	for _, s := range all {
		found := slices.ContainsFunc(v.Devices, func(d tailscale.Device) bool { return d.NodeID == s.NodeID })
		if s.NodeID != "" && (found || domain != "" && s.Domain == domain) {
			machines[s.machine()] = true
		}
	}
	for _, s := range all {
		if machines[s.machine()] {
			matching = append(matching, s)
		} else {
			others = append(others, s)
		}
	}
	return matching, others
}

func (s Secret) machine() types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Machine}
}
