// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// A machineSet is a MachineSet whose pods run.
type machineSet struct {
	*env

	set *v1alpha1.MachineSet
}

// newMachineSet applies a set of n machines, and waits until all are in the tailnet.
func newMachineSet(t *testing.T, n int) *machineSet {
	t.Helper()
	s := &machineSet{env: newEnv(t)}
	runPods(s.env)
	s.set = &v1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: subject},
		Spec: v1alpha1.MachineSetSpec{
			ProviderConfigReference: xpv2.ProviderConfigReference{Kind: v1alpha1.ProviderConfigKind, Name: configName},
			Tags:                    []v1alpha1.Tag{"tag:k8s"},
			Machines:                members(n),
		},
	}
	s.create(s.set)
	s.eventually(fmt.Sprintf("%d machines are in the tailnet", n), func() error { return s.settled(n) })
	return s
}

func members(n int) []v1alpha1.MachineSetMember {
	out := make([]v1alpha1.MachineSetMember, n)
	for i := range n {
		out[i] = v1alpha1.MachineSetMember{Name: fmt.Sprintf("%s-%d", subject, i), Hostname: fmt.Sprintf("proxy-%d", i)}
	}
	return out
}

// scale scales the set.
func (s *machineSet) scale(n int) {
	s.Helper()
	s.must(retry.RetryOnConflict(conflicts, func() error {
		if err := shared.kube.Get(s.Context(), client.ObjectKeyFromObject(s.set), s.set); err != nil {
			return err
		}
		s.set.Spec.Machines = members(n)
		return shared.kube.Update(s.Context(), s.set)
	}))
}

// settled returns an error unless exactly the first n members exist, each with its Machine, device
// and Secrets.
func (s *machineSet) settled(n int) error {
	var want []string
	for _, m := range members(n) {
		want = append(want, m.Name)
	}
	if err := s.left(n, want); err != nil {
		return err
	}
	if err := shared.kube.Get(s.Context(), client.ObjectKeyFromObject(s.set), s.set); err != nil {
		return err
	}
	var got []string
	for _, m := range s.set.Status.Machines {
		if !m.Ready || m.NodeID == "" || len(m.Addresses) == 0 || !slices.Equal(m.Tags, []string{"tag:k8s"}) {
			return errors.Errorf("the status of %s is %+v", m.Name, m)
		}
		got = append(got, m.Name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return errors.Errorf("status.machines: -want, +got:\n%s", diff)
	}
	if s.set.Status.ReadyMachines != int32(n) || s.set.Status.ObservedGeneration != s.set.GetGeneration() {
		return errors.Errorf("status: %+v", s.set.Status)
	}
	return nil
}

// left returns an error unless exactly these Machines exist, with n devices and keys.
func (s *machineSet) left(n int, machines []string) error {
	ms := &v1alpha1.MachineList{}
	if err := shared.kube.List(s.Context(), ms, client.InNamespace(s.namespace)); err != nil {
		return err
	}
	var got []string
	for _, m := range ms.Items {
		got = append(got, m.GetName())
	}
	slices.Sort(got)
	if diff := cmp.Diff(machines, got); diff != "" {
		return errors.Errorf("Machines: -want, +got:\n%s", diff)
	}
	for _, typ := range []string{meta.SecretTypeConfig, meta.SecretTypeState} {
		ss := &corev1.SecretList{}
		if err := shared.kube.List(s.Context(), ss, client.InNamespace(s.namespace), client.MatchingLabels{meta.LabelSecretType: typ}); err != nil {
			return err
		}
		if len(ss.Items) != n {
			return errors.Errorf("there are %d Secrets of type %s, want %d", len(ss.Items), typ, n)
		}
	}
	if got := machineCase().Count(s.env); got != n {
		return errors.Errorf("there are %d devices and keys in the tailnet, want %d", got, n)
	}
	return nil
}

// TestMachineSet scales a set and deletes it, and the tailnet follows.
func TestMachineSet(t *testing.T) {
	t.Parallel()
	s := newMachineSet(t, 3)
	nodeID := s.set.Status.Machines[0].NodeID

	s.scale(1)
	s.eventually("two machines have gone", func() error { return s.settled(1) })
	s.scale(2)
	s.eventually("one has come back", func() error { return s.settled(2) })
	if got := s.set.Status.Machines[0].NodeID; got != nodeID {
		t.Errorf("the machine that stayed is device %s now, it was %s", got, nodeID)
	}

	s.must(shared.kube.Delete(t.Context(), s.set))
	s.eventually("nothing is left", func() error { return s.left(0, nil) })
}

// forbid makes the API server refuse to delete the Machines of a namespace, as in a cluster without
// the provider's role.
const forbid = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    resourceRules:
    - {apiGroups: [%[2]s], apiVersions: ["*"], resources: [machines], operations: [DELETE]}
  validations:
  - {expression: "false", message: the provider may not, reason: Forbidden}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
`

// TestMachineSetForbidden checks that a condition reports the provider's missing permission. A
// busy recorder delays and drops events (client-go tools/record): internal/controller/machineset checks
// that of this case.
func TestMachineSetForbidden(t *testing.T) {
	t.Parallel()
	s := newMachineSet(t, 2)
	policy := s.parse(fmt.Sprintf(forbid, s.namespace, v1alpha1.Group))
	s.apply(fmt.Sprintf(forbid, s.namespace, v1alpha1.Group))
	s.eventually("the policy is in effect", func() error {
		m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: members(1)[0].Name}}
		if err := shared.kube.Delete(t.Context(), m, client.DryRunAll); !kerrors.IsForbidden(err) {
			return errors.Errorf("a Machine may be deleted: %v", err)
		}
		return nil
	})

	s.scale(1)
	s.eventually("a condition reports it", func() error {
		m := &v1alpha1.Machine{}
		if err := shared.kube.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: members(2)[1].Name}, m); err != nil {
			return err
		}
		c := m.GetCondition(meta.TypeDeletable)
		if c.Reason != meta.ReasonCannotDeleteMachine || !strings.Contains(c.Message, "the chart tailscale-gateway") {
			return errors.Errorf("the condition is %+v", c)
		}
		return nil
	})
	for _, o := range policy {
		s.must(shared.kube.Delete(t.Context(), o))
	}
	s.eventually("the machine is deleted once the provider may", func() error { return s.settled(1) })
}
