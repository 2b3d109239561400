// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && images

package e2e

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

var proxyVersions = flag.String("proxy-versions", "", "versions of tailscaled to run proxies with, separated by commas, or all; by default the oldest and the newest tested one")

// imagesManifest has ingress and egress proxies of one image: a service with TLS, and a target. Its
// parameters are a name, the image, and the target's address.
const imagesManifest = `apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata:
  name: %[1]s
  namespace: ` + namespace + `
spec:
  selector: {matchLabels: {app: %[1]s}}
  vipService: {ports: [tcp:80, tcp:443], tags: [tag:k8s]}
  tls: {mode: Terminate, ports: [443]}
  backends:
  - {name: web, port: 80, protocol: HTTP}
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleEndpoints
metadata:
  name: %[1]s
  namespace: ` + namespace + `
  labels: {app: %[1]s}
spec:
  tailnet: quickstart
  proxy: {replicas: 2, connectionType: ingress, image: %[2]q}
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleEndpoints
metadata:
  name: %[1]s-out
  namespace: ` + namespace + `
spec:
  tailnet: quickstart
  proxy: {replicas: 1, connectionType: egress, image: %[2]q}
  endpoints:
  - {name: device, tailscaleIP: %[3]q, port: 8080, protocol: HTTP}
`

// TestImages runs proxies with images of other versions of tailscaled: a service, a certificate,
// egress, and the loss of a host under each.
func TestImages(t *testing.T) {
	demo(t)
	answered(t, "web", "web", patience)
	labCommand(t, "tailnet-client", "db")
	apply(t, fmt.Sprintf(prober, namespace, "prober"))
	kubectl(t, "wait", "pod/prober", "-n", namespace, "--for=condition=Ready", "--timeout=60s")
	setHTTPS(t, true)
	for _, image := range proxyImages(t) {
		_, version, _ := strings.Cut(image, ":v")
		t.Run(version, func(t *testing.T) { runsImage(t, image, version) })
	}
}

// proxyImages pushes the images and returns their names.
func proxyImages(t *testing.T) []string {
	t.Helper()
	args := []string{"proxy-images"}
	switch *proxyVersions {
	case "":
	case "all":
		args = append(args, strings.Fields(labCommand(t, "proxy-images", "--list"))...)
	default:
		args = append(args, strings.Split(*proxyVersions, ",")...)
	}
	var out []string
	for line := range strings.Lines(labCommand(t, args...)) {
		// The other lines are about builds.
		if name := strings.TrimSpace(line); strings.HasPrefix(name, "docker.io/") {
			out = append(out, name)
		}
	}
	if len(out) == 0 {
		t.Fatal("there are no images")
	}
	return out
}

func runsImage(t *testing.T, image, version string) {
	name := "v" + strings.ReplaceAll(version, ".", "-")
	apply(t, fmt.Sprintf(imagesManifest, name, image, addressOf(t, "db")))
	took := answered(t, name, "web", patience)
	t.Logf("the service answers after %s", took.Round(time.Second))

	u := strings.Replace(vipURL(t, name), "http:", "https:", 1)
	took = eventually(t, patience, "answer of "+u, func() string {
		body, _, err := trusted(t, u)
		if err != nil {
			return err.Error()
		}
		if !strings.HasPrefix(body, "web-") {
			return "the response is " + body
		}
		return ""
	})
	t.Logf("HTTPS answers %s later", took.Round(time.Second))
	reaches(t, namespace, "http", name+"-out-device", 8080, patience)

	// The agents report the version, and nothing warns of it.
	eventually(t, patience, "version of all machines", func() string {
		for _, m := range strings.Fields(kubectl(t, "get", "machines.tailnet.gateway.tailscale.com", "-n", namespace, "-o=name")) {
			if !strings.Contains(m, "/"+name+"-") {
				continue
			}
			got := kubectl(t, "get", m, "-n", namespace, `-o=jsonpath={.status.agent.tailscaledVersion} {.status.agent.polled} {.status.conditions[?(@.type=="TailscaledTested")].message}`)
			if got = strings.TrimSpace(got); got != version {
				return m + " reports " + got
			}
		}
		return ""
	})
	if got := jsonpath(t, "tailscaleservices", name, "{.status.conditions[?(@.type=='Advertised')].status}"); got != "True" {
		t.Errorf("Advertised is %q", got)
	}
	noReadvertisements(t, name)

	// Clients move when a host goes away.
	previous := primary(t, name)
	kubectl(t, "delete", "pod", podOf(t, previous), "-n", namespace, "--wait=false")
	eventually(t, patience, "another primary machine", func() string {
		if current := primary(t, name); current == "" || current == previous {
			return "the primary machine is " + current
		}
		return ""
	})
	answered(t, name, "web", patience)
	kubectl(t, "delete", "tailscaleservices/"+name, "tailscaleendpoints/"+name, "tailscaleendpoints/"+name+"-out", "-n", namespace, "--timeout=3m")
}

// noReadvertisements fails if an agent withdrew an accepted service for a moment.
func noReadvertisements(t *testing.T, name string) {
	t.Helper()
	got := kubectl(t, "get", "machines.tailnet.gateway.tailscale.com", "-n", namespace, "-l", meta.LabelEndpoints+"="+name,
		"-o=jsonpath={.items[*].status.agent.services[*].readvertisements}")
	if strings.TrimSpace(got) != "" {
		t.Errorf("a service was withdrawn and advertised again: %s", got)
	}
}
