// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
)

// TestCompromisedPod uses only the rights of a proxy pod, and then those of Kubernetes' role edit on
// Secrets, to make the provider tag or delete the device of another owner, or its key.
func TestCompromisedPod(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	victim, err := e.sim.Join(tailnetsim.Puppet{Hostname: "victim", Tags: []string{"tag:db"}})
	e.must(err)
	mg := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: machineHostname},
		Spec:       v1alpha1.MachineSpec{ForProvider: v1alpha1.MachineParameters{Hostname: machineHostname, Tags: []v1alpha1.Tag{"tag:k8s"}}},
	}
	mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: v1alpha1.ProviderConfigKind, Name: "default"})
	e.create(mg)
	e.becomes("the Machine waits for its node", mg, func() error {
		if !mg.Status.AtProvider.KeyIssued {
			return errors.New("no key was issued")
		}
		return nil
	})

	o := proxy.Options{Name: "evil", Namespace: e.namespace, Pods: v1alpha1.MachineSetPods{Direction: v1alpha1.DirectionIngress}, Machines: []string{machineHostname}}
	for _, part := range []client.Object{proxy.Role(o), proxy.RoleBinding(o)} {
		e.create(part)
	}
	cfg := rest.CopyConfig(shared.config)
	cfg.Impersonate.UserName = fmt.Sprintf("system:serviceaccount:%s:%s", e.namespace, o.Name)
	pod, err := client.New(cfg, client.Options{Scheme: shared.kube.Scheme()})
	e.must(err)

	named := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+meta.AnnotationNodeID+`":"`+victim+`"}}}`))
	config := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: machineHostname + meta.ConfigSecretSuffix}}
	for description, o := range map[string]client.Object{"its Machine": mg.DeepCopy(), "its config Secret": config} {
		if err := pod.Patch(t.Context(), o, named); !kerrors.IsForbidden(err) {
			t.Errorf("a pod must not write to %s, got %v", description, err)
		}
	}
	forged := client.RawPatch(types.MergePatchType, []byte(
		`{"metadata":{"annotations":{"`+meta.AnnotationNodeID+`":"`+victim+`"}},"status":{"atProvider":{"nodeID":"`+victim+`"}}}`))
	if err := pod.Status().Patch(t.Context(), mg.DeepCopy(), forged); !kerrors.IsForbidden(err) {
		t.Errorf("a pod must not write another status than its own, got %v", err)
	}
	// Its role permits the write if the cluster lacks the admission policy.
	e.must(shared.kube.Status().Patch(t.Context(), mg.DeepCopy(), forged))
	state := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: machineHostname}}
	e.must(pod.Patch(t.Context(), state, client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"device_id":"`+victim+`"}}`))))
	e.becomes("the device is refused", mg, func() error {
		if c := mg.GetCondition(xpv2.TypeReady); c.Reason != meta.ReasonDeviceRefused {
			return errors.Errorf("Ready is %v", c)
		}
		return nil
	})
	e.must(shared.kube.Status().Patch(t.Context(), mg.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"atProvider":{"nodeID":"`+victim+`"}}}`))))
	key, err := e.tailnet.Keys().CreateAuthKey(t.Context(), tsclient.CreateKeyRequest{Description: "theirs"})
	e.must(err)
	e.must(shared.kube.Patch(t.Context(), config, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{`+
		`"gateway.tailscale.com/retired-device-id":"`+victim+`","gateway.tailscale.com/auth-key-id":"`+key.ID+`"}}}`))))
	e.must(shared.kube.Delete(t.Context(), mg))
	e.eventually("the Machine goes", func() error {
		if err := e.refresh(mg); !kerrors.IsNotFound(err) {
			return errors.Errorf("the object exists, or cannot be read: %v", err)
		}
		return nil
	})
	d, err := e.tailnet.Devices().Get(t.Context(), victim)
	e.must(err)
	if len(d.Tags) != 1 || d.Tags[0] != "tag:db" {
		t.Errorf("the device was tagged %v", d.Tags)
	}
	if k, err := e.tailnet.Keys().Get(t.Context(), key.ID); err != nil || k.Invalid {
		t.Errorf("want the key of another to be left, got %v, %v", k, err)
	}
}
