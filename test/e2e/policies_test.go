// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && tailnets

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	// devicesExample has the Gateway that the demo made learn which device asks, at a
	// listener that the tailnet reaches by svc:devices.
	devicesExample = "examples/gateway-proxy-protocol.yaml"
	devices        = "devices"

	// devicePolicy lets in devices of a user and build machines, and pathPolicy denies
	// /admin.
	devicePolicy = "examples/route-policy-devices.yaml"
	pathPolicy   = "examples/route-policy.yaml"

	// laptop is a device of the tailnet's owner, and build a tagged one.
	laptop = "laptop"
	build  = "build-1"
)

// judgesDevices has policies decide by path, and by which device of the tailnet asks.
func judgesDevices(t *testing.T) {
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Answers", answersDevices},
		{"DeniesByDevice", deniesByDevice},
		{"TakesEffect", policiesTakeEffect},
		{"Acts", policiesAct},
		{"NamesRules", policiesNameRules},
		{"LeavesNothing", leavesNoPolicy},
	} {
		if !t.Run(step.name, step.run) {
			return
		}
	}
}

// owner of a tailnet of the lab, by the login.
func (n tailnet) owner() string { return "owner@" + string(n) + ".example.com" }

// answersDevices asks as each device, before there is any policy.
func answersDevices(t *testing.T) {
	labCommand(t, "tailnet-client", "--owner", laptop)
	labCommand(t, "tailnet-client", build)
	if err := tailnetClient(t).Devices().SetTags(t.Context(), tailnetOne.node(t, build), []string{"tag:client", "tag:ci"}); err != nil {
		t.Fatalf("cannot tag the device: %v", err)
	}
	kubectl(t, "apply", "--server-side", "-f", devicesExample)
	for _, from := range []string{"client", laptop, build} {
		eventually(t, patience, "answer to "+from, func() string { return served(t, from, "staff") })
	}
}

// deniesByDevice who is not named, and follows what the tailnet says of devices.
func deniesByDevice(t *testing.T) {
	apply(t, strings.ReplaceAll(readFile(t, devicePolicy), "amelie@example.com", tailnetOne.owner()))
	took := eventually(t, patience, "others are denied", func() string { return denied(t, "client", "staff") })
	t.Logf("others are denied after %s", took.Round(100*time.Millisecond))
	for _, from := range []string{laptop, build} {
		took := eventually(t, patience, from+" is let in", func() string { return served(t, from, "staff") })
		t.Logf("%s is let in after %s more", from, took.Round(100*time.Millisecond))
	}
	if missing := served(t, "client", "other"); missing != "" {
		t.Errorf("what no rule is about: %s", missing)
	}
	eventually(t, patience, "status of the policy", func() string {
		const path = `{.status.ancestors[*].conditions[?(@.type=="Accepted")].status} {range .status.rules[*]}{.name} {.active},{end} {.status.rules[1].devices}`
		if got := jsonpath(t, "tailscaleroutepolicies", "staff", path); got != "True people true,builds true,closed true, 1" {
			return "it says " + got
		}
		return ""
	})

	// What is no build machine any more is denied.
	if err := tailnetClient(t).Devices().SetTags(t.Context(), tailnetOne.node(t, build), []string{"tag:client"}); err != nil {
		t.Fatalf("cannot tag the device: %v", err)
	}
	took = eventually(t, patience, build+" is denied", func() string { return denied(t, build, "staff") })
	t.Logf("%s is denied %s after it lost its tag", build, took.Round(100*time.Millisecond))
	if missing := served(t, laptop, "staff"); missing != "" {
		t.Errorf("the owner's device: %s", missing)
	}
}

// policiesTakeEffect soon: when they come, when they are edited, and when they go.
func policiesTakeEffect(t *testing.T) {
	soonIs := func(what string, checks ...func() string) {
		t.Helper()
		took := eventually(t, patience, what, func() string {
			for _, c := range checks {
				if missing := c(); missing != "" {
					return missing
				}
			}
			return ""
		})
		t.Logf("%s after %s", what, took.Round(100*time.Millisecond))
	}
	// Where nobody tells who asks, nobody is an operator.
	address := addressOfGateway(t, "web")
	stranger := func(path string) string {
		said, err := labCurl(t, "cluster", "http://"+address+path, "web.example.com")
		if err != nil {
			return said
		}
		return "answered by " + said
	}
	forbidden := func(path string) func() string {
		return func() string {
			if said := stranger(path); !strings.Contains(said, "403") {
				return path + " is " + said
			}
			return ""
		}
	}
	allowed := func(path string) func() string {
		return func() string {
			if said := stranger(path); !strings.HasPrefix(said, "answered by web-") {
				return path + " is " + said
			}
			return ""
		}
	}
	soonIs("the route answers", allowed("/admin"))
	kubectl(t, "apply", "-f", pathPolicy)
	soonIs("a policy denies", forbidden("/admin"))
	if missing := served(t, laptop, "admin"); missing != "" {
		t.Errorf("an operator of the tailnet: %s", missing)
	}
	kubectl(t, "patch", "tailscaleroutepolicies", "web", "-n", namespace, "--type=json",
		`--patch=[{"op":"replace","path":"/spec/rules/1/matches/0/path/value","value":"/shut"}]`)
	soonIs("its edit counts", forbidden("/shut"), allowed("/admin"))
	kubectl(t, "delete", "-f", pathPolicy)
	soonIs("it denies nothing any more", allowed("/shut"))
}

// leavesNoPolicy has all of the route answer again, and leaves the Gateway as the demo
// made it.
func leavesNoPolicy(t *testing.T) {
	kubectl(t, "delete", "-f", devicePolicy)
	took := eventually(t, patience, "all are let in", func() string { return served(t, "client", "staff") })
	t.Logf("all are let in %s after the policy went", took.Round(100*time.Millisecond))
	eventually(t, patience, "nothing looks for devices any more", func() string {
		return kubectl(t, "get", "discoveries", "-n", namespace, "-l", ir.RoutePolicyLabel, "-o=name")
	})
	kubectl(t, "delete", "tailscalegateways", devices, "-n", namespace, "--timeout=3m")
	kubectl(t, "delete", "clienttrafficpolicies", "tailnet", "-n", namespace)
	kubectl(t, "apply", "--server-side", "-f", "examples/gateway.yaml")
	goneFrom(t, namespace, devices)
}

// served says what else than the quickstart's page answers a device at a path of the
// route.
func served(t *testing.T, from, path string) string {
	t.Helper()
	if said, err := asDevice(t, from, path); err != nil || !strings.HasPrefix(said, "web-") {
		return fmt.Sprintf("/%s is answered to %s by %s", path, from, said)
	}
	return ""
}

// denied says what answers a device instead of a denial.
func denied(t *testing.T, from, path string) string {
	t.Helper()
	if said, err := asDevice(t, from, path); err == nil || !strings.Contains(said, "403") {
		return fmt.Sprintf("/%s is answered to %s by %s", path, from, said)
	}
	return ""
}

func asDevice(t *testing.T, from, path string) (string, error) {
	t.Helper()
	return labOutput(t, "tailnet-curl", "--as="+from, "--timeout=10s", "--host=web.example.com", tailnetOne.url(t, devices)+path)
}
