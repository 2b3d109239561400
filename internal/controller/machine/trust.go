// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// A pod writes its state Secret and the status of its Machine, and may name any device of the
// tailnet there. The provider only acts on devices that it has verified to be the Machine's. It
// records them where pods cannot write: in an annotation of the Machine, of which a pod may only
// write the status. A verified device stays verified, even if an admin renames or retags it later.

// claimed returns the name of another Machine that a device belongs to, or "".
func (e *external) claimed(ctx context.Context, mg *v1alpha1.Machine, id string) (string, error) {
	l := &v1alpha1.MachineList{}
	if err := e.kube.List(ctx, l, client.UnsafeDisableDeepCopy); err != nil {
		return "", errors.Wrap(err, "cannot list Machines")
	}
	for i := range l.Items {
		if o := &l.Items[i]; o.GetUID() != mg.GetUID() && meta.NodeIDOf(o) == id {
			return o.GetNamespace() + "/" + o.GetName(), nil
		}
	}
	return "", nil
}

// strange returns why a device that a pod names does not count as its Machine's. It is empty if the
// device does or is verified already, and if there is no device to act on.
func (e *external) strange(ctx context.Context, mg *v1alpha1.Machine, d *tailscale.Device, config *corev1.Secret) (string, error) {
	if d == nil || d.NodeID == meta.NodeIDOf(mg) {
		return "", nil
	}
	if why := mismatch(mg, d, config, wantedTags(e.tags, mg)); why != "" {
		return why, nil
	}
	other, err := e.claimed(ctx, mg, d.NodeID)
	if err != nil || other == "" {
		return "", err
	}
	return "it is that of Machine " + other, nil
}

// mismatch returns how a device differs from one that logged in with the Machine's key. It is empty
// if there is no difference.
func mismatch(mg *v1alpha1.Machine, d *tailscale.Device, config *corev1.Secret, wanted []string) string {
	if given := keyTags(config); !tagged(d, wanted) && !tagged(d, given) {
		return fmt.Sprintf("it has the tags %v, and the machine's key gives it %v", d.Tags, wanted)
	}
	if !strings.EqualFold(d.Hostname, mg.Spec.ForProvider.Hostname) {
		return fmt.Sprintf("its hostname is %q, and the machine's %q", tailscale.OneLine(d.Hostname), mg.Spec.ForProvider.Hostname)
	}
	// The first key is issued after the Machine is made. A device that replaces another one used
	// the last key.
	since := mg.GetCreationTimestamp().Time
	if at, ok := issued(config); ok && meta.NodeIDOf(mg) != "" {
		since = at
	}
	if d.Created.Before(since.Add(-clockSkew)) {
		return fmt.Sprintf("it has been there since %s, and the machine's key since %s", d.Created.UTC().Format(time.RFC3339), since.UTC().Format(time.RFC3339))
	}
	return ""
}

// tagged reports whether a device has all the tags. Without tags it reports false.
func tagged(d *tailscale.Device, tags []string) bool {
	return len(tags) > 0 && !slices.ContainsFunc(tags, func(t string) bool { return !slices.Contains(d.Tags, t) })
}

// keyTags returns the tags of the last key, which may be outdated. It returns none if they are not
// known.
func keyTags(config *corev1.Secret) []string {
	if config == nil {
		return nil
	}
	return strings.Fields(config.GetAnnotations()[annotationKeyTags])
}

// adopt records a device as the Machine's, permanently. The patch names only the annotation,
// because the agent may write its report at the same time. It fails if the cache is outdated:
// otherwise it would drop a device that was adopted in the meantime.
func (e *external) adopt(ctx context.Context, mg *v1alpha1.Machine, id string) error {
	// A copy, because the answer contains the status of the API server.
	c := mg.DeepCopy()
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, meta.AnnotationNodeID, id)
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, meta.AnnotationClusterID, e.clusterID)
	patch := client.MergeFrom(mg)
	if before := meta.NodeIDOf(mg); before != "" {
		type op struct {
			Op    string `json:"op"`
			Path  string `json:"path"`
			Value string `json:"value"`
		}
		path := func(annotation string) string {
			return "/metadata/annotations/" + strings.ReplaceAll(annotation, "/", "~1")
		}
		node := path(meta.AnnotationNodeID)
		// An add also replaces (RFC 6902, section 4.1).
		b, err := json.Marshal([]op{
			{Op: "test", Path: node, Value: before},
			{Op: "replace", Path: node, Value: id},
			{Op: "add", Path: path(meta.AnnotationClusterID), Value: e.clusterID},
		})
		if err != nil {
			return errors.Wrap(err, "cannot encode patch")
		}
		patch = client.RawPatch(types.JSONPatchType, b)
	}
	if err := e.kube.Patch(ctx, c, patch); err != nil {
		return errors.Wrapf(err, "cannot remember device %q", id)
	}
	mg.SetAnnotations(c.GetAnnotations())
	mg.SetResourceVersion(c.GetResourceVersion())
	mg.Status.Agent = c.Status.Agent
	return nil
}
