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
	// devicesExample has the Gateway of the demo learn the client's identity, at a listener that
	// the tailnet reaches by svc:devices.
	devicesExample = "examples/gateway-proxy-protocol.yaml"
	devices        = "devices"

	// devicePolicy admits devices of a user and build machines, and pathPolicy denies /admin.
	devicePolicy = "examples/route-policy-devices.yaml"
	pathPolicy   = "examples/route-policy.yaml"

	// laptop is a device of the tailnet's owner, and build a tagged one.
	laptop = "laptop"
	build  = "build-1"
)

// appliesDevicePolicies checks policies that decide by path, and by the device that sends the
// request.
func appliesDevicePolicies(t *testing.T) {
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Answers", answersDevices},
		{"DeniesByDevice", deniesByDevice},
		{"TakesEffect", policiesTakeEffect},
		{"AppliesActions", policiesAct},
		{"AppliesRouteRules", policiesNameRules},
		{"LeavesNothing", leavesNoPolicy},
	} {
		if !t.Run(step.name, step.run) {
			return
		}
	}
}

// owner returns the login of the owner of a tailnet of the lab.
func (n tailnet) owner() string { return "owner@" + string(n) + ".example.com" }

// answersDevices sends a request from each device before there is a policy.
func answersDevices(t *testing.T) {
	labCommand(t, "tailnet-client", "--owner", laptop)
	labCommand(t, "tailnet-client", build)
	if err := tailnetClient(t).Devices().SetTags(t.Context(), tailnetOne.node(t, build), []string{"tag:client", "tag:ci"}); err != nil {
		t.Fatalf("cannot tag the device: %v", err)
	}
	kubectl(t, "apply", "--server-side", "-f", devicesExample)
	for _, device := range []string{"client", laptop, build} {
		eventually(t, patience, "response to "+device, func() string { return served(t, device, "staff") })
	}
}

// deniesByDevice checks that the policy denies other devices, and follows changes of devices in the
// tailnet.
func deniesByDevice(t *testing.T) {
	apply(t, strings.ReplaceAll(readFile(t, devicePolicy), "amelie@example.com", tailnetOne.owner()))
	took := eventually(t, patience, "others are denied", func() string { return denied(t, "client", "staff") })
	t.Logf("others are denied after %s", took.Round(100*time.Millisecond))
	for _, device := range []string{laptop, build} {
		took := eventually(t, patience, device+" is admitted", func() string { return served(t, device, "staff") })
		t.Logf("%s is admitted after %s more", device, took.Round(100*time.Millisecond))
	}
	if missing := served(t, "client", "other"); missing != "" {
		t.Errorf("a path without a rule: %s", missing)
	}
	eventually(t, patience, "status of the policy", func() string {
		const path = `{.status.ancestors[*].conditions[?(@.type=="Accepted")].status} {range .status.rules[*]}{.name} {.active},{end} {.status.rules[1].devices}`
		if got := jsonpath(t, "tailscaleroutepolicies", "staff", path); got != "True people true,builds true,closed true, 1" {
			return "the status is " + got
		}
		return ""
	})

	// A device without its tag is no build machine.
	if err := tailnetClient(t).Devices().SetTags(t.Context(), tailnetOne.node(t, build), []string{"tag:client"}); err != nil {
		t.Fatalf("cannot tag the device: %v", err)
	}
	took = eventually(t, patience, build+" is denied", func() string { return denied(t, build, "staff") })
	t.Logf("%s is denied %s after it lost its tag", build, took.Round(100*time.Millisecond))
	if missing := served(t, laptop, "staff"); missing != "" {
		t.Errorf("the owner's device: %s", missing)
	}
}

// policiesTakeEffect checks how soon policies take effect after their creation, an edit and their
// deletion.
func policiesTakeEffect(t *testing.T) {
	soonIs := func(description string, checks ...func() string) {
		t.Helper()
		took := eventually(t, patience, description, func() string {
			for _, c := range checks {
				if missing := c(); missing != "" {
					return missing
				}
			}
			return ""
		})
		t.Logf("%s after %s", description, took.Round(100*time.Millisecond))
	}
	// A listener without identities admits no operator.
	address := addressOfGateway(t, "web")
	asUnknown := func(path string) string {
		response, err := labCurl(t, "cluster", "http://"+address+path, "web.example.com")
		if err != nil {
			return response
		}
		return "the response is " + response
	}
	forbidden := func(path string) func() string {
		return func() string {
			if response := asUnknown(path); !strings.Contains(response, "403") {
				return path + " is " + response
			}
			return ""
		}
	}
	allowed := func(path string) func() string {
		return func() string {
			if response := asUnknown(path); !strings.HasPrefix(response, "the response is web-") {
				return path + " is " + response
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
		`--patch=[{"op":"replace","path":"/spec/rules/2/matches/0/path/value","value":"/shut"}]`)
	soonIs("its edit counts", forbidden("/shut"), allowed("/admin"))
	kubectl(t, "delete", "-f", pathPolicy)
	soonIs("it denies nothing any more", allowed("/shut"))
}

// leavesNoPolicy checks that the route answers all requests again, and restores the demo's Gateway.
func leavesNoPolicy(t *testing.T) {
	kubectl(t, "delete", "-f", devicePolicy)
	took := eventually(t, patience, "all are admitted", func() string { return served(t, "client", "staff") })
	t.Logf("all are admitted %s after the policy was deleted", took.Round(100*time.Millisecond))
	eventually(t, patience, "no discovery of devices is left", func() string {
		return kubectl(t, "get", "discoveries", "-n", namespace, "-l", ir.RoutePolicyLabel, "-o=name")
	})
	kubectl(t, "delete", "tailscalegateways", devices, "-n", namespace, "--timeout=3m")
	kubectl(t, "delete", "clienttrafficpolicies", "tailnet", "-n", namespace)
	kubectl(t, "apply", "--server-side", "-f", "examples/gateway.yaml")
	goneFrom(t, namespace, devices)
}

// served describes a response to a device at a path of the route that is not the quickstart's page.
func served(t *testing.T, device, path string) string {
	t.Helper()
	if response, err := asDevice(t, device, path); err != nil || !strings.HasPrefix(response, "web-") {
		return fmt.Sprintf("/%s answers %s with %s", path, device, response)
	}
	return ""
}

// denied describes a response to a device that is not a denial.
func denied(t *testing.T, device, path string) string {
	t.Helper()
	if response, err := asDevice(t, device, path); err == nil || !strings.Contains(response, "403") {
		return fmt.Sprintf("/%s answers %s with %s", path, device, response)
	}
	return ""
}

func asDevice(t *testing.T, device, path string) (string, error) {
	t.Helper()
	return labOutput(t, "tailnet-curl", "--as="+device, "--timeout=10s", "--host=web.example.com", tailnetOne.url(t, devices)+path)
}
