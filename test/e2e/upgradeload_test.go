// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && tailnets && upgrade

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/test/e2e/internal/upgrade"
	"github.com/tailscale-gateway/tailscale-gateway/test/load"
)

const (
	// loaded is the name of the objects of the load, and of the device that its egress reaches.
	loaded = "loaded"

	// loadedService is hosted by two ingress proxies: examples/shared.yaml with more replicas.
	loadedService = "shared"

	loadedHost = "loaded.example.com"
)

// loadManifest has two egress proxies to a device, and a route to them.
const loadManifest = `apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleEndpoints
metadata: {name: loaded, namespace: quickstart}
spec:
  tailnet: quickstart
  proxy: {replicas: 2, connectionType: egress}
  endpoints: [{name: device, tailscaleFQDN: %[1]q, port: 8080, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: loaded, namespace: quickstart}
spec:
  parentRefs: [{name: web}]
  hostnames: [` + loadedHost + `]
  rules:
  - backendRefs: [{group: gateway.tailscale.com, kind: TailscaleEndpoints, name: loaded, port: 8080}]
`

// preparesLoad creates what the loads reach, with two replicas of each proxy.
func (u *upgraded) preparesLoad(t *testing.T) {
	labCommand(t, "tailnet-client", loaded)
	apply(t, fmt.Sprintf(prober, namespace, "prober"))
	kubectl(t, "wait", "pod/prober", "-n", namespace, "--for=condition=Ready", "--timeout=60s")
	apply(t, fmt.Sprintf(loadManifest, loaded+"."+domain(t)))
	kubectl(t, "patch", "tailscaleendpoints", loadedService, "-n", namespace, "--type=merge", `--patch={"spec":{"proxy":{"replicas":2}}}`)
	eventually(t, patience, "two hosts of "+loadedService, func() string {
		if got := jsonpath(t, "tailscaleservices", loadedService, "{.status.vipServiceStatus.healthyBackendCount}"); got != "2" {
			return "hosts: " + got
		}
		return ""
	})
	conditionOf(t, "tailscaleendpoints", loaded, "EgressReady", "True", "AllTargetsReady", patience)
	reaches(t, namespace, "http", loaded+"-device", 8080, patience)
	u.answered(t, tailnetOne.url(t, loadedService), "web")
	address := addressOfGateway(t, "web")
	routed(t, "cluster", address, "web.example.com", patience)
	eventually(t, patience, loadedHost, func() string {
		if response, err := labCurl(t, "cluster", "http://"+address+"/hostname", loadedHost); err != nil {
			return err.Error() + ": " + response
		}
		return ""
	})
}

// A loadPath is a way of requests, with the arguments of `lab load` for it.
type loadPath struct {
	upgrade.Path

	args []string

	// proxies are selectors of the pods that the requests pass: a namespace, and labels.
	proxies [][2]string

	// vip is for requests to the addresses of loadedService.
	vip bool
}

// Each way has requests on new connections, and some connections that stay open.
var (
	newConnections  = []string{"--new-connections", "--workers=50", "--rate=10"}
	keptConnections = []string{"--workers=2", "--rate=4"}
)

// loadPaths returns all ways.
func loadPaths(t *testing.T) []loadPath {
	t.Helper()
	var (
		ingress = [2]string{namespace, meta.LabelEndpoints + "=" + loadedService + "," + meta.LabelDirection + "=ingress"}
		egress  = [2]string{namespace, meta.LabelEndpoints + "=" + loaded}
		envoys  = [2]string{extensionNamespace, "gateway.envoyproxy.io/owning-gateway-namespace=" + namespace + ",gateway.envoyproxy.io/owning-gateway-name=web"}
		gateway = "http://" + addressOfGateway(t, "web") + "/"
		service = loaded + "-device"
		pod     = jsonpath(t, "pod", "prober", "{.status.podIP}")
	)
	var out []loadPath
	add := func(p loadPath, fresh, keepAlive []string) {
		n, k := p, p
		n.args = slices.Concat(fresh, newConnections)
		k.Name, k.KeepAlive, k.Workers = p.Name+", kept", true, 2
		k.args = slices.Concat(keepAlive, keptConnections)
		out = append(out, n, k)
	}
	// The client is in the tailnet.
	add(loadPath{Path: upgrade.Path{Name: "vip"}, proxies: [][2]string{ingress}, vip: true},
		[]string{"--from=tailnet", tailnetOne.url(t, loadedService)}, []string{"--from=tailnet", tailnetOne.url(t, loadedService)})
	// The prober makes a connection from its pod for each request. Kept ones are those of the node.
	add(loadPath{Path: upgrade.Path{Name: "egress"}, proxies: [][2]string{egress}},
		[]string{"--from=cluster", `--expect="responses"`, fmt.Sprintf("http://%s:8080/dial?host=%s&port=8080&protocol=http&request=hostname&tries=1", pod, service)},
		[]string{"--from=cluster", fmt.Sprintf("http://%s.%s.svc.cluster.local:8080/hostname", service, namespace)})
	add(loadPath{Path: upgrade.Path{Name: "envoy"}, proxies: [][2]string{envoys}},
		[]string{"--from=cluster", "--host=web.example.com", gateway}, []string{"--from=cluster", "--host=web.example.com", gateway})
	add(loadPath{Path: upgrade.Path{Name: "envoy to egress"}, proxies: [][2]string{envoys, egress}},
		[]string{"--from=cluster", "--host=" + loadedHost, gateway + "hostname"}, []string{"--from=cluster", "--host=" + loadedHost, gateway + "hostname"})
	return out
}

// phase runs a step under load on all ways, and returns their results, also if the step failed.
func phase(t *testing.T, name string, fn func(*testing.T)) []upgrade.Row {
	t.Helper()
	paths := loadPaths(t)
	oldPods := make([]map[string]bool, len(paths))
	loads := make([]*load.Process, len(paths))
	watching, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	moves, api := &load.Events{}, tailnetOne.env(t, "TAILNET_API")
	wg.Go(func() {
		moves.WatchMoves(watching, func(ctx context.Context) (string, error) {
			b, err := rawState(ctx, api)
			if err != nil {
				return "", err
			}
			s := state{}
			if err := json.Unmarshal(b, &s); err != nil {
				return "", err
			}
			return s.primary(loadedService)
		})
	})
	for i, p := range paths {
		oldPods[i] = proxyPods(t, p.proxies)
		l, err := load.StartProcess(t.Context(), lab, append([]string{"--for=2h"}, p.args...)...)
		if err != nil {
			t.Fatal(err)
		}
		loads[i] = l
	}
	// Connections are open before the first change.
	after(t, 15*time.Second)
	t.Run("UnderLoad", fn)
	// Those that move back may be lost, too.
	after(t, 30*time.Second)

	rows := make([]upgrade.Row, len(paths))
	for i, p := range paths {
		r := ended(t, loads[i])
		replaced := 0
		for uid := range oldPods[i] {
			if !proxyPods(t, p.proxies)[uid] {
				replaced++
			}
		}
		m := moves
		if !p.vip {
			m = nil
		}
		rows[i] = p.Judge(name, r, m, replaced)
		t.Logf("%s: %d proxies were replaced", p.Name, replaced)
	}
	stop()
	wg.Wait()
	if err := moves.Err(); err != nil {
		t.Errorf("cannot watch the addresses of %s: %v", loadedService, err)
	}
	t.Logf("%s: control moved the addresses of %s %d times\n%s", name, loadedService, moves.Count(), upgrade.Table(rows))
	return rows
}

// after waits for some time of load.
func after(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
		t.Fatal("cancelled")
	}
}

// proxyPods returns the UIDs of pods.
func proxyPods(t *testing.T, selectors [][2]string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, s := range selectors {
		uids := strings.Fields(kubectl(t, "get", "pods", "-n", s[0], "-l="+s[1], "-o=jsonpath={.items[*].metadata.uid}"))
		if len(uids) == 0 {
			t.Fatalf("no pods %s in %s", s[1], s[0])
		}
		for _, uid := range uids {
			out[uid] = true
		}
	}
	return out
}
