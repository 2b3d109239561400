// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && tailnets && upgrade

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tailscale-gateway/tailscale-gateway/test/e2e/internal/upgrade"
)

// exampleNamespace is the namespace of examples/managed, and exampleDevice is the node ID there.
const (
	exampleNamespace = "tailscale-example"
	exampleDevice    = "nExampleDevice1CNTRL"
)

// notUpgraded are examples that cannot be applied beside the others, with the reasons.
var notUpgraded = map[string]string{
	"examples/managed/machine.yaml":       "a Machine without a pod never joins, and gets another key every 30 minutes",
	"examples/publish/service.yaml":       "its Services have the names of other examples' TailscaleServices, and the chart grants the permissions on request",
	"examples/walkthrough/5-gateway.yaml": "its Gateway has the service name of examples/gateway-patterns.yaml",
}

// appliesAll applies all examples of the previous version, and leaves them. The steps wait as the
// tests of the single examples do.
func (u *upgraded) appliesAll(t *testing.T) {
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Services", u.appliesServices},
		{"TLS", u.appliesTLS},
		{"Egress", u.appliesEgress},
		{"Gateways", u.appliesGateways},
		{"Routes", u.appliesRoutes},
		{"OtherTailnet", u.appliesOtherTailnet},
		{"Walkthrough", u.appliesWalkthrough},
		{"NothingForgotten", u.forgetsNothing},
	} {
		if !t.Run(step.name, step.run) {
			return
		}
	}
}

// apply applies an example of the previous version with replacements: pairs of a text of the
// example and its value in the lab. An example that is newer is not applied.
func (u *upgraded) apply(t *testing.T, path string, replacements ...string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(u.tree, path))
	if os.IsNotExist(err) {
		t.Logf("the previous version has no %s", path)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	manifest := string(b)
	for i := 0; i < len(replacements); i += 2 {
		if !strings.Contains(manifest, replacements[i]) {
			t.Fatalf("%s does not contain %q", path, replacements[i])
		}
	}
	apply(t, upgrade.Small(strings.NewReplacer(replacements...).Replace(manifest)))
}

// answered waits until a pod of a Deployment answers at a URL in the tailnet. It has to do so after
// the upgrade, too.
func (u *upgraded) answered(t *testing.T, url, deployment string) {
	t.Helper()
	answeredAt(t, url, deployment, patience)
	u.answers[url] = deployment
}

func (u *upgraded) appliesServices(t *testing.T) {
	u.apply(t, "examples/smallest.yaml")
	u.apply(t, "examples/auto-provisioned.yaml")
	u.apply(t, "examples/auto-cleanup.yaml")
	u.apply(t, "examples/http.yaml")
	u.apply(t, "examples/proxy-group.yaml")
	u.apply(t, "examples/shared.yaml")
	u.apply(t, "examples/service-failover.yaml")
	u.apply(t, "examples/external-backend.yaml")
	u.apply(t, "examples/route-only.yaml")
	for _, service := range []string{"web", "hello", "auto", "whoami", "ha", "shared"} {
		u.answered(t, tailnetOne.url(t, service), "web")
	}
	u.answered(t, strings.TrimSuffix(tailnetOne.url(t, "legacy"), "/")+":8080/", "web")
}

func (u *upgraded) appliesTLS(t *testing.T) {
	cert, key := certificate(t, "secure."+domain(t))
	kubectl(t, "create", "secret", "tls", "web-tls", "-n", namespace, "--cert="+cert, "--key="+key)
	u.apply(t, "examples/tls.yaml")
	u.answered(t, tailnetOne.url(t, "secure"), "web")
	makesForge(t)
	u.apply(t, "examples/https-backend.yaml")
	setHTTPS(t, true)
	u.apply(t, "examples/https.yaml")
	conditionOf(t, "tailscaleservices", "https", "Ready", "True", "Available", patience)
	u.apply(t, "examples/tls-cert-manager.yaml", "tail1234.ts.net", domain(t))
	isReady(t, certified)
	u.apply(t, "examples/gateway-certificates.yaml")
	conditionOf(t, "tailscaleservices", certified, "Ready", "True", "Available", patience)
}

func (u *upgraded) appliesEgress(t *testing.T) {
	for _, client := range []string{sensor, "wiki", "shop-db", "db"} {
		labCommand(t, "tailnet-client", client)
	}
	if err := tailnetClient(t).Devices().SetTags(t.Context(), tailnetOne.node(t, sensor), []string{"tag:client", "tag:sensor"}); err != nil {
		t.Fatalf("cannot tag the device: %v", err)
	}
	u.apply(t, "examples/discovery.yaml")
	u.apply(t, "examples/egress.yaml", "100.64.0.10", addressOf(t, "shop-db"), "grafana.tail1234.ts.net:3000", "wiki."+domain(t)+":8080", "wiki.tail1234.ts.net", "wiki."+domain(t))
	// The lab has no image of the example's pod.
	kubectl(t, "delete", "pod", "egress-client", "-n", namespace, "--ignore-not-found", "--wait=false")
	u.apply(t, "examples/kernel.yaml", "100.64.0.53", addressOf(t, "db"))
	conditionOf(t, "tailscaleendpoints", "sensors", "DiscoverySuccessful", "True", "Discovered", patience)
	conditionIn(t, kernelNamespace, "tailscaleendpoints", "both", "MachinesReady", "True", "AllMachinesReady", patience)
}

func (u *upgraded) appliesGateways(t *testing.T) {
	u.apply(t, "examples/gateway.yaml")
	u.apply(t, "examples/gateway-proxy-protocol.yaml")
	u.apply(t, "examples/gateway-discovery.yaml")
	u.apply(t, "examples/gateway-identity.yaml")
	u.apply(t, "examples/gateway-namespaces.yaml")
	apply(t, strings.ReplaceAll(readFile(t, filepath.Join(u.tree, "examples/quickstart/web.yaml")), "namespace: quickstart", "namespace: "+bakery))
	cert, key := certificate(t, "web.internal.company.com")
	kubectl(t, "create", "secret", "tls", "internal-company-com", "-n", namespace, "--cert="+cert, "--key="+key)
	u.apply(t, "examples/gateway-patterns.yaml")
	u.apply(t, "examples/gateway-reference-grant.yaml")
	// Earlier versions have domains in grants alone, and resolve all names without.
	kubectl(t, "patch", "tailscaletailnets", namespace, "--type=merge",
		`--patch={"spec":{"allowedNamespaces":{"from":"Grants","grants":[{"names":["quickstart"],"domains":["shop.example.com"]},{"selector":{}}]}}}`)
	u.apply(t, "examples/gateway-split-dns.yaml")
	u.apply(t, "examples/gateway-two-tailnets.yaml")
	u.apply(t, "examples/shared-gateway.yaml")
	u.apply(t, "examples/shared-gateway-tailnets.yaml")
	for _, service := range []string{joined, "tenant"} {
		u.answered(t, tailnetOne.url(t, service), "web")
	}
	u.answered(t, tailnetOne.url(t, joined+"-"+bakery), "web")
	conditionOf(t, "tailscalegateways", both, "GatewayVIPReady", "True", "GatewayVIPHosted", patience)

	// A second Envoy Gateway uses the dedicated extension of its TailscaleGateway.
	kubectl(t, "create", "namespace", team)
	u.apply(t, "examples/extension-server.yaml")
	labCommand(t, "envoy-gateway", "--release=team", "--namespace="+team,
		"--values="+filepath.Join(u.folder(t, upgrade.Values), "values.yaml"), "--values="+filepath.Join(u.folder(t, upgrade.Values), "team-values.yaml"))
	u.answered(t, tailnetOne.url(t, own), "web")
	conditionOf(t, "tailscalegateways", own, "ExtensionServerReady", "True", "ExtensionServing", patience)
}

func (u *upgraded) appliesRoutes(t *testing.T) {
	u.apply(t, "examples/shared-routes.yaml")
	cert, key := certificate(t, secureHost)
	kubectl(t, "create", "secret", "tls", "secure", "-n", namespace, "--cert="+cert, "--key="+key)
	node := kubectl(t, "get", "nodes", `-o=jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}`)
	apply(t, fmt.Sprintf(kindsBackends, node, healthPort))
	u.apply(t, "examples/shared-route-kinds.yaml")
	u.answered(t, tailnetOne.url(t, "route-shop-"+namespace), "web")
	u.answered(t, tailnetOne.url(t, "route-page-"+namespace), "web")

	u.apply(t, "examples/route-policy.yaml")
	u.apply(t, "examples/route-policy-devices.yaml", "amelie@example.com", tailnetOne.owner())
	u.apply(t, "examples/route-policy-rate.yaml")
	u.apply(t, "examples/route-policy-rule.yaml")
	u.apply(t, "examples/route-policy-mtls.yaml")
	for _, policy := range []string{"web", "staff", "rate"} {
		eventually(t, patience, "policy "+policy+" is accepted", func() string {
			if got := jsonpath(t, "tailscaleroutepolicies", policy, `{.status.ancestors[*].conditions[?(@.type=="Accepted")].status}`); !strings.HasPrefix(got, "True") {
				return "Accepted is " + got
			}
			return ""
		})
	}
}

// appliesOtherTailnet applies what uses the TailscaleTailnet example, the lab's second tailnet.
func (u *upgraded) appliesOtherTailnet(t *testing.T) {
	apply(t, appBackend)
	u.apply(t, "examples/pipeline/definition.yaml")
	u.apply(t, "examples/pipeline/composition.yaml")
	kubectl(t, "wait", "compositeresourcedefinition/apps.platform.example.org", "--for=condition=Established", "--timeout=60s")
	u.apply(t, "examples/pipeline/app.yaml")
	kubectl(t, "wait", "apps.platform.example.org/shop", "-n", appNamespace, "--for=condition=Ready", "--timeout=4m")

	labCommand(t, "--tailnet="+string(tailnetTwo), "tailnet-client", "router")
	files, err := filepath.Glob(filepath.Join(u.tree, "examples/managed/*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		path := "examples/managed/" + filepath.Base(f)
		switch {
		case notUpgraded[path] != "":
		case strings.HasSuffix(path, "/device.yaml"):
			u.apply(t, path, exampleDevice, tailnetTwo.node(t, "router"))
		default:
			u.apply(t, path)
		}
	}
	for _, kind := range []string{"vipservices", "authkeys", "webhooks"} {
		kubectl(t, "wait", kind+".tailnet.gateway.tailscale.com", "--all", "-n", exampleNamespace, "--for=condition=Ready", "--timeout=4m")
	}
}

func (u *upgraded) appliesWalkthrough(t *testing.T) {
	const home = "default"
	kubectl(t, "create", "secret", "generic", "tailscale-oauth", "-n", home,
		"--from-literal=client_id="+tailnetOne.env(t, "TAILNET_CLIENT_ID"), "--from-file=client_secret="+tailnetOne.env(t, "TAILNET_CLIENT_SECRET_FILE"))
	simulated := fmt.Sprintf("spec:\n  apiURL: %[1]q\n  controlURL: %[1]q\n", tailnetOne.env(t, "TAILNET_API_IN_CLUSTER"))
	apply(t, walkthroughBackends)
	u.apply(t, "examples/walkthrough/1-tailnet.yaml", "spec:\n", simulated)
	u.apply(t, "examples/walkthrough/2-endpoints.yaml", "100.64.0.10", addressOf(t, "wiki"), "100.64.0.20", addressOf(t, "db"), "tail1234.ts.net", domain(t))
	u.apply(t, "examples/walkthrough/3-services.yaml")
	u.apply(t, "examples/walkthrough/4-auto-provisioned.yaml")
	conditionIn(t, home, "tailscaleendpoints", "web-proxies", "MachinesReady", "True", "AllMachinesReady", patience)
	for service, pod := range map[string]string{"web-service": "web", "api": "api"} {
		u.answered(t, tailnetOne.url(t, service)+"hostname", pod)
	}
	// The example has no credential.
	u.apply(t, "examples/tailnet-grants.yaml")
}

// forgetsNothing checks that each example of the previous version has been applied.
func (u *upgraded) forgetsNothing(t *testing.T) {
	missing, err := unnamedExamples(u.tree, "test/e2e/upgradeexamples_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if len(missing) > 0 {
		t.Errorf("no step applies %s", strings.Join(missing, ", "))
	}
}
