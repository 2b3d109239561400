// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"os"
	"path/filepath"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// A Check is a health check that kinds share: a file of package/argocd/health and, if users apply
// objects of the kinds, one of package/flux/health.
type Check string

// Health checks.
const (
	Composites  Check = "composites"
	Managed     Check = "managed"
	MachineSets Check = "machinesets"
	Policies    Check = "policies"
	Plain       Check = "plain"
)

// checks has the kinds of each check. TestKinds compares it with the CRDs and XRDs.
var checks = map[Check]map[schema.GroupVersion][]string{
	Composites: {
		gatewayv1alpha1.SchemeGroupVersion: {"TailscaleEndpoints", "TailscaleGateway", "TailscaleProxyGroup", "TailscaleServices", "TailscaleTailnet"},
	},
	Managed: {
		tailnetv1alpha1.SchemeGroupVersion: managedKinds(),
	},
	MachineSets: {
		tailnetv1alpha1.SchemeGroupVersion: {"MachineSet"},
	},
	Policies: {
		gatewayv1alpha1.SchemeGroupVersion: {"TailscaleRevision", "TailscaleRoutePolicy"},
	},
	Plain: {
		tailnetv1alpha1.SchemeGroupVersion: {"ClusterProviderConfig", "GatewayReport", "HealthReport", "ProviderConfig", "ProviderConfigUsage", "ProxySet", "ServiceAttachment"},
	},
}

// managedKinds returns the kinds of managed resources.
func managedKinds() []string {
	s := runtime.NewScheme()
	if err := tailnetv1alpha1.AddToScheme(s); err != nil {
		panic(err) // The types of a group cannot conflict.
	}
	var out []string
	for kind, t := range s.KnownTypes(tailnetv1alpha1.SchemeGroupVersion) {
		if _, ok := reflect.New(t).Interface().(resource.Managed); ok {
			out = append(out, kind)
		}
	}
	return out
}

// CheckOf returns the check of a kind.
func CheckOf(gk schema.GroupKind) (Check, error) {
	for c, groups := range checks {
		for gv, kinds := range groups {
			for _, k := range kinds {
				if gv.Group == gk.Group && k == gk.Kind {
					return c, nil
				}
			}
		}
	}
	return "", errors.Errorf("no health check is for kind %q", gk.String())
}

// Script returns the Lua script of a check, from the root of the repository.
func (c Check) Script(root string) (string, error) {
	b, err := os.ReadFile(filepath.Join(root, "package", "argocd", "health", string(c)+".lua"))
	return string(b), errors.Wrap(err, "cannot read a health check")
}

// Expressions returns the CEL expressions of a check, from the root of the repository.
func (c Check) Expressions(root string) (*Expressions, error) {
	b, err := os.ReadFile(filepath.Join(root, "package", "flux", "health", string(c)+".yaml"))
	if err != nil {
		return nil, errors.Wrap(err, "cannot read health check expressions")
	}
	e := &Expressions{}
	return e, errors.Wrapf(yaml.UnmarshalStrict(b, e), "cannot decode the expressions %q", c)
}
