// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/config"
	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
)

// refusesToUninstall removes the installation in wrong orders while objects exist. Each attempt is
// refused with a reason, and changes nothing.
func refusesToUninstall(t *testing.T) {
	const reason = "objects of its provider configs stay"
	installed := func() string {
		return kubectl(t, "get", "providers.pkg,functions.pkg,configurations.pkg,clusterroles,validatingadmissionpolicies", "-o=name") +
			kubectl(t, "get", "pods", "-n", "crossplane-system", "-l", "pkg.crossplane.io/provider", "-o=jsonpath={.items[*].metadata.uid}")
	}
	release := func() string {
		out, err := tryRun(t, "", "helm", "status", "tailscale-gateway", "-n", "crossplane-system", "-o=json")
		if err != nil {
			t.Fatalf("helm status: %v\n%s", err, out)
		}
		return out
	}
	previous, status := installed(), release()
	for _, attempt := range []struct {
		name string
		args []string
	}{
		{"chart", []string{"helm", "uninstall", "tailscale-gateway", "-n", "crossplane-system"}},
		{"provider", []string{"kubectl", "delete", "provider.pkg", products.Object(products.Provider)}},
		{"provider in the foreground", []string{"kubectl", "delete", "provider.pkg", products.Object(products.Provider), "--cascade=foreground"}},
		{"configuration", []string{"kubectl", "delete", "configuration.pkg", configurationObject()}},
	} {
		out, err := tryRun(t, "", attempt.args[0], attempt.args[1:]...)
		if err == nil || !strings.Contains(out, reason) {
			t.Fatalf("%s: want a refusal with %q, got %v:\n%s", attempt.name, reason, err, out)
		}
	}
	if current := installed(); current != previous {
		t.Errorf("refused attempts changed something:\nbefore: %s\nafter: %s", previous, current)
	}
	if current := release(); current != status {
		t.Errorf("the refused uninstallation changed the release:\nbefore: %s\nafter: %s", status, current)
	}
	answered(t, "web", "web", patience)
}

func configurationObject() string {
	if *flavour == products.FlavourClaims {
		return products.Object(products.ConfigurationClaims)
	}
	return products.Object(products.Configuration)
}

// uninstalls runs the commands of docs/uninstall.md as written. Neither the cluster nor the tailnet
// has anything of the product afterwards, and a second installation works.
func uninstalls(t *testing.T) {
	again(t)
	answered(t, "web", "web", patience)
	uninstallCommands(t, "## 2.")
	eventually(t, patience, "no usage is left", func() string {
		return kubectl(t, "get", "clusterusages.protection.crossplane.io,usages.protection.crossplane.io", "-A", "-o=name") +
			kubectl(t, "get", "configmap", config.HookName, "-n", "crossplane-system", "-o=name", "--ignore-not-found")
	})
	uninstallCommands(t, "## 3.")
	if *flavour == products.FlavourClaims {
		kubectl(t, "delete", "configuration.pkg", configurationObject())
		kubectl(t, "delete", "function.pkg", products.Object(products.Function))
		kubectl(t, "delete", "provider.pkg", products.Object(products.Provider))
	}
	eventually(t, patience, "nothing of the product is left", func() string {
		remaining := kubectl(t, "get", "providers.pkg,functions.pkg,configurations.pkg", "-o=name") +
			kubectl(t, "get", "crds,compositeresourcedefinitions,managedresourcedefinitions", "-o=name")
		roles := kubectl(t, "get", "clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings", "-l", "app.kubernetes.io/instance=tailscale-gateway", "-o=name") +
			kubectl(t, "get", "roles,rolebindings,networkpolicies,configmaps", "-n", "crossplane-system", "-l", "app.kubernetes.io/instance=tailscale-gateway", "-o=name")
		var ours []string
		for line := range strings.Lines(remaining) {
			// The extension, which is a separate release here, keeps its kinds.
			if strings.Contains(line, "tailscale") && !strings.Contains(line, "/tailscalerevisions.") && !strings.Contains(line, "/tailscaleroutepolicies.") {
				ours = append(ours, strings.TrimSpace(line))
			}
		}
		d, k, s := tailnetState(t).ours()
		if len(ours) > 0 || roles != "" || d+k+s != 0 {
			return fmt.Sprintf("%d devices, %d keys, %d services, %v, %s", d, k, s, ours, strings.Join(strings.Fields(roles), " "))
		}
		return ""
	})
	if *flavour != products.FlavourClaims {
		getsStarted(t)
	}
	demo(t)
	again(t)
	answered(t, "web", "web", patience)
}

// uninstallCommands runs the commands of a section of docs/uninstall.md in a shell, with the chart of this tree in the
// place of the released one.
func uninstallCommands(t *testing.T, section string) {
	t.Helper()
	_, text, ok := strings.Cut(readFile(t, "docs/uninstall.md"), "\n"+section)
	if !ok {
		t.Fatalf("docs/uninstall.md has no section %s", section)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	scripts := shellBlocks(text)
	if len(scripts) == 0 {
		t.Fatalf("section %s of docs/uninstall.md has no commands", section)
	}
	for _, script := range scripts {
		pageCommand(t, "", strings.ReplaceAll(script, "oci://"+products.Charts+"/tailscale-gateway --version 0.1.0", "package/charts/tailscale-gateway"), labPath(t)...)
	}
}
