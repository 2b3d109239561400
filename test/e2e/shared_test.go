// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
)

// otherCluster shares examples/shared.yaml with this cluster. A client that hosts the service
// represents it, and serves nothing else: a host in userspace networking dials other hosts from the
// service's own address, to which no response returns.
const (
	otherCluster  = "cluster-two"
	otherHost     = "two"
	sharedService = "svc:shared"
)

var otherService = registry.RecordName(sharedService, otherCluster)

// sharesService hosts a service together with another cluster, reaches only that cluster by an
// egress proxy's port, and leaves the service to it.
func sharesService(t *testing.T) {
	joinsOtherCluster(t)
	kubectl(t, "apply", "-f", "examples/shared.yaml")
	answered(t, "shared", "web", patience)
	eventually(t, patience, "status.remoteClusters", func() string {
		got := jsonpath(t, "tailscaleservices", "shared", "{.status.clusterCount} {range .status.remoteClusters[*]}{.clusterID} {.serviceName} {.online} {.health.ready}/{.health.total},{end}")
		if want := fmt.Sprintf("2 %s %s true 1/1,", otherCluster, otherService); got != want {
			return "the status is " + got
		}
		return ""
	})
	// Clients reach only this cluster by the address of the cluster's service.
	own := jsonpath(t, "vipservices", "shared", "{.status.atProvider.ownServiceName}")
	domain := strings.TrimPrefix(vipURL(t, "shared"), "http://"+strings.TrimPrefix(sharedService, "svc:"))
	answeredAt(t, "http://"+strings.TrimPrefix(own, "svc:")+domain, "web", patience)
	conditionOf(t, "tailscaleservices", "shared", "Conflict", "False", "SettingsAgree", patience)

	// The target is for Gateways, which read its port from the ProxySet: no Service has it.
	var port int
	eventually(t, patience, "egress port of the other cluster", func() string {
		e := struct {
			Status struct {
				EgressTargets []struct {
					Name, Address, Message  string
					ProxyPort, ReadyProxies int
				}
			}
		}{}
		read(t, namespace, "tailscaleendpoints", "shared", &e)
		if ts := e.Status.EgressTargets; len(ts) != 1 || ts[0].ReadyProxies != 1 || ts[0].ProxyPort == 0 {
			return fmt.Sprintf("status.egressTargets is %+v", ts)
		}
		port = e.Status.EgressTargets[0].ProxyPort
		return ""
	})
	pod := jsonpath(t, "pod", "shared-egress-0", "{.status.podIP}")
	if got := reaches(t, namespace, "http", pod, port, patience); strings.HasPrefix(got, "web-") {
		t.Errorf("%s answers at the egress port: not the other cluster", got)
	}

	kubectl(t, "delete", "-f", "examples/shared.yaml", "--timeout=4m")
	eventually(t, patience, "this cluster has withdrawn, and the other is unchanged", func() string {
		// The service stays until no request to it can be in flight.
		if o := kubectl(t, "get", "vipservices", "shared", "-n", namespace, "-o=name", "--ignore-not-found"); o != "" {
			return o + " is left"
		}
		var remaining []string
		for _, v := range tailnetState(t).Services {
			if strings.HasPrefix(v.Name, sharedService) {
				remaining = append(remaining, v.Name)
			}
		}
		slices.Sort(remaining)
		if want := []string{sharedService, otherService}; !slices.Equal(remaining, want) {
			return fmt.Sprintf("the tailnet has %v, not %v", remaining, want)
		}
		return ""
	})
	labCommand(t, "tailscale", "--as="+otherHost, "serve", "clear", otherService)
	for _, name := range []string{otherService, sharedService} {
		if err := tailnetClient(t).VIPServices().Delete(t.Context(), name); err != nil {
			t.Fatalf("cannot delete %s: %v", name, err)
		}
	}
	goneFrom(t, namespace, "shared")
}

// joinsOtherCluster writes the other cluster's record, and has it host its own service.
func joinsOtherCluster(t *testing.T) {
	t.Helper()
	labCommand(t, "tailnet-client", otherHost)
	id := tailnetOne.node(t, otherHost)
	at := time.Now().UTC()
	record, err := json.Marshal(registry.Record{
		Service:  sharedService,
		Cluster:  otherCluster,
		Operator: "shop/shared",
		Tailnet:  "home",
		Domain:   fromLab(t, "TAILNET_DOMAIN"),
		Health:   &registry.Health{Ready: 1, Total: 1, Score: 100},
		Nodes:    []string{id},
		Ports:    []string{"tcp:80"},
		Tags:     []string{"tag:k8s"},
		Updated:  at,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := tailnetClient(t).VIPServices().CreateOrUpdate(t.Context(), tailscale.VIPService{
		Name:  otherService,
		Ports: []string{"tcp:80"},
		Tags:  []string{"tag:k8s"},
		Annotations: map[string]string{
			meta.AnnotationSchemaVersion: meta.SchemaVersion,
			meta.AnnotationSharedService: sharedService,
			meta.AnnotationRecord:        string(record),
		},
	}); err != nil {
		t.Fatalf("cannot write the other cluster's record: %v", err)
	}
	tailnetOne.hostedBy(t, otherHost, otherService, "80", behindClients)
}
