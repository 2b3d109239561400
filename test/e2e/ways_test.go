// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// servesManyWays runs examples and bad input side by side: most of each is waiting,
// and none may harm another.
func servesManyWays(t *testing.T) {
	ways := []struct {
		name string

		// begin must not wait long, end not at all.
		begin, check, end, gone func(*testing.T)
	}{
		{"Pipeline", beginPipeline, checkPipeline, endPipeline, pipelineGone},
		{"Shared", beginShared, checkShared, nothing, nothing},
		{"ProxyGroup", beginExample("proxy-group"), checkGroup, endExample("proxy-group"), exampleGone("edge", "ha")},
		{"Discovery", beginDiscovery, checkDiscovery, endExample("discovery"), exampleGone("sensors")},
		{"WrongInput", beginWrong, checkWrong, endWrong, wrongGone},
		// The tailnet's services are listed anew once a minute.
		{"OtherClusterLeaves", nothing, checkLeft, endExample("shared"), exampleGone("shared")},
	}
	apply(t, fmt.Sprintf(prober, namespace))
	for _, w := range ways {
		w.begin(t)
	}
	for _, w := range ways {
		t.Run(w.name, w.check)
	}
	for _, w := range ways {
		w.end(t)
	}
	for _, w := range ways {
		t.Run(w.name+"LeavesNothing", w.gone)
	}
	breakerStaysClosed(t)
}

func nothing(*testing.T) {}

func beginExample(name string) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		kubectl(t, "apply", "-f", "examples/"+name+".yaml")
	}
}

func endExample(name string) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		kubectl(t, "delete", "-f", "examples/"+name+".yaml", "--wait=false")
	}
}

func exampleGone(names ...string) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		goneFrom(t, namespace, names...)
	}
}

// ourKinds are the namespaced kinds of what we make and of what people make of us.
const ourKinds = "tailscaleproxygroups,tailscaleendpoints,tailscaleservices," +
	"machinesets,machines,vipservices,discoveries,serviceattachments,proxysets," +
	"statefulsets,pods,secrets,services,configmaps,serviceaccounts,roles,rolebindings,poddisruptionbudgets,networkpolicies"

// goneFrom waits until nothing is left, in a namespace and in the tailnet, that has
// one of these names or begins with it and a dash.
func goneFrom(t *testing.T, ns string, names ...string) {
	t.Helper()
	is := func(name, prefix string) bool { return name == prefix || strings.HasPrefix(name, prefix+"-") }
	eventually(t, 4*time.Minute, "nothing left of "+strings.Join(names, ", "), func() string {
		objects := strings.Fields(kubectl(t, "get", ourKinds, "-n", ns, "-o=name", "--ignore-not-found"))
		s := tailnetState(t)
		for _, n := range names {
			for _, o := range objects {
				if _, name, _ := strings.Cut(o, "/"); is(name, n) {
					return o + " is left"
				}
			}
			if s.hosts(ns+"-"+n+"-") > 0 {
				return "devices of " + n + " are left in the tailnet"
			}
			for _, v := range s.Services {
				if is(v.Name, "svc:"+n) {
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

// checkGroup scales a group by the scale subresource.
func checkGroup(t *testing.T) {
	groupHas(t, 2)
	answered(t, "ha", "web", 2*time.Minute)
	kubectl(t, "scale", "tailscaleproxygroups", "edge", "-n", namespace, "--replicas=3")
	groupHas(t, 3)
}

// groupHas waits until the group is ready with so many devices, each with a name and
// addresses of both families.
func groupHas(t *testing.T, devices int) {
	t.Helper()
	eventually(t, 3*time.Minute, fmt.Sprintf("group of %d", devices), func() string {
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
		return fmt.Sprintf("it is not ready: %+v", s.Conditions)
	})
}

// sensor is a device that gets the tag which examples/discovery.yaml looks for.
const sensor = "attic"

func beginDiscovery(t *testing.T) {
	labCommand(t, "tailnet-client", sensor)
	beginExample("discovery")(t)
}

// checkDiscovery has a device found, used and lost.
func checkDiscovery(t *testing.T) {
	id := nodeOf(t, sensor)
	conditionOf(t, "tailscaleendpoints", "sensors", "DiscoverySuccessful", "True", "Discovered", 2*time.Minute)
	found := func(want string) (changed string) {
		eventually(t, time.Minute, "status.discoveredEndpoints "+want, func() string {
			got := jsonpath(t, "tailscaleendpoints", "sensors", "{range .status.discoveredEndpoints[*]}{.name} {.source} {.tags[*]},{end}")
			if got != want {
				return "it is " + got
			}
			changed = jsonpath(t, "tailscaleendpoints", "sensors", "{.status.lastSync}")
			return ""
		})
		return changed
	}
	// It has tag:client alone.
	before := found("")
	if err := tailnetClient(t).Devices().SetTags(t.Context(), id, []string{"tag:client", "tag:sensor"}); err != nil {
		t.Fatalf("cannot tag the device: %v", err)
	}
	during := found(sensor + " Devices tag:client tag:sensor,")
	kubectl(t, "wait", "pod/prober", "-n", namespace, "--for=condition=Ready", "--timeout=60s")
	reaches(t, namespace, "http", "sensors-"+sensor, 80, 2*time.Minute)

	if err := tailnetClient(t).Devices().Delete(t.Context(), id); err != nil {
		t.Fatalf("cannot delete the device: %v", err)
	}
	after := found("")
	if during == "" || during == before || after == during {
		t.Errorf("status.lastSync does not tell of changes: it was %q, then %q, then %q", before, during, after)
	}
	eventually(t, time.Minute, "Service of the lost device gone", func() string {
		return kubectl(t, "get", "service", "sensors-"+sensor, "-n", namespace, "--ignore-not-found")
	})
}

// nodeOf a device, once it is in the tailnet.
func nodeOf(t *testing.T, hostname string) (id string) {
	t.Helper()
	eventually(t, 30*time.Second, "device "+hostname, func() string {
		for _, d := range tailnetState(t).Devices {
			if d.Hostname == hostname {
				id = d.NodeID
				return ""
			}
		}
		return "it is not there"
	})
	return id
}
