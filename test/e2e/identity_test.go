// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && tailnets

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tailscale-gateway/tailscale-gateway/internal/identity"
)

const (
	// identityExample has a Gateway with a listener that receives the client's identity in headers,
	// and a route for devices with tag:ci.
	identityExample = "examples/gateway-identity.yaml"
	identityGateway = "who"

	// person is a device of the tailnet's owner, and robot a tagged one.
	person = "ann"
	robot  = "robot"
)

// identityRoute leads some paths of the Gateway to the prober, for any client. The prober returns
// the request's headers.
const identityRoute = `apiVersion: v1
kind: Service
metadata: {name: identity-check, namespace: quickstart}
spec:
  selector: {app: prober}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: identity-check, namespace: quickstart}
spec:
  parentRefs: [{name: ` + identityGateway + `}]
  rules:
  - matches:
    - path: {type: Exact, value: /header}
    - path: {type: Exact, value: /hostname}
    backendRefs: [{name: identity-check, port: 80}]
`

// passesIdentity checks that routes and backends get the identity of the device that sends a
// request, from the proxies only.
func passesIdentity(t *testing.T) {
	labCommand(t, "tailnet-client", "--owner", person)
	labCommand(t, "tailnet-client", robot)
	if err := tailnetClient(t).Devices().SetTags(t.Context(), tailnetOne.node(t, robot), []string{"tag:client", "tag:ci"}); err != nil {
		t.Fatalf("cannot tag the device: %v", err)
	}
	kubectl(t, "apply", "-f", identityExample)
	apply(t, identityRoute)
	eventually(t, patience, "the route of tag:ci", func() string {
		if response, err := request(t, robot, ""); err != nil || !strings.HasPrefix(response, "web-") {
			return "returned to " + robot + ": " + response
		}
		return ""
	})
	for _, device := range []string{person, "client"} {
		if response, err := request(t, device, ""); err == nil || !strings.Contains(response, "404") {
			t.Errorf("the route of tag:ci answers %s with %s", device, response)
		}
	}
	domain := tailnetOne.env(t, "TAILNET_DOMAIN")
	for device, expected := range map[string]map[string]string{
		person:   {identity.Login: tailnetOne.owner(), identity.Name: "Owner", identity.DeviceName: person + "." + domain, identity.DeviceTags: ""},
		robot:    {identity.Login: "", identity.DeviceName: robot + "." + domain, identity.DeviceTags: "tag:ci,tag:client"},
		"client": {identity.Login: "", identity.DeviceName: "client." + domain, identity.DeviceTags: "tag:client"},
	} {
		for header, want := range expected {
			passesHeader(t, device, header, want)
		}
	}
	t.Run("RejectsForgedHeaders", rejectsForgedHeaders)
	t.Run("ClosesIdentityListener", closesIdentityListener)
	t.Run("LeavesNothing", func(t *testing.T) {
		kubectl(t, "delete", "httproute,service", "identity-check", "-n", namespace)
		kubectl(t, "delete", "-f", identityExample, "--timeout=3m")
		goneFrom(t, namespace, identityGateway)
	})
}

// passesHeader checks the header that the backend gets for a request of a device with forged
// claims.
func passesHeader(t *testing.T, device, header, want string, claims ...string) {
	t.Helper()
	eventually(t, patience, header+" of "+device, func() string {
		response, err := request(t, device, "header?key="+header, claims...)
		if err != nil || response != want {
			return fmt.Sprintf("the backend got %q, want %q", response, want)
		}
		return ""
	})
}

// rejectsForgedHeaders sends requests with identity headers from the tailnet and from the cluster's
// network. The backend gets none of them.
func rejectsForgedHeaders(t *testing.T) {
	claims := []string{identity.Login + ": " + tailnetOne.owner(), identity.DeviceTags + ": tag:ci"}
	if response, err := request(t, "client", "", claims...); err == nil || !strings.Contains(response, "404") {
		t.Errorf("a client that claims tag:ci gets %s", response)
	}
	passesHeader(t, "client", identity.DeviceTags, "tag:client", claims...)
	passesHeader(t, "client", identity.Login, "", claims...)
	passesHeader(t, "client", identity.Login, "", "TAILSCALE-user-login: "+tailnetOne.owner())
	if response, err := request(t, "client", "", "tailscale_device_tags: tag:ci"); err == nil || strings.Contains(response, "web-") {
		t.Errorf("a client that claims tag:ci with underscores gets %s", response)
	}

	// The Gateway's other listener.
	address := addressOfGateway(t, identityGateway)
	direct := func(path string, claims ...string) (string, error) {
		return labOutput(t, append([]string{"curl", "--timeout=5s", "http://" + address + "/" + path}, headers(claims)...)...)
	}
	if response, err := direct("", claims...); err == nil || !strings.Contains(response, "404") {
		t.Errorf("a client that claims tag:ci outside the tailnet gets %s", response)
	}
	for _, h := range []string{identity.Login, identity.DeviceTags} {
		if response, err := direct("header?key="+h, claims...); err != nil || response != "" {
			t.Errorf("outside the tailnet the backend got %s: %s, %v", h, response, err)
		}
	}
}

// closesIdentityListener checks that a NetworkPolicy keeps pods away from the listener that trusts
// identity headers, and that the proxies still reach it.
func closesIdentityListener(t *testing.T) {
	const policy = "who-tailnet"
	service := strings.Fields(kubectl(t, "get", "services", "-n", extensionNamespace, "-o=jsonpath={.items[*].metadata.name}",
		"-l", "gateway.envoyproxy.io/owning-gateway-namespace="+namespace+",gateway.envoyproxy.io/owning-gateway-name="+identityGateway))
	if len(service) != 1 {
		t.Fatalf("the Gateway has the Services %v", service)
	}
	host := service[0] + "." + extensionNamespace
	reached := func(port int, want bool) {
		t.Helper()
		eventually(t, patience, fmt.Sprintf("port %d reached is %t", port, want), func() string {
			if _, err := dial(t, namespace, "http", host, port); (err == nil) != want {
				return fmt.Sprintf("the prober gets %v", err)
			}
			return ""
		})
	}
	reached(8081, false)
	reached(80, true)
	passesHeader(t, "client", identity.DeviceTags, "tag:client")

	// The policy has stopped the connection.
	kubectl(t, "delete", "networkpolicies", policy, "-n", extensionNamespace)
	reached(8081, true)
	kubectl(t, "apply", "-f", identityExample)
	reached(8081, false)
}

// request sends a request to the Gateway from a device of the tailnet, with additional headers.
func request(t *testing.T, device, path string, claims ...string) (string, error) {
	t.Helper()
	return labOutput(t, append([]string{"tailnet-curl", "--as=" + device, "--timeout=10s", tailnetOne.url(t, identityGateway) + path}, headers(claims)...)...)
}

// headers returns headers as arguments of the lab.
func headers(claims []string) []string {
	out := make([]string, len(claims))
	for i, c := range claims {
		out[i] = "--header=" + c
	}
	return out
}
