// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package swarm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/harness"
)

// objectName of each cluster's VIPService.
const objectName = "shared"

// A cluster is a namespace, and a provider that watches this namespace only. It is used by one
// goroutine at a time.
type cluster struct {
	*swarm

	id       string // The name of the namespace, too.
	dice     *rand.Rand
	skew     time.Duration
	provider *harness.Provider
	starts   int
	attached bool
}

// start starts the provider.
func (c *cluster) start() error {
	c.starts++
	p, err := c.env.StartProvider("member", fmt.Sprintf("%s-%d", c.id, c.starts),
		"--watch-namespaces="+c.id, "--poll="+c.Poll.String(), "--clock-skew="+c.skew.String())
	c.provider = p
	return err
}

// makeMachine creates a Machine. This process replaces its agent.
func (c *cluster) makeMachine(ctx context.Context, node string) error {
	m := harness.Object(v1alpha1.MachineKind, c.id, "proxy-0", map[string]any{"hostname": "proxy-0", "tags": []any{"tag:k8s"}})
	m.SetAnnotations(map[string]string{xpmeta.AnnotationKeyReconciliationPaused: "true"})
	if err := c.env.Kube.Create(ctx, m); err != nil {
		return errors.Wrap(err, "cannot create a Machine")
	}
	original := m.DeepCopy()
	m.Object["status"] = map[string]any{
		"atProvider": map[string]any{"nodeID": node},
		"agent": map[string]any{"services": []any{map[string]any{
			"name": service, "advertised": true, "accepted": true, "healthyBackends": int64(1), "totalBackends": int64(1),
		}}},
	}
	return errors.Wrap(c.env.Kube.Status().Patch(ctx, m, client.MergeFrom(original)), "cannot write the status of a Machine")
}

// toggle attaches or detaches. Sometimes the provider is killed meanwhile.
func (c *cluster) toggle(ctx context.Context) error {
	crash := c.dice.Float64() < crashes
	delay := time.Duration(c.dice.Int64N(int64(2 * time.Second)))
	done := make(chan error, 1)
	go func() {
		if !crash {
			done <- nil
			return
		}
		if err := harness.Pause(ctx, delay); err != nil {
			done <- err
			return
		}
		if err := c.provider.Kill(); err != nil {
			done <- err
			return
		}
		done <- c.start()
	}()
	return errors.Join(c.set(ctx, !c.attached), <-done)
}

// set attaches the cluster, or detaches it and waits until that is done.
func (c *cluster) set(ctx context.Context, attached bool) error {
	if c.attached == attached {
		return nil
	}
	c.attached = attached
	if attached {
		return errors.Wrap(c.env.Kube.Create(ctx, c.object()), "cannot create the VIPService")
	}
	if err := c.env.Kube.Delete(ctx, c.object()); err != nil {
		return errors.Wrap(err, "cannot delete the VIPService")
	}
	return harness.Eventually(ctx, settleLimit, "the deletion of the VIPService", func(context.Context) error {
		if s, ok := c.tracker.States()[c.id+"/"+objectName]; ok {
			return errors.Errorf("the VIPService exists: %s", s.Message)
		}
		return nil
	})
}

func (c *cluster) object() *unstructured.Unstructured {
	return harness.Object(v1alpha1.VIPServiceKind, c.id, objectName, map[string]any{
		"name":    service,
		"sharing": string(v1alpha1.SharingShared),
		"ports":   []any{"tcp:443"},
		"tags":    []any{"tag:k8s"},
	})
}
