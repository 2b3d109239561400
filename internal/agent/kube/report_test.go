// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

var errBoom = errors.New("boom")

// A recorder has a Machine, and records what is applied to it, and when.
type recorder struct {
	Client

	mu      sync.Mutex
	machine *v1alpha1.Machine
	start   time.Time
	applied []string
	at      []time.Duration
	err     error
}

func (r *recorder) GetMachine(_ context.Context, key types.NamespacedName) (*v1alpha1.Machine, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.machine == nil || r.machine.Namespace != key.Namespace || r.machine.Name != key.Name {
		return nil, kerrors.NewNotFound(v1alpha1.SchemeGroupVersion.WithResource(string(machines)).GroupResource(), key.Name)
	}
	return r.machine.DeepCopy(), nil
}

func (r *recorder) ApplyMachineStatus(_ context.Context, _ types.NamespacedName, config []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	m := &v1alpha1.Machine{}
	if err := json.Unmarshal(config, m); err != nil {
		return errors.Wrap(err, "cannot decode")
	}
	r.machine.Status.Agent = m.Status.Agent
	r.applied = append(r.applied, string(config))
	r.at = append(r.at, time.Since(r.start).Round(time.Second))
	return nil
}

// set replaces the Machine.
func (r *recorder) set(m *v1alpha1.Machine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.machine = m
}

func (r *recorder) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

func (r *recorder) times() []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at
}

func newReporter(m *v1alpha1.Machine) (*Reporter, *recorder) {
	r := &recorder{machine: m, start: time.Now()}
	return NewReporter(r, types.NamespacedName{Namespace: "default", Name: "set-0"}, logging.NewNopLogger(), func(error) {}), r
}

func machine() *v1alpha1.Machine {
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "set-0"},
		Spec:       v1alpha1.MachineSpec{ReportInterval: &metav1.Duration{Duration: 10 * time.Second}},
	}
}

func status(healthy int32) *v1alpha1.MachineAgentStatus {
	return &v1alpha1.MachineAgentStatus{
		PodIP:    "10.0.0.7",
		Services: []v1alpha1.HostedService{{Name: "svc:web", Advertised: healthy > 0, HealthyBackends: healthy, TotalBackends: 3}},
	}
}

func TestReporterInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, rec := newReporter(machine())
		go r.Run(ctx)

		// Related changes go into one report.
		r.Set(status(1))
		synctest.Wait()
		r.Set(status(2))
		<-time.After(2 * DefaultSettle)
		// Two more changes before the interval is over.
		r.Set(status(1))
		synctest.Wait()
		r.Set(status(3))
		<-time.After(time.Minute)
		r.Set(status(3))
		<-time.After(time.Hour)

		if diff := cmp.Diff([]time.Duration{DefaultSettle, DefaultSettle + 10*time.Second + DefaultSettle}, rec.times()); diff != "" {
			t.Errorf("Only the latest status must be reported, at most once per interval, and nothing twice: -want, +got:\n%s", diff)
		}
		want := `{"apiVersion":"tailnet.gateway.tailscale.com/v1alpha1","kind":"Machine","metadata":{"name":"set-0","namespace":"default"},` +
			`"status":{"agent":{"podIP":"10.0.0.7","services":[{"name":"svc:web","advertised":true,"accepted":false,"healthyBackends":3,"totalBackends":3}]}}}`
		if diff := cmp.Diff(want, rec.applied[1]); diff != "" {
			t.Errorf("Only status.agent must be applied: -want, +got:\n%s", diff)
		}
	})
}

func TestReporterRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, rec := newReporter(machine())
		rec.fail(errBoom)
		go r.Run(ctx)

		r.Set(status(1))
		<-time.After(time.Hour)
		rec.fail(nil)
		<-time.After(maxBackoff)
		synctest.Wait()
		if got := len(rec.times()); got != 1 {
			t.Errorf("Status was reported %d times within %s of the API server's return, want once", got, maxBackoff)
		}
	})
}

func TestReporterAlreadyThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		m := machine()
		m.Status.Agent = status(1)
		r, rec := newReporter(m)
		go r.Run(ctx)

		r.Set(status(1))
		<-time.After(time.Minute)
		if diff := cmp.Diff(0, len(rec.times())); diff != "" {
			t.Errorf("A restarted agent must not write an unchanged status: -want, +got:\n%s", diff)
		}
	})
}

func TestReporterMachineMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, rec := newReporter(machine())
		go r.Run(ctx)

		r.Set(status(1))
		<-time.After(time.Minute)
		rec.set(machine())
		<-time.After(resync + time.Second)
		if diff := cmp.Diff(2, len(rec.times())); diff != "" {
			t.Errorf("The status must be written to a Machine that was created again: -want, +got:\n%s", diff)
		}
	})
}
