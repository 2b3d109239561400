// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && (tailnets || hostile)

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	// namedExample has a Gateway with hostnames, and a tailnet that resolves them.
	namedExample = "examples/gateway-split-dns.yaml"
	named        = "named"
	namedDomain  = "shop.example.com"
)

// namedRoute is another route of the Gateway, with a different hostname.
const namedRoute = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: named-more, namespace: quickstart}
spec:
  parentRefs: [{name: ` + named + `}]
  hostnames: [more.` + namedDomain + `]
  rules:
  - backendRefs: [{name: web, port: 80}]
`

// kernelNamed joins the Gateway to the tailnet a second time, with proxies with Kernel networking
// and a domain for each hostname.
const kernelNamed = `apiVersion: v1
kind: Namespace
metadata:
  name: named-kernel
  labels: {pod-security.kubernetes.io/enforce: privileged}
---
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: named-kernel, namespace: quickstart}
spec:
  from: [{group: gateway.tailscale.com, kind: TailscaleGateway, namespace: named-kernel}]
  to: [{group: gateway.networking.k8s.io, kind: Gateway, name: ` + named + `}]
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleGateway
metadata: {name: grounded, namespace: named-kernel}
spec:
  gatewayRef: {namespace: quickstart, name: ` + named + `}
  publishBackends: None
  tailnets:
  - name: quickstart
    proxy: {replicas: 1, networking: Kernel}
    vipService: {tags: ["tag:k8s"]}
    splitDNS: {}
`

// resolvesHostnames checks that clients of the tailnet reach routes by their hostnames.
func resolvesHostnames(t *testing.T) {
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Answers", answersByHostname},
		{"FollowsRoutes", followsRoutesByHostname},
		{"KeepsOtherNameservers", keepsOtherNameservers},
		{"SurvivesProxyReplacement", survivesProxyReplacement},
		{"AnswersByKernel", answersByHostnameByKernel},
		{"LeavesNothing", leavesNothingByHostname},
	} {
		if !t.Run(step.name, step.run) {
			return
		}
	}
}

// resolved returns the addresses that a client of the tailnet resolves a name to, or the reason for
// none.
func resolved(t *testing.T, name, kind string) string {
	t.Helper()
	out, err := labOutput(t, "tailscale", "dns", "query", "--json", name, kind)
	if err != nil {
		return "error: " + out
	}
	r := struct {
		ResponseCode string
		Answers      []struct{ Body string }
	}{}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		return "error: " + out
	}
	response := []string{r.ResponseCode}
	for _, a := range r.Answers {
		response = append(response, a.Body)
	}
	return strings.Join(response, " ")
}

// answersByHostname sends requests to a route by its hostname, and by one that a wildcard matches.
func answersByHostname(t *testing.T) {
	// The client starts before the tailnet has the domain.
	labCommand(t, "tailnet-client", "client")
	kubectl(t, "apply", "-f", namedExample)
	for _, host := range []string{"app." + namedDomain, "any.preview." + namedDomain} {
		took := answeredAt(t, "http://"+host+"/", "web", patience)
		t.Logf("%s answered after %s", host, took.Round(100*time.Millisecond))
	}
	conditionOf(t, "tailscalegateways", named, "SplitDNSReady", "True", "HostnamesResolve", patience)
	conditionOf(t, "tailscalegateways", named, "Ready", "True", "Available", patience)

	var addresses []string
	eventually(t, patience, "address of the Gateway's service in the status", func() string {
		if addresses = strings.Fields(jsonpath(t, "tailscalegateways", named, "{.status.services[0].addresses[*]}")); len(addresses) == 0 {
			return "none yet"
		}
		return ""
	})
	for name, want := range map[string]string{
		"app." + namedDomain: "RCodeSuccess " + addresses[0],
		"no." + namedDomain:  "RCodeNameError",
		namedDomain:          "RCodeSuccess",
	} {
		if got := resolved(t, name, "A"); got != want {
			t.Errorf("%s resolves to %q, want %q", name, got, want)
		}
	}
}

// followsRoutesByHostname checks that clients resolve the hostname of a new route, and no longer
// after its deletion.
func followsRoutesByHostname(t *testing.T) {
	host := "more." + namedDomain
	if got := resolved(t, host, "A"); got != "RCodeNameError" {
		t.Errorf("%s resolves to %q before there is a route", host, got)
	}
	apply(t, namedRoute)
	took := answeredAt(t, "http://"+host+"/", "web", patience)
	t.Logf("an added hostname answers after %s", took.Round(100*time.Millisecond))
	kubectl(t, "delete", "httproute", "named-more", "-n", namespace)
	took = eventually(t, patience, host+" is gone", func() string {
		if got := resolved(t, host, "A"); got != "RCodeNameError" {
			return "the name resolves to " + got
		}
		return ""
	})
	t.Logf("a removed hostname is gone after %s", took.Round(100*time.Millisecond))
}

// keepsOtherNameservers adds another nameserver for the domain.
func keepsOtherNameservers(t *testing.T) {
	const other = "100.127.0.53"
	ours := nameserversOf(t, namedDomain)
	if _, err := tailnetClient(t).DNS().UpdateSplitDNS(t.Context(), map[string][]string{namedDomain: append([]string{other}, ours...)}); err != nil {
		t.Fatalf("cannot add a nameserver: %v", err)
	}
	eventually(t, patience, "the proxy refuses names of other nameservers", func() string {
		if got := resolved(t, "no."+namedDomain, "A"); got == "RCodeNameError" {
			return "the proxy answers that the name does not exist"
		}
		return ""
	})
	if got := nameserversOf(t, namedDomain); !slices.Contains(got, other) {
		t.Errorf("the other nameserver is gone: %v", got)
	}
	answeredAt(t, "http://app."+namedDomain+"/", "web", patience)
}

// nameserversOf returns the nameservers of a domain in the tailnet.
func nameserversOf(t *testing.T, domain string) []string {
	t.Helper()
	all, err := tailnetClient(t).DNS().SplitDNS(t.Context())
	if err != nil {
		t.Fatalf("cannot read split DNS: %v", err)
	}
	return all[domain]
}

// survivesProxyReplacement replaces the proxy that resolves names.
func survivesProxyReplacement(t *testing.T) {
	pod := strings.TrimSpace(kubectl(t, "get", "pods", "-n", namespace, "-l", "gateway.tailscale.com/endpoints="+named+"-quickstart", "-o=name"))
	kubectl(t, "delete", pod, "-n", namespace, "--timeout=3m")
	kubectl(t, "wait", pod, "-n", namespace, "--for=create", "--timeout=1m")
	kubectl(t, "wait", pod, "-n", namespace, "--for=condition=Ready", "--timeout=3m")
	took := answeredAt(t, "http://app."+namedDomain+"/", "web", patience)
	t.Logf("the hostname answers %s after the proxy is ready again", took.Round(100*time.Millisecond))
}

// answersByHostnameByKernel resolves by a proxy whose agent listens at the proxy's address in the
// tailnet. Its domain is the longer one, so clients use no other nameserver.
func answersByHostnameByKernel(t *testing.T) {
	const ns, grounded = "named-kernel", "grounded"
	host := "app." + namedDomain
	apply(t, kernelNamed)
	message := conditionIn(t, ns, "tailscalegateways", grounded, "SplitDNSReady", "False", "HostnamesNotCovered", patience)
	if want := "*.preview." + namedDomain; !strings.HasPrefix(message, want) {
		t.Errorf("SplitDNSReady is to name %s, got %q", want, message)
	}
	eventually(t, patience, host+" resolves to the other service", func() string {
		addresses := strings.Fields(jsonpathIn(t, ns, "tailscalegateways", grounded, "{.status.services[0].addresses[*]}"))
		if len(addresses) == 0 {
			return "the service has no address"
		}
		if got, want := resolved(t, host, "A"), "RCodeSuccess "+addresses[0]; got != want {
			return fmt.Sprintf("the name resolves to %q, want %q", got, want)
		}
		return ""
	})
	answeredAt(t, "http://"+host+"/", "web", patience)
	kubectl(t, "delete", "tailscalegateways", grounded, "-n", ns, "--timeout=3m")
	goneFrom(t, ns, grounded)
	if got := nameserversOf(t, host); len(got) > 0 {
		t.Errorf("nameservers are left: %v", got)
	}
	kubectl(t, "delete", "referencegrants.gateway.networking.k8s.io", ns, "-n", namespace)
	kubectl(t, "delete", "namespace", ns, "--timeout=3m")
}

func leavesNothingByHostname(t *testing.T) {
	kubectl(t, "delete", "-f", namedExample, "--timeout=3m")
	goneFrom(t, namespace, named)
	eventually(t, patience, "only others' nameservers are left", func() string {
		if got := nameserversOf(t, namedDomain); len(got) != 1 {
			return fmt.Sprint(got)
		}
		return ""
	})
	if _, err := tailnetClient(t).DNS().UpdateSplitDNS(t.Context(), map[string][]string{namedDomain: nil}); err != nil {
		t.Errorf("cannot remove a nameserver: %v", err)
	}
}
