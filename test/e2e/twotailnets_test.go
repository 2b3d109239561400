// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && tailnets

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/test/load"
)

const (
	// bothExample joins a Gateway to the quickstart's tailnet, which the example calls home, and to
	// the tailnet of the TailscaleTailnet partnerTailnet. It discovers the services of both.
	bothExample    = "examples/gateway-two-tailnets.yaml"
	both           = "both"
	home           = "home"
	partner        = "partner"
	partnerTailnet = "example"

	// bothHost is a client of either tailnet that hosts services there.
	bothHost = "host-of-both"

	// greeter is a service of both tailnets. The two are independent.
	greeter = "svc:greeter"

	// allServices is the selector of the example. onlyGreeter selects the greeter alone, with a
	// short interval.
	allServices = "serviceDiscovery:\n      tags:\n      - tag:shared\n"
	onlyGreeter = "serviceDiscovery: {patterns: [greeter], interval: 5s}\n"

	// hosts sets other hosts for discovered services.
	hosts = `[{"op":"replace","path":"/spec/tailnets/%[1]d/routeGeneration/egress/hostPattern","value":%[2]q}]`
)

// TestTwoTailnets tests the features of Gateways in tailnets that take too long for each run of CI.
func TestTwoTailnets(t *testing.T) {
	labRun(t, "up", "--install", "--tailnets=2")
	demo(t)
	labRun(t, "cert-manager")
	setsBudget(t, budgetOfDocs)
	apply(t, fmt.Sprintf(prober, namespace, "prober"))
	kubectl(t, "wait", "pod/prober", "-n", namespace, "--for=condition=Ready", "--timeout=60s")
	t.Run("Parallel", func(t *testing.T) {
		for _, way := range []struct {
			name string
			run  func(*testing.T)
		}{
			{"JoinsTwoTailnets", joinsTwoTailnets},
			{"SeparatesNamespaces", separatesNamespaces},
			{"AppliesPatterns", appliesPatterns},
			{"SharesRoutes", sharesRoutes},
			{"ResolvesHostnames", resolvesHostnames},
			{"AppliesDevicePolicies", appliesDevicePolicies},
			{"PresentsClientCertificate", presentsClientCertificate},
			{"IssuesCertificates", issuesCertificates},
			{"PassesIdentity", passesIdentity},
			{"RunsDedicatedExtension", runsDedicatedExtension},
			{"SharesEachKind", sharesEachKind},
			{"PrefersUserRoutes", prefersUserRoutes},
			{"AppliesEgressExample", appliesEgressExample},
			{"AppliesKernelExample", appliesKernelExample},
			{"AppliesReferenceGrantExample", appliesReferenceGrantExample},
			{"AppliesTailnetGrantsExample", appliesTailnetGrantsExample},
		} {
			t.Run(way.name, func(t *testing.T) {
				t.Parallel()
				way.run(t)
			})
		}
	})
	// Its Gateway has the name of another example's.
	t.Run("AppliesWalkthrough", appliesWalkthrough)
	// It changes the extension's settings, and needs to be alone with the quickstart's tailnet.
	t.Run("AppliesDesigns", appliesDesigns)
	leaksNothingOf(t, tailnetOne, tailnetTwo)
	breakerStaysClosed(t)
}

// joinsTwoTailnets joins two independent tailnets to one Gateway. A failure of one does not affect
// the other.
func joinsTwoTailnets(t *testing.T) {
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"AnswersBoth", answersBoth},
		{"ReachesBoth", reachesBoth},
		{"ReportsCollision", reportsCollision},
		{"SurvivesAPIOutage", survivesAPIOutage},
		{"LeavesNothing", leavesNothingInBoth},
	} {
		if !t.Run(step.name, step.run) {
			return
		}
	}
}

func answersBoth(t *testing.T) {
	if err := stream(t.Context(), "go", "run", "./cluster/demo", "tailnet", string(tailnetTwo), "--as="+partnerTailnet); err != nil {
		t.Fatalf("cannot add the second tailnet: %v", err)
	}
	apply(t, strings.ReplaceAll(readFile(t, bothExample), allServices, onlyGreeter))
	for _, n := range []tailnet{tailnetOne, tailnetTwo} {
		u := n.url(t, both)
		took := eventually(t, patience, "answer of "+u, func() string {
			if response, err := n.curl(t, u); err != nil || !strings.HasPrefix(response, "web-") {
				return "the response is " + response
			}
			return ""
		})
		t.Logf("tailnet %s gets a response after %s", n, took.Round(100*time.Millisecond))
	}
	conditionOf(t, "tailscalegateways", both, "GatewayVIPReady", "True", "GatewayVIPHosted", patience)
}

// reachesBoth discovers services of one name in both tailnets, each by a separate host.
func reachesBoth(t *testing.T) {
	for name, n := range map[string]tailnet{home: tailnetOne, partner: tailnetTwo} {
		n.serve(t, bothHost, greeter)
		eventually(t, patience, greeter+" of tailnet "+name, func() string {
			return greets(t, both, "greeter."+name+".tailscale.local", "/")
		})
	}
	conditionOf(t, "tailscalegateways", both, "RoutesReady", "True", "RoutesAccepted", patience)
}

// reportsCollision gives both services one host. The first keeps it, and the second gets its
// default host back after the collision is resolved.
func reportsCollision(t *testing.T) {
	const host = "greeter.tailscale.local"
	for i := range 2 {
		patch(t, "tailscalegateways", both, fmt.Sprintf(hosts, i, "{service}.tailscale.local"))
	}
	message := conditionOf(t, "tailscalegateways", both, "RoutesReady", "False", "HostCollision", patience)
	for _, w := range []string{home, partner, host} {
		if !strings.Contains(message, w) {
			t.Errorf("the message does not name %s: %s", w, message)
		}
	}
	eventually(t, patience, "the first tailnet's "+greeter, func() string { return greets(t, both, host, "/") })
	patch(t, "tailscalegateways", both, fmt.Sprintf(hosts, 1, "{service}.{tailnet}.tailscale.local"))
	conditionOf(t, "tailscalegateways", both, "RoutesReady", "True", "RoutesAccepted", patience)
	eventually(t, patience, "the other's", func() string { return greets(t, both, "greeter.partner.tailscale.local", "/") })
}

// survivesAPIOutage makes the API of the second tailnet fail until the status reports it, and then
// for as long as the flag says. Nothing is withdrawn in either tailnet, and no request is lost.
func survivesAPIOutage(t *testing.T) {
	previous := madeForBoth(t)
	query := func(n tailnet) []string {
		return []string{"--tailnet=" + string(n), "--rate=20", "--new-connections", "--for=" + (*outage + 2*patience).String(), n.url(t, both)}
	}
	reports := map[tailnet]load.Report{}
	reports[tailnetTwo] = underLoad(t, func() {
		reports[tailnetOne] = underLoad(t, func() {
			labCommand(t, "--tailnet="+string(tailnetTwo), "tailnet-fault")
			defer labCommand(t, "--tailnet="+string(tailnetTwo), "tailnet-fault", "--clear")
			took := eventually(t, patience, "the failure is reported", func() string {
				if response := messageOf(t, partner); !strings.Contains(response, "Tailscale's API is not available") {
					return "status.tailnetStatus is " + response
				}
				return ""
			})
			t.Logf("reported after %s: %s", took.Round(100*time.Millisecond), messageOf(t, partner))
			// The status reports failed operations on a service; the hosts do not change.
			conditionOf(t, "tailscalegateways", both, "ServicesReady", "False", "ServiceError", patience)
			timer := time.NewTimer(*outage)
			defer timer.Stop()
			for lasts := true; lasts && !t.Failed(); {
				select {
				case <-timer.C:
					lasts = false
				case <-time.After(10 * time.Second):
				}
				outlives(t, previous)
			}
		}, query(tailnetOne)...)
	}, query(tailnetTwo)...)
	for n, r := range reports {
		if r.Lost > 0 {
			t.Errorf("tailnet %s: %s", n, r)
		}
	}
	// A Discovery that has failed for long looks again after two minutes.
	took := eventually(t, patience, "the end of the failure is reported", func() string { return messageOf(t, partner) })
	t.Logf("end of the failure reported after %s", took.Round(100*time.Millisecond))
}

// outlives checks that nothing has changed since before a failure of the second tailnet's API.
func outlives(t *testing.T, previous []string) {
	t.Helper()
	if response := messageOf(t, home); response != "" {
		t.Errorf("the status reports the other tailnet, too: %s", response)
	}
	if got := conditionNow(t, namespace, "tailscalegateways", both, "GatewayVIPReady"); !strings.HasPrefix(got, "True/") {
		t.Errorf("GatewayVIPReady is %s", got)
	}
	for _, host := range []string{"greeter.tailscale.local", "greeter.partner.tailscale.local"} {
		if missing := greets(t, both, host, "/"); missing != "" {
			t.Error(missing)
		}
	}
	if during := madeForBoth(t); !slices.Equal(previous, during) {
		t.Errorf("before the failure there was\n%s\nand then\n%s", strings.Join(previous, "\n"), strings.Join(during, "\n"))
	}
}

// messageOf returns the message of a tailnet in the TailscaleGateway's status. It is empty for a
// healthy tailnet.
func messageOf(t *testing.T, name string) string {
	t.Helper()
	return jsonpath(t, "tailscalegateways", both, `{.status.tailnetStatus[?(@.name=="`+name+`")].message}`)
}

// madeForBoth lists the objects in the cluster, and the hosts of services in the tailnets.
func madeForBoth(t *testing.T) []string {
	t.Helper()
	var out []string
	for line := range strings.Lines(kubectl(t, "get", "tailscaleservices,tailscaleendpoints,vipservices,serviceattachments,machines,statefulsets,services,httproutes", "-n", namespace,
		`-o=jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.uid}{"\n"}{end}`)) {
		if _, name, _ := strings.Cut(line, "/"); strings.HasPrefix(name, both) {
			out = append(out, strings.TrimSpace(line))
		}
	}
	for _, n := range []tailnet{tailnetOne, tailnetTwo} {
		for _, v := range n.state(t).Services {
			if v.Name == "svc:"+both {
				out = append(out, fmt.Sprintf("%s of tailnet %s at %s", v.Name, n, v.Primary))
			}
		}
	}
	slices.Sort(out)
	return out
}

// leavesNothingInBoth deletes the TailscaleGateway, and then the second tailnet.
func leavesNothingInBoth(t *testing.T) {
	for _, n := range []tailnet{tailnetOne, tailnetTwo} {
		n.withdraw(t, bothHost, greeter)
	}
	kubectl(t, "delete", "-f", bothExample, "--timeout=3m")
	goneFrom(t, namespace, both)
	eventually(t, patience, "nothing left in the second tailnet", func() string {
		if d, k, s := tailnetTwo.state(t).ours(); d+k+s != 0 {
			return fmt.Sprintf("%d devices, %d keys, %d services", d, k, s)
		}
		return ""
	})
	kubectl(t, "delete", "tailscaletailnets", partnerTailnet, "--timeout=1m")
	kubectl(t, "delete", "secret", "tailscale-oauth-"+partnerTailnet, "-n", namespace)
}
