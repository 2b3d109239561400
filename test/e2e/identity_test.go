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
	// identityExample has a Gateway with a listener that is told by headers who asks, and
	// a route for what has tag:ci.
	identityExample = "examples/gateway-identity.yaml"
	who             = "who"

	// person is a device of the tailnet's owner, and robot a tagged one.
	person = "ann"
	robot  = "robot"
)

// toldRoute leads some paths of the Gateway to the prober, whoever asks, which says what
// it is told.
const toldRoute = `apiVersion: v1
kind: Service
metadata: {name: told, namespace: quickstart}
spec:
  selector: {app: prober}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: told, namespace: quickstart}
spec:
  parentRefs: [{name: ` + who + `}]
  rules:
  - matches:
    - path: {type: Exact, value: /header}
    - path: {type: Exact, value: /hostname}
    backendRefs: [{name: told, port: 80}]
`

// knowsWhoAsks has routes and backends hear which device of the tailnet asks, from
// nobody but the proxies.
func knowsWhoAsks(t *testing.T) {
	labCommand(t, "tailnet-client", "--owner", person)
	labCommand(t, "tailnet-client", robot)
	if err := tailnetClient(t).Devices().SetTags(t.Context(), tailnetOne.node(t, robot), []string{"tag:client", "tag:ci"}); err != nil {
		t.Fatalf("cannot tag the device: %v", err)
	}
	kubectl(t, "apply", "-f", identityExample)
	apply(t, toldRoute)
	eventually(t, patience, "the route of tag:ci", func() string {
		if said, err := asks(t, robot, ""); err != nil || !strings.HasPrefix(said, "web-") {
			return "answered to " + robot + " by " + said
		}
		return ""
	})
	for _, from := range []string{person, "client"} {
		if said, err := asks(t, from, ""); err == nil || !strings.Contains(said, "404") {
			t.Errorf("the route of tag:ci is answered to %s by %s", from, said)
		}
	}
	domain := tailnetOne.env(t, "TAILNET_DOMAIN")
	for from, told := range map[string]map[string]string{
		person:   {identity.Login: tailnetOne.owner(), identity.Name: "Owner", identity.DeviceName: person + "." + domain, identity.DeviceTags: ""},
		robot:    {identity.Login: "", identity.DeviceName: robot + "." + domain, identity.DeviceTags: "tag:ci,tag:client"},
		"client": {identity.Login: "", identity.DeviceName: "client." + domain, identity.DeviceTags: "tag:client"},
	} {
		for header, want := range told {
			tellsBackend(t, from, header, want)
		}
	}
	t.Run("NobodyElse", believesNobodyElse)
	t.Run("Closed", closesToldListener)
	t.Run("LeavesNothing", func(t *testing.T) {
		kubectl(t, "delete", "httproute,service", "told", "-n", namespace)
		kubectl(t, "delete", "-f", identityExample, "--timeout=3m")
		goneFrom(t, namespace, who)
	})
}

// tellsBackend checks what the backend is told when a device asks, whatever it claims.
func tellsBackend(t *testing.T, from, header, want string, claims ...string) {
	t.Helper()
	eventually(t, patience, header+" of "+from, func() string {
		said, err := asks(t, from, "header?key="+header, claims...)
		if err != nil || said != want {
			return fmt.Sprintf("the backend is told %q, not %q", said, want)
		}
		return ""
	})
}

// believesNobodyElse has clients claim what only proxies may say, in the tailnet and
// beside it.
func believesNobodyElse(t *testing.T) {
	claims := []string{identity.Login + ": " + tailnetOne.owner(), identity.DeviceTags + ": tag:ci"}
	if said, err := asks(t, "client", "", claims...); err == nil || !strings.Contains(said, "404") {
		t.Errorf("who claims tag:ci is answered by %s", said)
	}
	tellsBackend(t, "client", identity.DeviceTags, "tag:client", claims...)
	tellsBackend(t, "client", identity.Login, "", claims...)
	tellsBackend(t, "client", identity.Login, "", "TAILSCALE-user-login: "+tailnetOne.owner())
	if said, err := asks(t, "client", "", "tailscale_device_tags: tag:ci"); err == nil || strings.Contains(said, "web-") {
		t.Errorf("who claims tag:ci with underscores is answered by %s", said)
	}

	// The Gateway's other listener.
	address := addressOfGateway(t, who)
	beside := func(path string, claims ...string) (string, error) {
		return labOutput(t, append([]string{"curl", "--timeout=5s", "http://" + address + "/" + path}, headers(claims)...)...)
	}
	if said, err := beside("", claims...); err == nil || !strings.Contains(said, "404") {
		t.Errorf("who claims tag:ci beside the tailnet is answered by %s", said)
	}
	for _, h := range []string{identity.Login, identity.DeviceTags} {
		if said, err := beside("header?key="+h, claims...); err != nil || said != "" {
			t.Errorf("beside the tailnet the backend is told %s: %s, %v", h, said, err)
		}
	}
}

// closesToldListener shows that pods reach the listener that believes what it is told
// only where no policy keeps them away, and the proxies as ever.
func closesToldListener(t *testing.T) {
	const policy = "who-tailnet"
	service := strings.Fields(kubectl(t, "get", "services", "-n", extensionNamespace, "-o=jsonpath={.items[*].metadata.name}",
		"-l", "gateway.envoyproxy.io/owning-gateway-namespace="+namespace+",gateway.envoyproxy.io/owning-gateway-name="+who))
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
	tellsBackend(t, "client", identity.DeviceTags, "tag:client")

	// It was the policy that stopped it.
	kubectl(t, "delete", "networkpolicies", policy, "-n", extensionNamespace)
	reached(8081, true)
	kubectl(t, "apply", "-f", identityExample)
	reached(8081, false)
}

// asks the Gateway as a device of the tailnet, with headers of its own.
func asks(t *testing.T, from, path string, claims ...string) (string, error) {
	t.Helper()
	return labOutput(t, append([]string{"tailnet-curl", "--as=" + from, "--timeout=10s", tailnetOne.url(t, who) + path}, headers(claims)...)...)
}

// headers as arguments of the lab.
func headers(claims []string) []string {
	out := make([]string, len(claims))
	for i, c := range claims {
		out[i] = "--header=" + c
	}
	return out
}
