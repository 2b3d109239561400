// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
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

// A pod writes its state Secret and the status of its Machine, and may name any device of
// the tailnet there. The provider acts on devices of which it has seen itself that they
// are the Machine's, and remembers them where pods cannot write: in an annotation of the
// Machine, since a pod may write the status alone. What was trusted once stays so, however
// an admin names or tags the device later.

// validNodeID is what node IDs look like. Others would be parts of a path.
var validNodeID = regexp.MustCompile(`^[A-Za-z0-9]{1,64}$`)

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

// strange returns why a device that a pod names is not taken for its Machine's. It is empty
// if the device is, or is trusted already, and if there is none, so nothing to act on.
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

// mismatch returns in which way a device is not as the Machine's must be. It is empty if it is
// as one that logged in with the Machine's key.
func mismatch(mg *v1alpha1.Machine, d *tailscale.Device, config *corev1.Secret, wanted []string) string {
	if given := keyTags(config); !tagged(d, wanted) && !tagged(d, given) {
		return fmt.Sprintf("it has the tags %v, and the machine's key gives it %v", d.Tags, wanted)
	}
	if !strings.EqualFold(d.Hostname, mg.Spec.ForProvider.Hostname) {
		return fmt.Sprintf("its hostname is %q, and the machine's %q", tailscale.OneLine(d.Hostname), mg.Spec.ForProvider.Hostname)
	}
	// The first key comes after the Machine. A device in place of another one used the
	// last key.
	since := mg.GetCreationTimestamp().Time
	if at, ok := issued(config); ok && meta.NodeIDOf(mg) != "" {
		since = at
	}
	if d.Created.Before(since.Add(-clockSkew)) {
		return fmt.Sprintf("it has been there since %s, and the machine's key since %s", d.Created.UTC().Format(time.RFC3339), since.UTC().Format(time.RFC3339))
	}
	return ""
}

// tagged reports whether a device has all of some tags. No tags mean no.
func tagged(d *tailscale.Device, tags []string) bool {
	return len(tags) > 0 && !slices.ContainsFunc(tags, func(t string) bool { return !slices.Contains(d.Tags, t) })
}

// keyTags are those of the last key, which may not be wanted any more. None if they are
// not known.
func keyTags(config *corev1.Secret) []string {
	if config == nil {
		return nil
	}
	return strings.Fields(config.GetAnnotations()[annotationKeyTags])
}

// adopt a device, for good. The patch names the annotation alone, since the agent may
// write its report meanwhile. It fails where a cache lags behind: the device that was
// adopted since would be forgotten.
func (e *external) adopt(ctx context.Context, mg *v1alpha1.Machine, id string) error {
	// A copy: the answer has the status as it is there.
	c := mg.DeepCopy()
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, meta.AnnotationNodeID, id)
	patch := client.MergeFrom(mg)
	if before := meta.NodeIDOf(mg); before != "" {
		type op struct {
			Op    string `json:"op"`
			Path  string `json:"path"`
			Value string `json:"value"`
		}
		path := "/metadata/annotations/" + strings.ReplaceAll(meta.AnnotationNodeID, "/", "~1")
		b, err := json.Marshal([]op{{Op: "test", Path: path, Value: before}, {Op: "replace", Path: path, Value: id}})
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
