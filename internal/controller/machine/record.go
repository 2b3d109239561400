// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// The provider's record of a machine decides which keys and devices it deletes. The record is in
// annotations of the Machine, because of who may write where (package/charts/tailscale-gateway,
// templates/admission.yaml and rbac.yaml; test/apiserver/testdata/rights.txt):
//
//   - The metadata of a Machine: the provider, and administrators. Crossplane's role crossplane-edit
//     may, too, unless the admission policies of the chart are installed.
//   - The status of a Machine: also its pod. An update of the status changes no metadata
//     (k8s.io/apiextensions-apiserver pkg/registry/customresource/status_strategy.go).
//   - The state Secret: also its pod, and anyone with Kubernetes' role edit in the namespace.
//   - The config Secret: also anyone with Kubernetes' role edit in the namespace.
//
// So Secrets and statuses are hints, which count only if Tailscale's API confirms them.

// annotationRecord is the record of a Machine.
const annotationRecord = "gateway.tailscale.com/machine-record"

// A record is what the provider remembers of a machine.
type record struct {
	// Machine is the UID of the Machine. A Machine that was restored from a backup has another one,
	// and no record: its keys and its login were those of another cluster, or of another time.
	Machine types.UID `json:"machine"`

	// Key is the last key.
	Key keyRecord `json:"key,omitzero"`

	// Retired is the node ID of the device that a newer key replaced. The device was the machine's,
	// and was deleted before the key was created.
	Retired string `json:"retired,omitempty"`

	Login loginRecord `json:"login,omitzero"`
}

// A keyRecord is what the provider remembers of a key.
type keyRecord struct {
	ID     string    `json:"id,omitempty"`
	Issued time.Time `json:"issued,omitzero"`
	Tags   []string  `json:"tags,omitempty"`

	// Unused reports that no node had used the key when it was revoked.
	Unused bool `json:"unused,omitempty"`
}

// recordOf returns a Machine's record, which is empty if there is none.
func recordOf(mg *v1alpha1.Machine) (record, error) {
	r := record{}
	v := mg.GetAnnotations()[annotationRecord]
	if v == "" {
		return r, nil
	}
	if err := json.Unmarshal([]byte(v), &r); err != nil {
		return record{}, errors.Wrapf(err, "cannot read the annotation %s of the Machine, which the provider wrote differently; remove it", annotationRecord)
	}
	if r.Machine != mg.GetUID() {
		return record{}, nil
	}
	return r, nil
}

// exists reports whether the Machine has the record.
func (r record) exists() bool { return r.Machine != "" }

// save writes a Machine's record.
func (e *external) save(ctx context.Context, mg *v1alpha1.Machine, r record) error {
	r.Machine = mg.GetUID()
	b, err := json.Marshal(r)
	if err != nil {
		return errors.Wrap(err, "cannot encode the Machine's record")
	}
	return errors.Wrap(e.annotate(ctx, mg, annotationRecord, map[string]string{annotationRecord: string(b)}), "cannot write the Machine's record")
}

// annotate writes annotations of a Machine. The patch names only these, because the agent may write
// its report at the same time. It fails if the annotation guard is not what it was in mg: a cache
// that is outdated would undo the last write.
func (e *external) annotate(ctx context.Context, mg *v1alpha1.Machine, guard string, annotations map[string]string) error {
	type op struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	const all = "/metadata/annotations"
	path := func(annotation string) string { return all + "/" + strings.ReplaceAll(annotation, "/", "~1") }
	var ops []op
	if existing := mg.GetAnnotations(); len(existing) == 0 {
		ops = []op{{Op: "test", Path: all}, {Op: "add", Path: all, Value: annotations}}
	} else {
		// A test for null holds where there is none (gopkg.in/evanphx/json-patch.v4 patch.go, test,
		// which the API server uses: k8s.io/apiserver pkg/endpoints/handlers/patch.go).
		test := op{Op: "test", Path: path(guard)}
		if v, ok := existing[guard]; ok {
			test.Value = v
		}
		ops = []op{test}
		for k, v := range annotations {
			// An add also replaces (RFC 6902, section 4.1).
			ops = append(ops, op{Op: "add", Path: path(k), Value: v})
		}
	}
	b, err := json.Marshal(ops)
	if err != nil {
		return errors.Wrap(err, "cannot encode patch")
	}
	// A copy, because the answer contains the status of the API server.
	c := mg.DeepCopy()
	if err := e.kube.Patch(ctx, c, client.RawPatch(types.JSONPatchType, b)); err != nil {
		return errors.Wrap(err, "cannot annotate the Machine")
	}
	mg.SetAnnotations(c.GetAnnotations())
	mg.SetResourceVersion(c.GetResourceVersion())
	mg.Status.Agent = c.Status.Agent
	return nil
}

// Annotations of a config Secret in which earlier versions had their record. Anyone with Kubernetes'
// role edit in the namespace can write them.
const (
	hintKeyID   = "gateway.tailscale.com/auth-key-id"
	hintUnused  = "gateway.tailscale.com/auth-key-unused"
	hintTailnet = annotationTailnet
)

// hints are all annotations in which earlier versions had their record.
var hints = []string{
	hintKeyID, hintUnused, hintTailnet, "gateway.tailscale.com/auth-key-issued", "gateway.tailscale.com/auth-key-tags",
	"gateway.tailscale.com/retired-device-id", "gateway.tailscale.com/login",
}

// hinted reports whether a config Secret may have the record of an earlier version. This version
// has a record before a node can log in, and what the Secret says then comes from another writer.
func hinted(r record, config *corev1.Secret) bool {
	return !r.exists() && config != nil && (config.GetAnnotations()[hintKeyID] != "" || config.GetAnnotations()[hintTailnet] != "")
}

// forgetHints removes the record of an earlier version from a config Secret that is about to be
// written.
func forgetHints(config *corev1.Secret) {
	for _, h := range hints {
		delete(config.Annotations, h)
	}
}

// adoptHint returns the record of a Machine that an earlier version made, and saves it. The Secret
// names the key, and the API says whether it is the machine's, and everything else about it. A key
// that the API no longer has is not recorded. The tailnet is recorded if it is the current one.
//
// A retired device is no part of it: earlier versions deleted it before they recorded it. Nor are
// attempts to log in, which begin again.
func (e *external) adoptHint(ctx context.Context, mg *v1alpha1.Machine, r record, config *corev1.Secret) (record, error) {
	if !hinted(r, config) {
		return r, nil
	}
	domain, err := e.api.tailnet.Domain(ctx)
	if err != nil {
		return r, errors.Wrap(err, "cannot learn the tailnet's domain")
	}
	if t := config.GetAnnotations()[hintTailnet]; t != "" && t == domain && mg.GetAnnotations()[annotationTailnet] == "" {
		if err := e.annotate(ctx, mg, annotationTailnet, map[string]string{annotationTailnet: t}); err != nil {
			return r, err
		}
	}
	id := config.GetAnnotations()[hintKeyID]
	k, err := e.ownKey(ctx, mg, id)
	if err != nil {
		return r, err
	}
	if k != nil {
		// An earlier version may have revoked the key since it found the key unused.
		unused := k.Invalid && config.GetAnnotations()[hintUnused] == id
		r.Key = keyRecord{ID: k.ID, Issued: k.Created, Tags: tagsOf(k), Unused: unused}
	}
	if err := e.save(ctx, mg, r); err != nil {
		return r, err
	}
	return recordOf(mg)
}

// ownKey returns the key with the ID, valid or not, or nil if there is none or it is not the
// machine's: only an auth key with the machine's description is.
func (e *external) ownKey(ctx context.Context, mg *v1alpha1.Machine, id string) (*tailscale.Key, error) {
	if !tailscale.ValidKeyID(id) {
		return nil, nil // Nil without an error means that there is none.
	}
	k, err := e.api.keys.AuthKey(ctx, id)
	if tailscale.IsNotFound(err) {
		return nil, nil // Nil without an error means that there is none.
	}
	if err != nil {
		return nil, errors.Wrapf(err, "cannot get auth key %q", id)
	}
	if !tailscale.IsAuthKey(*k) || k.Description != keyDescription(e.clusterID, mg) {
		e.record.Event(mg, event.Warning(reasonKeyRefused, errors.Errorf("key %s, which is recorded as this machine's, is left: it is not one of its auth keys", id)))
		return nil, nil // Nil without an error means that there is none.
	}
	return k, nil
}

// tagsOf returns the tags that a key gives to devices.
func tagsOf(k *tailscale.Key) []string {
	tags := k.Capabilities.Devices.Create.Tags
	if len(tags) == 0 {
		tags = k.Tags
	}
	return slices.Sorted(slices.Values(tags))
}

// deleteKeys removes every key of the machine. Before it deletes an unused key it records that the
// key was unused, because that cannot be found out afterwards. It returns the record.
func (e *external) deleteKeys(ctx context.Context, mg *v1alpha1.Machine, r record) (record, error) {
	ks, err := e.api.keys.KeysByDescription(ctx, keyDescription(e.clusterID, mg))
	if err != nil {
		return r, errors.Wrap(err, "cannot list auth keys")
	}
	var ids []string
	for _, k := range ks {
		ids = append(ids, k.ID)
	}
	if r.Key.ID != "" {
		// The shared list may be older than the key, or than a node's login.
		k, err := e.ownKey(ctx, mg, r.Key.ID)
		if err != nil {
			return r, err
		}
		// A key that is not valid needs no revocation.
		if k != nil && !k.Invalid {
			ids = append(ids, k.ID)
			r.Key.Unused = true
			if err := e.save(ctx, mg, r); err != nil {
				return r, err
			}
		}
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		if err := e.api.keys.RevokeAuthKey(ctx, id); err != nil {
			return r, errors.Wrapf(err, "cannot delete auth key %q", id)
		}
	}
	return r, nil
}

// mayBeUsed returns the time when the machine's last key was issued, if a node may have logged in
// with it. A machine that never got a key has no device. Neither has one whose key was still unused
// when it was revoked: a device that looks like the machine's belongs to another.
func (r record) mayBeUsed() (time.Time, bool) {
	if r.Key.ID == "" || r.Key.Unused {
		return time.Time{}, false
	}
	return r.issued()
}

// issued returns when the last key was issued, if that is known.
func (r record) issued() (time.Time, bool) { return r.Key.Issued, !r.Key.Issued.IsZero() }
