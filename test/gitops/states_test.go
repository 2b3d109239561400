// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// generation of the objects in tests.
const generation = 3

// failed returns the condition Ready of a managed resource with a problem.
func failed(reason xpv2.ConditionReason, message string) xpv2.Condition {
	c := xpv2.Unavailable().WithMessage(message)
	c.Reason = reason
	return c
}

// own returns a condition of ours.
func own(typ xpv2.ConditionType, status string, reason xpv2.ConditionReason, message string) xpv2.Condition {
	c := xpv2.Available()
	c.Type, c.Reason, c.Message = typ, reason, message
	if status == "False" {
		c.Status = xpv2.Unavailable().Status
	}
	return c
}

// paused returns the condition Synced of an object that is paused.
func paused() xpv2.Condition { return xpv2.ReconcilePaused() }

// syncError returns the condition Synced after an error.
func syncError(message string) xpv2.Condition {
	c := xpv2.ReconcileSuccess()
	c.Status, c.Reason, c.Message = xpv2.Unavailable().Status, xpv2.ReasonReconcileError, message
	return c
}

const (
	pausedComposite = "The annotation crossplane.io/paused is set: changes wait until it is removed"
	pausedManaged   = "The annotation crossplane.io/paused is set, or spec.managementPolicies is empty: changes wait"
	ready           = "The object is ready"
)

// TestConditions checks each kind with conditions in each state, with the object of an example.
func TestConditions(t *testing.T) {
	cases := map[string]struct {
		reason      string
		conditions  []xpv2.Condition
		annotations map[string]string
		// composite and managed are the health of the two sorts of kinds. Nil skips them.
		composite *Health
		managed   *Health
	}{
		"New": {
			reason:    "Nothing has processed the object.",
			composite: &Health{Progressing, "Waiting for Crossplane; if this lasts, check that the Configuration and its function are healthy"},
			managed:   &Health{Progressing, "Waiting for the provider; if this lasts, check that it is installed and healthy"},
		},
		"Creating": {
			reason:     "An object that is being created has no problem.",
			conditions: []xpv2.Condition{xpv2.ReconcileSuccess(), xpv2.Creating()},
			composite:  &Health{Progressing, "Waiting for Crossplane"},
			managed:    &Health{Progressing, "Waiting for the provider"},
		},
		"CreatingWithMessage": {
			reason:     "The message says what the object waits for.",
			conditions: []xpv2.Condition{xpv2.ReconcileSuccess(), xpv2.Creating().WithMessage("Unready resources: vipservice")},
			composite:  &Health{Progressing, "Unready resources: vipservice"},
			managed:    &Health{Progressing, "Unready resources: vipservice"},
		},
		"OnlySynced": {
			reason:     "An object is not healthy before it is ready.",
			conditions: []xpv2.Condition{xpv2.ReconcileSuccess()},
			composite:  &Health{Progressing, "Waiting for Crossplane"},
			managed:    &Health{Progressing, "Waiting for the provider"},
		},
		"OnlyReady": {
			reason:     "An object is not healthy before it is synced.",
			conditions: []xpv2.Condition{xpv2.Available()},
			composite:  &Health{Progressing, "Waiting for Crossplane"},
			managed:    &Health{Progressing, "Waiting for the provider"},
		},
		"Available": {
			reason:     "The object has its desired state.",
			conditions: []xpv2.Condition{xpv2.ReconcileSuccess(), xpv2.Available()},
			composite:  &Health{Healthy, ready},
			managed:    &Health{Healthy, ready},
		},
		"AvailableBeforeSynced": {
			reason:     "The order of the conditions does not matter: the write failed, although the object works.",
			conditions: []xpv2.Condition{xpv2.Available(), syncError("cannot update: 403")},
			composite:  &Health{Degraded, "cannot update: 403"},
			managed:    &Health{Degraded, "cannot update: 403"},
		},
		"SyncError": {
			reason:     "The error of the reconciler is shown.",
			conditions: []xpv2.Condition{syncError("cannot compose resources: boom"), xpv2.Creating()},
			composite:  &Health{Degraded, "cannot compose resources: boom"},
			managed:    &Health{Degraded, "cannot compose resources: boom"},
		},
		"Paused": {
			reason:      "The annotation pauses the object, whatever its conditions say.",
			conditions:  []xpv2.Condition{xpv2.ReconcileSuccess(), xpv2.Available()},
			annotations: map[string]string{xpmeta.AnnotationKeyReconciliationPaused: "true"},
			composite:   &Health{Suspended, pausedComposite},
			managed:     &Health{Suspended, pausedManaged},
		},
		"PausedBefore": {
			reason:      "An object that is created with the annotation is paused as well.",
			annotations: map[string]string{xpmeta.AnnotationKeyReconciliationPaused: "true"},
			composite:   &Health{Suspended, pausedComposite},
			managed:     &Health{Suspended, pausedManaged},
		},
		"NotPaused": {
			reason:      "Only the value true pauses an object.",
			conditions:  []xpv2.Condition{xpv2.ReconcileSuccess(), xpv2.Available()},
			annotations: map[string]string{xpmeta.AnnotationKeyReconciliationPaused: "false"},
			composite:   &Health{Healthy, ready},
			managed:     &Health{Healthy, ready},
		},
		"PausedByPolicies": {
			reason:     "An empty list of management policies pauses an object, too.",
			conditions: []xpv2.Condition{paused(), xpv2.Available()},
			managed:    &Health{Suspended, pausedManaged},
		},
		"Stale": {
			reason:     "Conditions about an older spec say nothing about this one.",
			conditions: []xpv2.Condition{xpv2.ReconcileSuccess().WithObservedGeneration(generation - 1), xpv2.Available().WithObservedGeneration(generation - 1)},
			composite:  &Health{Progressing, "Waiting for Crossplane to process the latest change"},
			managed:    &Health{Progressing, "Waiting for the provider to process the latest change"},
		},
		"ReadyStale": {
			reason:     "Both conditions are about the latest spec before the object is healthy.",
			conditions: []xpv2.Condition{xpv2.ReconcileSuccess().WithObservedGeneration(generation), xpv2.Available().WithObservedGeneration(generation - 1)},
			composite:  &Health{Progressing, "Waiting for Crossplane to process the latest change"},
			managed:    &Health{Progressing, "Waiting for the provider to process the latest change"},
		},
		"Current": {
			reason:     "Conditions about the latest spec count.",
			conditions: []xpv2.Condition{xpv2.ReconcileSuccess().WithObservedGeneration(generation), xpv2.Available().WithObservedGeneration(generation)},
			composite:  &Health{Healthy, ready},
			managed:    &Health{Healthy, ready},
		},
		"Refused": {
			reason:     "The refusal says what to do, and Synced only which call failed.",
			conditions: []xpv2.Condition{syncError("create failed"), failed(meta.ReasonForeignObject, "It belongs to others; choose another name")},
			managed:    &Health{Degraded, "It belongs to others; choose another name"},
		},
		"Unavailable": {
			reason:     "Without a message of Ready, that of Synced is shown.",
			conditions: []xpv2.Condition{syncError("create failed"), xpv2.Unavailable()},
			managed:    &Health{Degraded, "create failed"},
		},
		"UnavailableWithoutMessage": {
			reason:     "The reason is shown if there is no message at all.",
			conditions: []xpv2.Condition{xpv2.ReconcileSuccess(), xpv2.Unavailable()},
			managed:    &Health{Degraded, string(xpv2.ReasonUnavailable)},
		},
		"AvailableWithMessage": {
			reason:     "A hint of a healthy object is shown.",
			conditions: []xpv2.Condition{xpv2.ReconcileSuccess(), xpv2.Available().WithMessage("Somebody must follow the link")},
			composite:  &Health{Healthy, ready},
			managed:    &Health{Healthy, "Somebody must follow the link"},
		},
		"CredentialRejected": {
			reason:     "A cause is shown instead of its consequences, which come first here.",
			conditions: []xpv2.Condition{xpv2.ReconcileSuccess(), xpv2.Creating(), own(meta.TypeMachinesReady, "False", meta.ReasonCannotPrepareMachine, "Consequence"), own(meta.TypeAuthenticated, "False", meta.ReasonCredentialRejected, "Cause")},
			composite:  &Health{Degraded, "Cause"},
			managed:    &Health{Degraded, "Cause"},
		},
		"PartlyBroken": {
			reason:     "A part of the spec that cannot be fulfilled counts although the rest is ready.",
			conditions: []xpv2.Condition{xpv2.ReconcileSuccess(), xpv2.Available(), own(meta.TypeEgressReady, "False", meta.ReasonNoPorts, "Set port of each")},
			composite:  &Health{Degraded, "Set port of each"},
			managed:    &Health{Healthy, ready},
		},
		"Waiting": {
			reason:     "A False condition says more than an Unknown one.",
			conditions: []xpv2.Condition{xpv2.ReconcileSuccess(), xpv2.Creating(), {Type: meta.TypeAccepted, Status: "Unknown", Reason: "Waiting", Message: "Unknown"}, own(meta.TypeVIPServiceReady, "False", meta.ReasonVIPServiceCreating, "Waiting for an address")},
			composite:  &Health{Progressing, "Waiting for an address"},
		},
		"NewGateway": {
			reason:     "Envoy Gateway creates the Service of a new Gateway soon.",
			conditions: []xpv2.Condition{xpv2.ReconcileSuccess(), xpv2.Creating(), own(meta.TypeGatewayValid, "False", meta.ReasonServiceNotFound, "No Service yet")},
			composite:  &Health{Progressing, "No Service yet"},
		},
		"NoService": {
			reason:     "The user's Service does not appear by itself.",
			conditions: []xpv2.Condition{xpv2.ReconcileSuccess(), xpv2.Creating(), own(meta.TypeAccepted, "False", meta.ReasonServiceNotFound, "Create it")},
			composite:  &Health{Degraded, "Create it"},
		},
		"Remark": {
			reason:     "Clusters that want different settings are worth a look, and the service works.",
			conditions: []xpv2.Condition{xpv2.ReconcileSuccess(), xpv2.Available(), own(meta.TypeConflict, "True", meta.ReasonSettingsDiffer, "cluster-a wants other tags")},
			composite:  &Health{Healthy, "cluster-a wants other tags"},
			managed:    &Health{Healthy, "cluster-a wants other tags"},
		},
		"ApprovalPending": {
			reason:     "A person may still approve the host.",
			conditions: []xpv2.Condition{xpv2.ReconcileSuccess(), xpv2.Available(), own(meta.TypeApproved, "False", meta.ReasonApprovalPending, "Approve it")},
			composite:  &Health{Healthy, ready},
			managed:    &Health{Healthy, "Approve it"},
		},
		"NoMessage": {
			reason:     "The reason is shown if a condition has no message.",
			conditions: []xpv2.Condition{xpv2.ReconcileSuccess(), xpv2.Creating(), own(meta.TypeAccepted, "False", meta.ReasonInvalidTLS, "")},
			composite:  &Health{Degraded, string(meta.ReasonInvalidTLS)},
		},
		"AddressTaken": {
			reason:     "A service that got another address works.",
			conditions: []xpv2.Condition{xpv2.ReconcileSuccess(), xpv2.Available(), own(meta.TypeAddressKept, "False", meta.ReasonAddressTaken, "It has another address")},
			managed:    &Health{Healthy, "It has another address"},
		},
		"AnnotationsLost": {
			reason:     "The tailnet does not keep annotations.",
			conditions: []xpv2.Condition{xpv2.ReconcileSuccess(), xpv2.Available(), own(meta.TypeAnnotationsKept, "False", meta.ReasonAnnotationsLost, "They are lost")},
			managed:    &Health{Healthy, "They are lost"},
		},
		"HostTagsDiffer": {
			reason:     "Machines may need an approval by hand.",
			conditions: []xpv2.Condition{xpv2.ReconcileSuccess(), xpv2.Available(), own(meta.TypeHostTagsMatch, "False", meta.ReasonHostTagsDiffer, "Tags differ")},
			managed:    &Health{Healthy, "Tags differ"},
		},
		"PolicyWarnings": {
			reason:     "Tailscale accepts the policy file, with warnings.",
			conditions: []xpv2.Condition{xpv2.ReconcileSuccess(), xpv2.Available(), own(meta.TypePolicyWarnings, "True", meta.ReasonWarnings, "A group is empty")},
			managed:    &Health{Healthy, "A group is empty"},
		},
		"CannotDelete": {
			reason:     "A Machine that cannot be deleted needs somebody.",
			conditions: []xpv2.Condition{xpv2.ReconcileSuccess(), xpv2.Available(), own(meta.TypeDeletable, "False", meta.ReasonCannotDeleteMachine, "Let the provider delete it")},
			managed:    &Health{Degraded, "Let the provider delete it"},
		},
	}
	objects := examples(t)
	kinds, byKind := all()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, gvk := range kinds {
				want := map[Check]*Health{Composites: tc.composite, Managed: tc.managed}[byKind[gvk]]
				if want == nil {
					continue
				}
				o := objects[gvk].DeepCopy()
				if o == nil {
					t.Fatalf("no example has a %s", gvk.Kind)
				}
				o.SetGeneration(generation)
				if tc.annotations != nil {
					o.SetAnnotations(tc.annotations)
				}
				if len(tc.conditions) > 0 {
					set(t, o, "status", xpv2.ConditionedStatus{Conditions: tc.conditions})
				}
				if diff := cmp.Diff(*want, healthOf(t, o)); diff != "" {
					t.Errorf("%s\n%s: -want, +got:\n%s", tc.reason, gvk.Kind, diff)
				}
			}
		})
	}
}

// TestEmptyStatus checks that a status without conditions is no health.
func TestEmptyStatus(t *testing.T) {
	kinds, byKind := all()
	for _, gvk := range kinds {
		if byKind[gvk] == Plain {
			continue
		}
		o := object(gvk)
		o.Object["status"] = map[string]any{}
		if got := healthOf(t, o); got.Status != Progressing {
			t.Errorf("%s: want Progressing, got %+v", gvk.Kind, got)
		}
	}
}

// TestMachineSets checks the health of a MachineSet, which has no conditions.
func TestMachineSets(t *testing.T) {
	pods := func(change func(*tailnetv1alpha1.StatefulSetSummary)) *tailnetv1alpha1.StatefulSetSummary {
		s := &tailnetv1alpha1.StatefulSetSummary{Replicas: 2, ReadyReplicas: 2, UpdatedReplicas: 2, Observed: true}
		change(s)
		return s
	}
	complete := pods(func(*tailnetv1alpha1.StatefulSetSummary) {})
	joined := []tailnetv1alpha1.MachineSummary{{Name: "web-0", Ready: true}, {Name: "web-1", Ready: true}}
	cases := map[string]struct {
		reason string
		status tailnetv1alpha1.MachineSetStatus
		want   Health
	}{
		"New":          {"The provider has not processed the set.", tailnetv1alpha1.MachineSetStatus{}, Health{Progressing, "Waiting for the provider to process the latest change"}},
		"Stale":        {"The status is about an older spec.", tailnetv1alpha1.MachineSetStatus{ObservedGeneration: generation - 1, Machines: joined, StatefulSet: complete}, Health{Progressing, "Waiting for the provider to process the latest change"}},
		"Ready":        {"Everything is there.", tailnetv1alpha1.MachineSetStatus{ObservedGeneration: generation, Machines: joined, StatefulSet: complete}, Health{Healthy, "All machines are in the tailnet"}},
		"Joining":      {"A machine says what it waits for.", tailnetv1alpha1.MachineSetStatus{ObservedGeneration: generation, Machines: []tailnetv1alpha1.MachineSummary{{Name: "web-0", Ready: true}, {Name: "web-1", Message: "Waiting for the node"}}, StatefulSet: complete}, Health{Progressing, "web-1: Waiting for the node"}},
		"Failed":       {"A failure comes before what waits.", tailnetv1alpha1.MachineSetStatus{ObservedGeneration: generation, Machines: []tailnetv1alpha1.MachineSummary{{Name: "web-0"}, {Name: "web-1", Failed: true, Message: "The tag is not owned"}}, StatefulSet: complete}, Health{Degraded, "web-1: The tag is not owned"}},
		"Silent":       {"A machine has no message yet.", tailnetv1alpha1.MachineSetStatus{ObservedGeneration: generation, Machines: []tailnetv1alpha1.MachineSummary{{Name: "web-0"}}, StatefulSet: complete}, Health{Progressing, "web-0: the machine is not ready"}},
		"FailedSilent": {"A failure has no message.", tailnetv1alpha1.MachineSetStatus{ObservedGeneration: generation, Machines: []tailnetv1alpha1.MachineSummary{{Name: "web-0", Failed: true}}, StatefulSet: complete}, Health{Degraded, "web-0: the provider cannot prepare the machine"}},
		"Refused":      {"The API server refuses the StatefulSet.", tailnetv1alpha1.MachineSetStatus{ObservedGeneration: generation, Machines: joined, StatefulSet: pods(func(s *tailnetv1alpha1.StatefulSetSummary) { s.Message = "Invalid value" })}, Health{Degraded, "Invalid value"}},
		"NotReady":     {"A pod is not ready.", tailnetv1alpha1.MachineSetStatus{ObservedGeneration: generation, Machines: joined, StatefulSet: pods(func(s *tailnetv1alpha1.StatefulSetSummary) { s.ReadyReplicas = 1 })}, Health{Progressing, "Waiting for pods"}},
		"RollingOut":   {"A pod has the old template.", tailnetv1alpha1.MachineSetStatus{ObservedGeneration: generation, Machines: joined, StatefulSet: pods(func(s *tailnetv1alpha1.StatefulSetSummary) { s.UpdatedReplicas = 1 })}, Health{Progressing, "Waiting for pods"}},
		"NotObserved":  {"The counts belong to an older generation.", tailnetv1alpha1.MachineSetStatus{ObservedGeneration: generation, Machines: joined, StatefulSet: pods(func(s *tailnetv1alpha1.StatefulSetSummary) { s.Observed = false })}, Health{Progressing, "Waiting for pods"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := object(tailnetv1alpha1.MachineSetGroupVersionKind)
			set(t, o, "status", tc.status)
			if diff := cmp.Diff(tc.want, healthOf(t, o)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPolicies checks the health of policy attachments.
func TestPolicies(t *testing.T) {
	ancestor := func(name string, status metav1.ConditionStatus, message string, observed int64) gwapiv1.PolicyAncestorStatus {
		return gwapiv1.PolicyAncestorStatus{
			AncestorRef: gwapiv1.ParentReference{Name: gwapiv1.ObjectName(name)}, ControllerName: "gateway.tailscale.com/extension",
			Conditions: []metav1.Condition{{Type: string(gwapiv1.PolicyConditionAccepted), Status: status, Reason: "Any", Message: message, ObservedGeneration: observed}},
		}
	}
	accepted := ancestor("eg", metav1.ConditionTrue, "The policy has been accepted", generation)
	refs := ancestor("eg", metav1.ConditionTrue, "", generation)
	refs.Conditions = append(refs.Conditions, metav1.Condition{Type: string(gwapiv1.RouteConditionResolvedRefs), Status: metav1.ConditionFalse, Reason: "Any", Message: "There is no Secret", ObservedGeneration: generation})
	cases := map[string]struct {
		reason string
		status gatewayv1alpha1.TailscaleRoutePolicyStatus
		want   Health
	}{
		"New":      {"No extension has seen it.", gatewayv1alpha1.TailscaleRoutePolicyStatus{}, Health{Progressing, "Waiting for a controller to accept the policy; if this lasts, check that the extension is installed"}},
		"Accepted": {"It has an effect.", gatewayv1alpha1.TailscaleRoutePolicyStatus{Ancestors: []gwapiv1.PolicyAncestorStatus{accepted}}, Health{Healthy, "The policy has been accepted"}},
		"Open":     {"A controller has not decided.", gatewayv1alpha1.TailscaleRoutePolicyStatus{Ancestors: []gwapiv1.PolicyAncestorStatus{accepted, {AncestorRef: gwapiv1.ParentReference{Name: "eg2"}}}}, Health{Progressing, "eg2: waiting for the policy to be accepted"}},
		"Stale":    {"The conditions are about an older spec.", gatewayv1alpha1.TailscaleRoutePolicyStatus{Ancestors: []gwapiv1.PolicyAncestorStatus{ancestor("eg", metav1.ConditionFalse, "", generation-1)}}, Health{Progressing, "Waiting for a controller to process the latest change"}},
		"Refused":  {"One of its Gateways does not exist.", gatewayv1alpha1.TailscaleRoutePolicyStatus{Ancestors: []gwapiv1.PolicyAncestorStatus{accepted, ancestor("typo", metav1.ConditionFalse, "It does not exist", generation)}}, Health{Degraded, "typo: It does not exist"}},
		"Refs":     {"A certificate is missing.", gatewayv1alpha1.TailscaleRoutePolicyStatus{Ancestors: []gwapiv1.PolicyAncestorStatus{refs}}, Health{Degraded, "eg: There is no Secret"}},
		"Inactive": {"A rule has no effect.", gatewayv1alpha1.TailscaleRoutePolicyStatus{Ancestors: []gwapiv1.PolicyAncestorStatus{accepted}, Rules: []gatewayv1alpha1.RoutePolicyRuleStatus{{Name: "one", Active: true}, {Name: "two", Message: "Another rule matches first"}}}, Health{Degraded, "two: Another rule matches first"}},
		"Silent":   {"A rule without an effect has no message.", gatewayv1alpha1.TailscaleRoutePolicyStatus{Ancestors: []gwapiv1.PolicyAncestorStatus{accepted}, Rules: []gatewayv1alpha1.RoutePolicyRuleStatus{{Name: "one"}}}, Health{Degraded, "one: the rule does not apply"}},
		"Active":   {"All rules have an effect.", gatewayv1alpha1.TailscaleRoutePolicyStatus{Ancestors: []gwapiv1.PolicyAncestorStatus{accepted}, Rules: []gatewayv1alpha1.RoutePolicyRuleStatus{{Name: "one", Active: true}}}, Health{Healthy, "The policy has been accepted"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []string{"TailscaleRoutePolicy", "TailscaleRevision"} {
				o := object(gatewayv1alpha1.SchemeGroupVersion.WithKind(kind))
				set(t, o, "status", tc.status)
				if diff := cmp.Diff(tc.want, healthOf(t, o)); diff != "" {
					t.Errorf("%s\n%s: -want, +got:\n%s", tc.reason, kind, diff)
				}
			}
		})
	}
}

// TestPlain checks that kinds without a state are healthy.
func TestPlain(t *testing.T) {
	kinds, byKind := all()
	for _, gvk := range kinds {
		if byKind[gvk] != Plain {
			continue
		}
		if got := healthOf(t, object(gvk)); got.Status != Healthy {
			t.Errorf("%s: want Healthy, got %+v", gvk.Kind, got)
		}
	}
}

// TestUnknownKind checks that objects of other kinds have no health.
func TestUnknownKind(t *testing.T) {
	if _, err := HealthOf(root, object(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})); err == nil {
		t.Error("a ConfigMap has a health check")
	}
}

// object returns an object without a spec.
func object(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk)
	o.SetName("web")
	o.SetNamespace("default")
	o.SetGeneration(generation)
	return o
}

// set sets a field of an object from a struct.
func set(t *testing.T, o *unstructured.Unstructured, field string, v any) {
	t.Helper()
	b, err := json.Marshal(map[string]any{field: v})
	if err != nil {
		t.Fatal(err)
	}
	part := &unstructured.Unstructured{}
	// An unstructured object needs a kind, and decodes integers as the API machinery does.
	if err := part.UnmarshalJSON(append([]byte(`{"kind":"Part",`), b[1:]...)); err != nil {
		t.Fatal(err)
	}
	o.Object[field] = part.Object[field]
}

// examples returns the first object of each kind of ours in the examples, except for examples/design,
// whose objects have statuses.
func examples(t *testing.T) map[schema.GroupVersionKind]*unstructured.Unstructured {
	t.Helper()
	out := map[schema.GroupVersionKind]*unstructured.Unstructured{}
	err := filepath.WalkDir(filepath.Join(root, "examples"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "design" {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, doc := range bytes.Split(b, []byte("\n---\n")) {
			j, err := yaml.YAMLToJSON(doc)
			if err != nil {
				return err
			}
			o := &unstructured.Unstructured{}
			if err := o.UnmarshalJSON(j); runtime.IsMissingKind(err) {
				continue // A part with comments alone.
			} else if err != nil {
				return err
			}
			if gvk := o.GroupVersionKind(); out[gvk] == nil {
				out[gvk] = o
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
