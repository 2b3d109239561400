// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// servesInParallel runs steps that mostly wait in parallel.
func servesInParallel(t *testing.T) {
	setsBudget(t, budgetOfDocs)
	apply(t, fmt.Sprintf(prober, namespace, "prober"))
	kubectl(t, "wait", "pod/prober", "-n", namespace, "--for=condition=Ready", "--timeout=60s")
	t.Run("Parallel", func(t *testing.T) {
		for _, way := range []struct {
			name string
			run  func(*testing.T)
		}{
			{"SharesService", sharesService},
			{"SharesGateway", sharesGateway},
			{"ServesPlainGateway", servesPlainGateway},
			{"JoinsGateway", joinsGateway},
			{"DiscoversServices", discoversServices},
			{"UsesKernelNetworking", usesKernelNetworking},
			{"TerminatesTLS", terminatesTLS},
			{"TerminatesHTTPS", terminatesHTTPS},
			{"VerifiesBackend", verifiesBackend},
			{"EnforcesNetworkPolicy", guards},
			{"RunsGroup", runsGroup},
			{"RunsPipeline", runsPipeline},
			{"DiscoversDevices", discovers},
			{"ProvisionsEndpoints", provisions},
			{"AppliesExamples", appliesExamples},
			{"RegainsPrimary", regainsPrimary},
			{"ReportsInvalidReferences", reportsInvalidReferences},
			{"AppliesAllowedNamespaces", appliesAllowedNamespaces},
			{"PublishesServices", publishesServices},
		} {
			t.Run(way.name, func(t *testing.T) {
				t.Parallel()
				way.run(t)
			})
		}
	})
	breakerStaysClosed(t)
}

// ourKinds are the namespaced kinds of the project and the kinds that it creates.
const ourKinds = "tailscaleproxygroups,tailscaleendpoints,tailscaleservices,tailscalegateways," +
	"machinesets,machines,vipservices,splitdns,discoveries,serviceattachments,proxysets," +
	"statefulsets,pods,secrets,services,configmaps,serviceaccounts,roles,rolebindings,poddisruptionbudgets,networkpolicies"

// goneFrom waits until a namespace and the tailnet have no object left that has one of these names
// or begins with it and a dash.
func goneFrom(t *testing.T, ns string, names ...string) {
	t.Helper()
	match := func(name, prefix string) bool { return name == prefix || strings.HasPrefix(name, prefix+"-") }
	eventually(t, patience, "nothing left of "+strings.Join(names, ", "), func() string {
		objects := strings.Fields(kubectl(t, "get", ourKinds, "-n", ns, "-o=name", "--ignore-not-found"))
		s := tailnetState(t)
		for _, n := range names {
			for _, o := range objects {
				if _, name, _ := strings.Cut(o, "/"); match(name, n) {
					return o + " is left"
				}
			}
			if s.hosts(ns+"-"+n+"-") > 0 {
				return "devices of " + n + " are left in the tailnet"
			}
			for _, v := range s.Services {
				if match(v.Name, "svc:"+n) {
					return v.Name + " is left in the tailnet"
				}
			}
			for _, k := range s.Keys {
				if !k.Invalid && strings.Contains(k.Description, ns+"-"+n+"-") {
					return "the key " + k.Description + " is left in the tailnet"
				}
			}
		}
		return ""
	})
}

// runsGroup scales a group by the scale subresource.
func runsGroup(t *testing.T) {
	kubectl(t, "apply", "-f", "examples/proxy-group.yaml")
	groupHas(t, 2)
	answered(t, "ha", "web", patience)
	kubectl(t, "scale", "tailscaleproxygroups", "edge", "-n", namespace, "--replicas=3")
	groupHas(t, 3)
	kubectl(t, "delete", "-f", "examples/proxy-group.yaml", "--timeout=3m")
	goneFrom(t, namespace, "edge", "ha")
}

// groupHas waits until the group is ready with so many devices, each with a name and addresses of
// both families.
func groupHas(t *testing.T, devices int) {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("group of %d", devices), func() string {
		g := struct {
			Status struct {
				DesiredReplicas int
				OnlineReplicas  int
				Replicas        int
				Devices         []struct {
					TailscaleFQDN string
					Addresses     []string
					Online        bool
				}
				Conditions []struct{ Type, Status, Message string }
			}
		}{}
		read(t, namespace, "tailscaleproxygroups", "edge", &g)
		s := g.Status
		if s.DesiredReplicas != devices || s.OnlineReplicas != devices || s.Replicas != devices || len(s.Devices) != devices {
			return fmt.Sprintf("status is %+v", s)
		}
		for _, d := range s.Devices {
			if !d.Online || len(d.Addresses) != 2 || !strings.Contains(d.TailscaleFQDN, ".") {
				return fmt.Sprintf("a device is %+v", d)
			}
		}
		for _, c := range s.Conditions {
			if c.Type == "ProxyGroupReady" && c.Status == "True" {
				return ""
			}
		}
		return fmt.Sprintf("the group is not ready: %+v", s.Conditions)
	})
}

// sensor is a device that gets the tag in examples/discovery.yaml.
const sensor = "attic"

// discovers checks that a device is discovered, used and lost.
func discovers(t *testing.T) {
	labCommand(t, "tailnet-client", sensor)
	kubectl(t, "apply", "-f", "examples/discovery.yaml")
	id := tailnetOne.node(t, sensor)
	conditionOf(t, "tailscaleendpoints", "sensors", "DiscoverySuccessful", "True", "Discovered", patience)
	found := func(want string) (changed string) {
		eventually(t, patience, "status.discoveredEndpoints "+want, func() string {
			got := jsonpath(t, "tailscaleendpoints", "sensors", "{range .status.discoveredEndpoints[*]}{.name} {.source} {.tags[*]},{end}")
			if got != want {
				return "the status is " + got
			}
			changed = jsonpath(t, "tailscaleendpoints", "sensors", "{.status.lastSync}")
			return ""
		})
		return changed
	}
	// The device has tag:client alone.
	initial := found("")
	if err := tailnetClient(t).Devices().SetTags(t.Context(), id, []string{"tag:client", "tag:sensor"}); err != nil {
		t.Fatalf("cannot tag the device: %v", err)
	}
	during := found(sensor + " Devices tag:client tag:sensor,")
	reaches(t, namespace, "http", "sensors-"+sensor, 80, patience)

	if err := tailnetClient(t).Devices().Delete(t.Context(), id); err != nil {
		t.Fatalf("cannot delete the device: %v", err)
	}
	final := found("")
	if during == "" || during == initial || final == during {
		t.Errorf("status.lastSync does not change with the devices: it was %q, then %q, then %q", initial, during, final)
	}
	eventually(t, patience, "Service of the lost device gone", func() string {
		return kubectl(t, "get", "service", "sensors-"+sensor, "-n", namespace, "--ignore-not-found")
	})
	kubectl(t, "delete", "-f", "examples/discovery.yaml", "--timeout=3m")
	goneFrom(t, namespace, "sensors")
}
