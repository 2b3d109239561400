// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	tsclient "tailscale.com/client/tailscale/v2"
	"tailscale.com/types/key"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
)

// subjectOf creates an object of a kind, after a change, and returns it.
func (e *env) subjectOf(k anyCase, modify func(resource.ModernManaged)) resource.ModernManaged {
	e.Helper()
	if k.Seed != nil {
		k.Seed(e)
	}
	mg := e.subject(k)
	if modify != nil {
		modify(mg)
	}
	e.create(mg)
	return mg
}

// condition waits until a condition has a status and a reason.
func (e *env) condition(mg resource.ModernManaged, t xpv2.ConditionType, status corev1.ConditionStatus, reason xpv2.ConditionReason) {
	e.Helper()
	e.eventually(fmt.Sprintf("%s to be %s, %s", t, status, reason), func() error {
		if err := e.refresh(mg); err != nil {
			return err
		}
		if c := mg.GetCondition(t); c.Status != status || c.Reason != reason {
			return errors.Errorf("the condition is %s, reason %s: %s", c.Status, c.Reason, c.Message)
		}
		return nil
	})
}

// goes deletes an object and waits until it is gone.
func (e *env) goes(mg resource.ModernManaged) {
	e.Helper()
	e.must(shared.kube.Delete(e.Context(), mg))
	e.eventually("the deletion of the object", func() error {
		if err := shared.kube.Get(e.Context(), client.ObjectKeyFromObject(mg), mg); !kerrors.IsNotFound(err) {
			return errors.Errorf("the object exists: %v", err)
		}
		return nil
	})
}

// switches changes the behavior of the tailnet.
func (e *env) switches(change func(*tailnetsim.Switches)) {
	e.Helper()
	e.must(e.sim.SetSwitches(change))
}

// TestReality runs with the variants of behavior of real tailnets.
func TestReality(t *testing.T) {
	t.Parallel()
	cases := map[string]func(e *env){
		"MachineHasName":      machineHasName,
		"AnnotationsLost":     annotationsLost,
		"AnnotationsLimited":  annotationsLimited,
		"PlanRequired":        planRequired,
		"QuotaExceeded":       quotaExceeded,
		"PolicyWarnings":      policyWarnings,
		"MagicDNSStaysOn":     magicDNSStaysOn,
		"TailnetLocked":       tailnetLocked,
		"TailnetLockSigned":   tailnetLockSigned,
		"RevokedKeyNotFound":  func(e *env) { revokedKey(e, 404) },
		"RevokedKeyGone":      func(e *env) { revokedKey(e, 410) },
		"ApprovedInAdvance":   func(e *env) { approved(e, "") },
		"NoPrimary":           noPrimary,
		"UnknownStateOfHosts": func(e *env) { approved(e, "whatever") },
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(newEnv(t))
		})
	}
}

// machineHasName gives a machine the name of a service: the object reports it, and can be deleted.
func machineHasName(e *env) {
	_, err := e.sim.Join(tailnetsim.Puppet{Hostname: strings.TrimPrefix(serviceName, "svc:")})
	e.must(err)
	mg := e.subjectOf(vipServiceCase().erase(), nil)
	e.condition(mg, xpv2.TypeReady, corev1.ConditionFalse, meta.ReasonNameTaken)
	e.goes(mg)
}

// annotationsLost edits a service as the Terraform provider does: the object stays its owner.
func annotationsLost(e *env) {
	mg := e.subjectOf(vipServiceCase().erase(), nil)
	e.condition(mg, xpv2.TypeReady, corev1.ConditionTrue, xpv2.ReasonAvailable)
	comment := "edited by hand"
	e.must(e.sim.EditService(serviceName, tailnetsim.ServiceEdit{Comment: &comment}))
	e.eventually("the annotations to be back", func() error {
		s, err := e.tailnet.Services().Get(e.Context(), serviceName)
		if err != nil {
			return err
		}
		if s.Annotations[meta.AnnotationOwner] == "" || s.Comment == comment {
			return errors.Errorf("the service is %+v", s)
		}
		return nil
	})
	e.must(e.sim.EditService(serviceName, tailnetsim.ServiceEdit{}))
	e.goes(mg)
	if _, err := e.tailnet.Services().Get(e.Context(), serviceName); err == nil {
		e.Error("the service is left over")
	}
}

// annotationsLimited limits annotations of services to less than the provider writes by default.
func annotationsLimited(e *env) {
	e.switches(func(w *tailnetsim.Switches) { w.Annotations.ValueBytes = 600 })
	mg := e.subjectOf(vipServiceCase().erase(), func(mg resource.ModernManaged) {
		p := &mg.(*v1alpha1.VIPService).Spec.ForProvider
		p.Sharing = v1alpha1.SharingShared
		for i := range 40 {
			p.Routes = append(p.Routes, fmt.Sprintf("HTTPRoute/default/a-route-of-a-long-name-%d", i))
		}
	})
	e.condition(mg, xpv2.TypeReady, corev1.ConditionTrue, xpv2.ReasonAvailable)
	e.eventually("the cluster to be a member", func() error {
		if err := e.refresh(mg); err != nil {
			return err
		}
		if o := mg.(*v1alpha1.VIPService).Status.AtProvider; len(o.Consumers) != 1 {
			return errors.Errorf("members are %v, ignored %v", o.Consumers, o.IgnoredRecords)
		}
		return nil
	})
}

// planRequired runs with a plan that lacks a feature, and then with one that has it.
func planRequired(e *env) {
	e.switches(func(w *tailnetsim.Switches) { w.Plan = map[tailnetsim.Feature]int{tailnetsim.LogStreaming: 403} })
	mg := e.subjectOf(logstreamConfigurationCase().erase(), nil)
	e.condition(mg, xpv2.TypeReady, corev1.ConditionFalse, meta.ReasonPlanRequired)
	if c := mg.GetCondition(xpv2.TypeReady); !strings.Contains(c.Message, "log_streaming") {
		e.Errorf("the message does not name the feature: %s", c.Message)
	}
	e.switches(func(w *tailnetsim.Switches) { w.Plan = nil })
	// The provider tries another spec at once.
	e.change(mg, func() { mg.(*v1alpha1.LogstreamConfiguration).Spec.ForProvider.User = "other" })
	e.condition(mg, xpv2.TypeReady, corev1.ConditionTrue, xpv2.ReasonAvailable)
}

// quotaExceeded creates one service too many.
func quotaExceeded(e *env) {
	e.must(e.tailnet.Services().CreateOrUpdate(e.Context(), tsclient.Service{Name: "svc:others", Ports: []string{"tcp:443"}, Tags: []string{"tag:k8s"}}))
	e.switches(func(w *tailnetsim.Switches) { w.ServiceQuota = 1 })
	mg := e.subjectOf(vipServiceCase().erase(), nil)
	e.condition(mg, xpv2.TypeReady, corev1.ConditionFalse, meta.ReasonQuotaExceeded)
	e.goes(mg)
}

// policyWarnings writes a policy file with a group that is not synced.
func policyWarnings(e *env) {
	const group = "group:sec@example.com"
	e.switches(func(w *tailnetsim.Switches) { w.UnsyncedGroups = []string{group} })
	p, err := e.tailnet.PolicyFile().Raw(e.Context())
	e.must(err)
	text := strings.Replace(p.HuJSON, `"grants": [`, `"grants": [{"src": ["`+group+`"], "dst": ["*"], "ip": ["*"]}, `, 1)
	e.must(e.tailnet.PolicyFile().Set(e.Context(), text, ""))
	mg := e.subjectOf(policyFragmentCase().erase(), nil)
	e.condition(mg, xpv2.TypeReady, corev1.ConditionTrue, xpv2.ReasonAvailable)
	e.condition(mg, meta.TypePolicyWarnings, corev1.ConditionTrue, meta.ReasonWarnings)
}

// magicDNSStaysOn deletes the object with the tailnet's only nameserver.
func magicDNSStaysOn(e *env) {
	mg := e.subjectOf(dnsCase().erase(), nil)
	e.condition(mg, xpv2.TypeReady, corev1.ConditionTrue, xpv2.ReasonAvailable)
	e.goes(mg)
	p, err := e.tailnet.DNS().Preferences(e.Context())
	e.must(err)
	if !p.MagicDNS {
		e.Error("MagicDNS is off")
	}
}

// tailnetLocked checks a machine whose device the tailnet lock refuses until a person signs it.
func tailnetLocked(e *env) {
	signer := key.NewNLPrivate()
	e.must(e.sim.EnableLock(signer))
	mg := e.subjectOf(machineCase().erase(), nil)
	e.condition(mg, xpv2.TypeReady, corev1.ConditionFalse, meta.ReasonTailnetLocked)
	if c := mg.GetCondition(xpv2.TypeReady); !strings.Contains(c.Message, "tailscale lock sign nodekey:") {
		e.Errorf("the message does not say how to sign the device: %s", c.Message)
	}
	e.must(e.sim.SignDevice(mg.(*v1alpha1.Machine).Status.AtProvider.NodeID, signer))
	e.condition(mg, xpv2.TypeReady, corev1.ConditionTrue, xpv2.ReasonAvailable)
}

// tailnetLockSigned checks machines whose auth keys the provider signs: with the key that the lock
// trusts, and with a key of another lock.
func tailnetLockSigned(e *env) {
	trusted := key.NewNLPrivate()
	e.must(e.sim.EnableLock(trusted))
	for name, signer := range map[string]key.NLPrivate{"trusted": trusted, "other": key.NewNLPrivate()} {
		text, err := signer.MarshalText()
		e.must(err)
		secret := "lock-" + name
		e.create(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: secret},
			StringData: map[string]string{meta.SecretKeySigningKey: string(text)},
		})
		e.apply(fmt.Sprintf(`
apiVersion: %s
kind: ProviderConfig
metadata: {name: %s, namespace: %s}
spec:
  apiURL: %s
  clusterID: %s
  credentials: {oauthSecretRef: {name: %s, namespace: %s}}
  tailnetLock: {signingKeySecretRef: {name: %s, namespace: %s}}
`, v1alpha1.SchemeGroupVersion, name, e.namespace, e.sim.URL, e.clusterID, credentialsSecret, e.namespace, secret, e.namespace))
	}
	runPods(e)
	machine := machineCase().erase()
	machine.Seed = nil // The pods run already.
	configured := func(name string) resource.ModernManaged {
		return e.subjectOf(machine, func(mg resource.ModernManaged) {
			mg.SetName(name)
			mg.(*v1alpha1.Machine).Spec.ForProvider.Hostname = name
			mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: v1alpha1.ProviderConfigKind, Name: name})
		})
	}
	e.condition(configured("trusted"), xpv2.TypeReady, corev1.ConditionTrue, xpv2.ReasonAvailable)
	e.condition(configured("other"), xpv2.TypeReady, corev1.ConditionFalse, meta.ReasonTailnetLocked)
}

// revokedKey deletes an AuthKey whose key was revoked.
func revokedKey(e *env, status int) {
	e.switches(func(w *tailnetsim.Switches) { w.RevokedKeyStatus = status })
	mg := e.subjectOf(authKeyCase().erase(), nil)
	e.condition(mg, xpv2.TypeReady, corev1.ConditionTrue, xpv2.ReasonAvailable)
	ks, err := e.tailnet.Keys().List(e.Context(), true)
	e.must(err)
	for _, k := range ks {
		e.must(e.tailnet.Keys().Delete(e.Context(), k.ID))
	}
	e.goes(mg)
}

// approved checks a machine that hosts a service in a tailnet without autoApprovers: it is approved
// before it advertises, and counts as a host with any state in the API.
func approved(e *env, state string) {
	if state != "" {
		// Whatever the words are, whichever hosts are listed, and whatever identifies them.
		e.switches(func(w *tailnetsim.Switches) {
			w.HostStates = tailnetsim.HostStates{Ready: state, Partial: state, Approved: state, Unknown: state, Inactive: true, Documented: true}
		})
	}
	machine := e.subjectOf(machineCase().erase(), func(mg resource.ModernManaged) {
		mg.SetName("proxy-0")
		mg.SetLabels(map[string]string{meta.LabelEndpoints: "proxies"})
	})
	// Only machines of endpoints that are to host the service count.
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
	id := machine.(*v1alpha1.Machine).Status.AtProvider.NodeID
	report := func(s v1alpha1.HostedService) {
		e.Helper()
		m := machine.(*v1alpha1.Machine)
		original := m.DeepCopy()
		m.Status.Agent = &v1alpha1.MachineAgentStatus{Services: []v1alpha1.HostedService{s}}
		e.must(shared.kube.Status().Patch(e.Context(), m, client.MergeFrom(original)))
	}
	mg := e.subjectOf(vipServiceCase().erase(), func(mg resource.ModernManaged) {
		mg.(*v1alpha1.VIPService).Spec.ForProvider.HostTags = []v1alpha1.Tag{"tag:k8s"}
	})
	e.condition(mg, xpv2.TypeReady, corev1.ConditionTrue, xpv2.ReasonAvailable)

	report(v1alpha1.HostedService{Name: serviceName, Message: "Waiting for the certificate"})
	e.eventually("the machine to be approved before it advertises", func() error {
		if !e.sim.Approved(serviceName, id) {
			return errors.New("the machine is not approved")
		}
		return nil
	})

	ports := []uint16{80}
	if state != "" {
		ports = nil // It serves none: the API has another state for that.
	}
	e.must(e.sim.SetOffers(id, tailnetsim.Offer{Service: serviceName, Ports: ports}))
	report(v1alpha1.HostedService{Name: serviceName, Advertised: true, Accepted: true, HealthyBackends: 1, TotalBackends: 1})
	e.eventually("the host to be configured", func() error {
		if err := e.refresh(mg); err != nil {
			return err
		}
		hosts := mg.(*v1alpha1.VIPService).Status.AtProvider.Hosts
		if len(hosts) != 1 || !hosts[0].Configured || !strings.HasPrefix(hosts[0].Approval, "approved") || (state != "") != (hosts[0].State == state) {
			return errors.Errorf("hosts are %+v", hosts)
		}
		return nil
	})
}
