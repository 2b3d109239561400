// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
)

// An agentOf plays the agent of one machine.
type agentOf struct {
	*env

	machine *v1alpha1.Machine
	id      string
}

// report reports the service as the agent sees it. The agent reports a lost primary host after a
// minute, the test at once.
func (a agentOf) report(routed v1alpha1.Routing) {
	a.Helper()
	a.must(a.refresh(a.machine))
	original := a.machine.DeepCopy()
	a.machine.Status.Agent = &v1alpha1.MachineAgentStatus{
		PrimaryRoutesSeen: routed == v1alpha1.RoutingTrue || original.Status.Agent != nil && original.Status.Agent.PrimaryRoutesSeen,
		Services: []v1alpha1.HostedService{{
			Name: serviceName, Advertised: true, Accepted: true, Routed: routed, HealthyBackends: 1, TotalBackends: 1,
		}},
	}
	a.must(shared.kube.Status().Patch(a.Context(), a.machine, client.MergeFrom(original)))
}

// remedy returns the action that the provider requests, once it does.
func (a agentOf) remedy() meta.Remedy {
	a.Helper()
	r := meta.Remedy{}
	a.eventually("the provider to request an action", func() error {
		s := &corev1.Secret{}
		if err := shared.kube.Get(a.Context(), client.ObjectKey{Namespace: a.namespace, Name: a.machine.GetName() + meta.ConfigSecretSuffix}, s); err != nil {
			return err
		}
		if s.GetAnnotations()[meta.AnnotationRemedy] == "" {
			return errors.New("the config Secret has no remedy")
		}
		return json.Unmarshal([]byte(s.GetAnnotations()[meta.AnnotationRemedy]), &r)
	})
	return r
}

// noPrimary leaves a service without a primary host (tailscale/tailscale#19666), until its only
// host advertises it again.
func noPrimary(e *env) {
	machine := e.subjectOf(machineCase().erase(), func(mg resource.ModernManaged) {
		mg.SetName("proxy-0")
		mg.SetLabels(map[string]string{meta.LabelEndpoints: "proxies"})
	}).(*v1alpha1.Machine)
	e.apply(fmt.Sprintf(`
apiVersion: %s
kind: ServiceAttachment
metadata: {name: web, namespace: %s}
spec:
  endpoints: proxies
  services: web
  serviceName: %q
  direction: %s
  ports: [{port: 80, protocol: %s}]
  healthCheck: {interval: 5s, timeout: 1s, healthyThreshold: 1, unhealthyThreshold: 3}
`, v1alpha1.SchemeGroupVersion, e.namespace, serviceName, v1alpha1.DirectionIngress, v1alpha1.AttachmentProtocolTCP))
	e.condition(machine, xpv2.TypeReady, corev1.ConditionTrue, xpv2.ReasonAvailable)
	a := agentOf{env: e, machine: machine, id: machine.Status.AtProvider.NodeID}
	mg := e.subjectOf(vipServiceCase().erase(), func(mg resource.ModernManaged) {
		mg.(*v1alpha1.VIPService).Spec.ForProvider.HostTags = []v1alpha1.Tag{"tag:k8s"}
	})
	e.condition(mg, xpv2.TypeReady, corev1.ConditionTrue, xpv2.ReasonAvailable)
	offer := tailnetsim.Offer{Service: serviceName, Ports: []uint16{80}}

	// Control has accepted the machine, and chooses a primary host later.
	e.switches(func(w *tailnetsim.Switches) {
		w.NoPrimary = tailnetsim.NoPrimary{Services: []string{serviceName}, Remedy: tailnetsim.RemedyAdvertisement}
	})
	e.must(e.sim.SetOffers(a.id, offer))
	a.report(v1alpha1.RoutingUnknown)
	e.condition(mg, meta.TypeRouted, corev1.ConditionUnknown, meta.ReasonWaitingForPrimary)
	a.report(v1alpha1.RoutingFalse)
	e.condition(mg, meta.TypeRouted, corev1.ConditionUnknown, meta.ReasonPrimaryNotReported)

	e.switches(func(w *tailnetsim.Switches) { w.NoPrimary = tailnetsim.NoPrimary{} })
	e.eventually("the machine to be primary", func() error {
		if string(e.sim.Primary(serviceName)) != a.id {
			return errors.New("it is not")
		}
		return nil
	})
	a.report(v1alpha1.RoutingTrue)
	e.condition(mg, meta.TypeRouted, corev1.ConditionTrue, meta.ReasonHostPrimary)

	// From now on the provider knows that control reports primary hosts.
	e.switches(func(w *tailnetsim.Switches) {
		w.NoPrimary = tailnetsim.NoPrimary{Services: []string{serviceName}, Remedy: tailnetsim.RemedyAdvertisement}
	})
	if p := e.sim.Primary(serviceName); p != "" {
		e.Fatalf("the switch is on, and %s is primary", p)
	}
	a.report(v1alpha1.RoutingFalse)
	e.condition(mg, meta.TypeRouted, corev1.ConditionFalse, meta.ReasonNoPrimaryHost)
	r := a.remedy()
	if r.Service != serviceName || r.Action != v1alpha1.RemedyActionAdvertise || r.Deadline.IsZero() {
		e.Fatalf("want the service to be advertised again, got %+v", r)
	}
	e.must(e.sim.SetOffers(a.id))
	e.must(e.sim.SetOffers(a.id, offer))
	if p := string(e.sim.Primary(serviceName)); p != a.id {
		e.Fatalf("want %s to be primary, got %q", a.id, p)
	}
	a.report(v1alpha1.RoutingTrue)
	e.condition(mg, meta.TypeRouted, corev1.ConditionTrue, meta.ReasonHostPrimary)
}
