// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"slices"

	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/test/lifecycle"
)

const machineHostname = "proxy-0"

func init() { addCase(machineCase()) }

func machineCase() kindCase[*v1alpha1.Machine] {
	device := func(e *env) (*tsclient.Device, error) {
		all, err := e.tailnet.Devices().List(e.Context())
		if err != nil {
			return nil, err
		}
		for _, d := range all {
			if d.Hostname == machineHostname {
				return &d, nil
			}
		}
		return nil, errors.New("there is no device")
	}
	const own = "a Machine creates its own device, and can be no other"
	return kindCase[*v1alpha1.Machine]{
		Kind:  v1alpha1.MachineKind,
		Scope: "auth_keys",
		New: func(*env) *v1alpha1.Machine {
			return &v1alpha1.Machine{Spec: v1alpha1.MachineSpec{ForProvider: v1alpha1.MachineParameters{
				Hostname: machineHostname, Tags: []v1alpha1.Tag{"tag:k8s"},
			}}}
		},
		Seed: runPods,
		Others: func(e *env) func() (any, error) {
			id, err := e.sim.Join(tailnetsim.Puppet{Hostname: "others", Tags: []string{"tag:k8s"}})
			e.must(err)
			return func() (any, error) { return e.tailnet.Devices().Get(e.Context(), id) }
		},
		// An unused key is a leftover, too.
		Count: func(e *env) int {
			ds, err := e.tailnet.Devices().List(e.Context())
			e.must(err)
			ks, err := e.tailnet.Keys().List(e.Context(), true)
			e.must(err)
			return len(ds) + len(slices.DeleteFunc(ks, func(k tsclient.Key) bool { return k.Invalid }))
		},
		Check: func(e *env, mg *v1alpha1.Machine) error {
			d, err := device(e)
			if err != nil {
				return err
			}
			slices.Sort(d.Tags)
			return lifecycle.Differ(lifecycle.Texts(mg.Spec.ForProvider.Tags), d.Tags)
		},
		Drift: func(e *env, _ *v1alpha1.Machine) {
			d, err := device(e)
			e.must(err)
			e.must(e.tailnet.Devices().SetTags(e.Context(), d.NodeID, []string{"tag:db"}))
		},
		Update: func(_ *env, mg *v1alpha1.Machine) { mg.Spec.ForProvider.Tags = []v1alpha1.Tag{"tag:k8s", "tag:web"} },
		Skip: map[step]string{
			stepRefuse:        own,
			stepAdopt:         own,
			stepObserve:       own + "; it does not exist without the policy Create",
			stepObserveNone:   "a Machine that waits for its node exists",
			stepWithoutUpdate: "Update prepares a Machine: a Create needs two more writes, which Crossplane's circuit breaker would count",
			stepOrphan:        "the node's state goes with the object's Secrets, so its device would stay for ever",
		},
		Bad: []badInput[*v1alpha1.Machine]{
			{Name: "NoHostname", Break: func(mg *v1alpha1.Machine) { mg.Spec.ForProvider.Hostname = "" }, Want: []string{"spec.forProvider.hostname"}},
			{Name: "HostnameIsNoLabel", Break: func(mg *v1alpha1.Machine) { mg.Spec.ForProvider.Hostname = "proxy.0" }, Want: []string{"spec.forProvider.hostname", "should match"}},
			{Name: "BadTag", Break: func(mg *v1alpha1.Machine) { mg.Spec.ForProvider.Tags = []v1alpha1.Tag{"tag:"} }, Want: []string{"spec.forProvider.tags[0]", "must be tag:"}},
		},
	}
}
