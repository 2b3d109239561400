// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"tailscale.com/kube/kubetypes"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Reasons of events.
const (
	reasonKeyIssued     event.Reason = "IssuedAuthKey"
	reasonKeyRefused    event.Reason = "RefusedAuthKey"
	reasonDeviceJoined  event.Reason = "DeviceJoined"
	reasonDeviceDeleted event.Reason = "DeletedDevice"
	reasonDeviceUnclear event.Reason = "CannotIdentifyDevice"
	reasonDeviceRefused event.Reason = "RefusedDevice"
	reasonCannotLogIn   event.Reason = "CannotLogIn"
	reasonRestarted     event.Reason = "RestartedNode"
)

// stateDeletedGrace is how long a state Secret is kept that is being deleted although its Machine
// is not: in a namespace that is being deleted the Machine follows.
const stateDeletedGrace = 10 * time.Second

// An api is the part of a tailnet's API that this controller needs.
type api struct {
	devices devicesAPI
	keys    keysAPI
	tailnet tailnetAPI
}

type devicesAPI interface {
	Devices(ctx context.Context, staleness tailscale.Staleness) ([]tailscale.Device, error)
	Device(ctx context.Context, nodeID string) (*tailscale.Device, error)
	DeleteDevice(ctx context.Context, nodeID string) error
	SetDeviceTags(ctx context.Context, nodeID string, tags []string) error
}

type keysAPI interface {
	KeysByDescription(ctx context.Context, description string) ([]tailscale.Key, error)
	AuthKey(ctx context.Context, id string) (*tailscale.Key, error)
	CreateAuthKey(ctx context.Context, r tailscale.AuthKeyRequest) (*tailscale.Key, error)
	RevokeAuthKey(ctx context.Context, id string) error
}

type tailnetAPI interface {
	Domain(ctx context.Context) (string, error)
}

// A connection is a tailnet and the further settings of the provider config.
type connection struct {
	api        *api
	clusterID  string
	controlURL string
	tags       []string
}

type connector struct {
	kube    client.Client
	connect func(ctx context.Context, mg resource.ModernManaged) (connection, error)
	record  event.Recorder
	clock   func() time.Time
}

// Connect connects to the tailnet. The deletion of a machine that never got a key needs no
// connection.
func (c *connector) Connect(ctx context.Context, mg *v1alpha1.Machine) (managed.TypedExternalClient[*v1alpha1.Machine], error) {
	e := &external{kube: c.kube, record: c.record, clock: c.clock}
	if xpmeta.WasDeleted(mg) {
		s, err := getSecrets(ctx, c.kube, mg)
		if err != nil {
			return nil, err
		}
		if !mayExist(mg, s) {
			return e, nil
		}
	}
	conn, err := c.connect(ctx, mg)
	if err != nil {
		return nil, err
	}
	e.connection = conn
	return e, nil
}

// mayExist reports whether a key or a device may have been made for the machine. Its Secrets are
// made before its first key, and the state Secret stays until the end.
func mayExist(mg *v1alpha1.Machine, s podSecrets) bool {
	if unclaimed(mg, s) {
		// The device may be another cluster's.
		return false
	}
	return s.state != nil || s.config != nil || meta.NodeIDOf(mg) != ""
}

type external struct {
	connection // Without an API client if there is nothing to clean up.

	kube   client.Client
	record event.Recorder
	clock  func() time.Time
}

// Observe observes the machine's Secrets and its device. It reports that a machine exists unless
// the machine is being deleted, so that Update prepares it: the managed reconciler writes two
// annotations for a Create, and each write of a composed resource counts against its composite in
// Crossplane's circuit breaker.
func (e *external) Observe(ctx context.Context, mg *v1alpha1.Machine) (managed.ExternalObservation, error) {
	if e.api == nil {
		return managed.ExternalObservation{}, nil
	}
	s, err := getSecrets(ctx, e.kube, mg)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	r, err := recordOf(mg)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if xpmeta.WasDeleted(mg) {
		remaining, err := e.remains(ctx, mg, s)
		return managed.ExternalObservation{ResourceExists: remaining, ResourceUpToDate: true}, err
	}
	if unclaimed(mg, s) {
		c, err := e.waitsForRestore(ctx, mg, s)
		if err != nil {
			return managed.ExternalObservation{}, err
		}
		if c != nil {
			mg.SetConditions(*c)
			return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
		}
	}
	if !s.complete() {
		mg.SetConditions(waitingForLogin(mg))
		return managed.ExternalObservation{ResourceExists: true}, nil
	}
	if hinted(r, s.config) {
		return managed.ExternalObservation{ResourceExists: true}, nil
	}
	p, d, err := e.plan(ctx, mg, r, s)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	e.report(mg, p, d, authKeyOf(s.config.Data[meta.ConfigKey]) != "")
	observeTailscaled(mg)
	if at := s.state.GetDeletionTimestamp(); at != nil {
		mg.SetConditions(xpv2.Unavailable().WithMessage("The state Secret was deleted; it is made again"))
		return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: e.clock().Before(at.Add(stateDeletedGrace))}, nil
	}
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: p.done() && s.state.GetLabels()[meta.LabelBackup] != ""}, nil
}

// plan looks up the device and decides what the machine needs.
func (e *external) plan(ctx context.Context, mg *v1alpha1.Machine, r record, s podSecrets) (plan, *tailscale.Device, error) {
	_, keyRequested := s.state.Data[kubetypes.KeyReissueAuthkey]
	first := tailscale.Cached
	if keyRequested || r.Login.open() {
		// Whether the device is usable and connected decides what the node gets.
		first = tailscale.Recent
	}
	d, err := e.device(ctx, nodeIDOfState(s.state), first)
	if err != nil {
		return plan{}, nil, err
	}
	other := false
	if r.Login.exhausted() {
		if other, err = e.otherLogin(ctx, mg, r.Login); err != nil {
			return plan{}, nil, err
		}
	}
	strange, err := e.strange(ctx, mg, d, r, firstUse(mg, r))
	if err != nil {
		return plan{}, nil, err
	}
	if strange != "" {
		d = nil
	}
	p, err := makePlan(mg, facts{
		state:      s.state,
		config:     s.config,
		record:     r,
		device:     d,
		strange:    strange,
		clusterID:  e.clusterID,
		controlURL: e.controlURL,
		tags:       wantedTags(e.tags, mg),
		at:         e.clock(),
		otherLogin: other,
		silent:     silent(mg.Status.Agent),
	})
	return p, d, err
}

// device returns the device with the node ID from the shared list, of the first staleness at most,
// or nil if there is none. A device may have joined after the list was made, so device asks the API
// for one that the list lacks.
func (e *external) device(ctx context.Context, id string, first tailscale.Staleness) (*tailscale.Device, error) {
	if id == "" {
		return nil, nil // Nil without an error means that there is none.
	}
	// A device that is missing or offline may have joined since the cached list was made.
	for _, staleness := range []tailscale.Staleness{first, tailscale.Recent} {
		all, err := e.api.devices.Devices(ctx, staleness)
		if err != nil {
			return nil, errors.Wrap(err, "cannot list devices")
		}
		i := slices.IndexFunc(all, func(d tailscale.Device) bool { return d.NodeID == id })
		if i >= 0 && (all[i].ConnectedToControl || staleness != tailscale.Cached) {
			return &all[i], nil
		}
		if i < 0 {
			break
		}
	}
	d, err := e.api.devices.Device(ctx, id)
	// The API also finds a device by its old ID.
	if tailscale.IsNotFound(err) || err == nil && d.NodeID != id {
		return nil, nil // Nil without an error means that there is none.
	}
	return d, errors.Wrap(err, "cannot get device")
}

// report sets the status. It does not change what the agent reports.
func (e *external) report(mg *v1alpha1.Machine, p plan, d *tailscale.Device, hasKey bool) {
	previous := mg.Status.AtProvider
	// The node ID is kept when its device is gone.
	o := v1alpha1.MachineObservation{KeyIssued: hasKey, NodeID: p.nodeID}
	if o.NodeID == "" || p.replaced != "" {
		o.NodeID = meta.NodeIDOf(mg)
	}
	switch {
	case p.refused != "":
		c := xpv2.Unavailable().WithMessage("The pod names a device that is not this machine's: " + p.refused + ". The provider does nothing with it")
		c.Reason = meta.ReasonDeviceRefused
		if mg.GetCondition(xpv2.TypeReady).Message != c.Message {
			e.record.Event(mg, event.Warning(reasonDeviceRefused, errors.New(c.Message)))
		}
		mg.SetConditions(c)
	case p.keyRequested:
		mg.SetConditions(xpv2.Unavailable().WithMessage("The node could not log in and asked for a new auth key" + loginErrorOf(mg)))
	case d == nil && p.nodeID == "":
		mg.SetConditions(waitingForLogin(mg))
	case d == nil:
		mg.SetConditions(xpv2.Unavailable().WithMessage("The device was deleted; waiting for the node to ask for a new auth key"))
	default:
		o.Name, o.Hostname = d.Name, d.Hostname
		o.Addresses, o.Tags = slices.Clone(d.Addresses), slices.Clone(d.Tags)
		slices.Sort(o.Tags)
		o.Online, o.Authorized = &d.ConnectedToControl, &d.Authorized
		// The time of a connected device would differ at each observation.
		if !d.ConnectedToControl && d.LastSeen != nil && !d.LastSeen.IsZero() {
			o.LastSeen = &metav1.Time{Time: d.LastSeen.UTC().Truncate(time.Second)}
		}
		if previous.NodeID != d.NodeID || previous.Name == "" {
			e.record.Event(mg, event.Normal(reasonDeviceJoined, "Device "+d.Name+" joined the tailnet"))
		}
		ready := xpv2.Available()
		switch {
		case d.TailnetLockError != "":
			ready = xpv2.Unavailable().WithMessage(tailscale.LockedOut(*d))
			ready.Reason = meta.ReasonTailnetLocked
		case p.failing || !d.ConnectedToControl && loginErrorOf(mg) != "":
			ready = cannotLogIn(mg)
		case !d.Authorized:
			ready = xpv2.Unavailable().WithMessage("The device waits for an admin's approval in the tailnet")
		}
		mg.SetConditions(ready)
	}
	reportNetwork(mg)
	mg.Status.AtProvider = o
}

// reportNetwork sets the condition NetworkReady from the agent's report. A machine without a
// problem has none, unless it had one before.
func reportNetwork(mg *v1alpha1.Machine) {
	a := mg.Status.Agent
	previous := mg.GetCondition(meta.TypeNetworkReady)
	switch {
	case a != nil && a.Network != nil:
		mg.SetConditions(xpv2.Condition{
			Type: meta.TypeNetworkReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now(),
			Reason: xpv2.ConditionReason(a.Network.Reason), Message: a.Network.Message,
		})
	case a != nil && previous.Status == corev1.ConditionFalse:
		mg.SetConditions(xpv2.Condition{Type: meta.TypeNetworkReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(), Reason: meta.ReasonNetworkUsable})
	}
}

func waitingForLogin(mg *v1alpha1.Machine) xpv2.Condition {
	return xpv2.Creating().WithMessage("Waiting for the node to log in with its auth key" + loginErrorOf(mg))
}

// cannotLogIn returns the condition of a machine with a usable device whose node cannot log in.
func cannotLogIn(mg *v1alpha1.Machine) xpv2.Condition {
	c := xpv2.Unavailable().WithMessage("The node cannot log in, although its device is in the tailnet and authorized; it keeps its identity, and its container is restarted, " +
		"at growing intervals, until the control server lets it in" + loginErrorOf(mg))
	c.Reason = meta.ReasonLoginFailed
	return c
}

// loginErrorOf returns what the node's agent reports about the login, to end a message, or "".
func loginErrorOf(mg *v1alpha1.Machine) string {
	if mg.Status.Agent == nil {
		return ""
	}
	return tailscale.NodeReport(mg.Status.Agent.LoginError)
}

// Create creates the Secrets and the first key.
func (e *external) Create(ctx context.Context, mg *v1alpha1.Machine) (managed.ExternalCreation, error) {
	return managed.ExternalCreation{}, e.ensure(ctx, mg)
}

// Update updates the config, the key and the device's tags.
func (e *external) Update(ctx context.Context, mg *v1alpha1.Machine) (managed.ExternalUpdate, error) {
	return managed.ExternalUpdate{}, e.ensure(ctx, mg)
}

// ensure executes the plan, which it makes from fresh data.
func (e *external) ensure(ctx context.Context, mg *v1alpha1.Machine) error {
	s, err := getSecrets(ctx, e.kube, mg)
	if err != nil {
		return err
	}
	if unclaimed(mg, s) {
		if c, err := e.waitsForRestore(ctx, mg, s); err != nil || c != nil {
			return errors.Wrap(err, "cannot take over the device of a backup")
		}
	}
	if s, err = ensureSecrets(ctx, e.kube, mg, s); err != nil {
		return err
	}
	r, err := recordOf(mg)
	if err != nil {
		return err
	}
	if r, err = e.adoptHint(ctx, mg, r, s.config); err != nil {
		return err
	}
	p, _, err := e.plan(ctx, mg, r, s)
	if err != nil {
		return err
	}
	if old := p.replaced; old != "" {
		if err := e.api.devices.DeleteDevice(ctx, old); err != nil {
			return errors.Wrapf(err, "cannot delete replaced device %q", old)
		}
		e.record.Event(mg, event.Normal(reasonDeviceDeleted, "Deleted device "+old+", which the node replaced"))
	}
	if p.adopt {
		if err := e.adopt(ctx, mg, p.nodeID, p.tailnet); err != nil {
			return err
		}
		mg.Status.AtProvider.NodeID = p.nodeID
	}
	if p.setTags {
		if err := e.api.devices.SetDeviceTags(ctx, p.nodeID, wantedTags(e.tags, mg)); err != nil {
			return errors.Wrap(err, "cannot set the device's tags")
		}
	}
	if p.issueKey {
		return e.issueKey(ctx, mg, r, s, p)
	}
	previous := r.Login
	if p.login != nil {
		r.Login = *p.login
		if err := e.save(ctx, mg, r); err != nil {
			return err
		}
	}
	if p.writeConfig {
		if err := e.writeConfig(ctx, mg, r, s, p); err != nil {
			return err
		}
	}
	if p.failing && !previous.open() {
		e.record.Event(mg, event.Warning(reasonCannotLogIn, errors.New("the node cannot log in and asked for an auth key; it gets none, because its device is in the tailnet and authorized"+loginErrorOf(mg))))
	}
	if !p.withdraw {
		return nil
	}
	// The record was written before, so that the request is not forgotten.
	return withdrawRequest(ctx, e.kube, s.state)
}

// writeConfig writes the config Secret.
func (e *external) writeConfig(ctx context.Context, mg *v1alpha1.Machine, r record, s podSecrets, p plan) error {
	s.config.Data = map[string][]byte{meta.ConfigKey: p.config}
	forgetHints(s.config)
	r.Login.request(s.config)
	if err := e.kube.Update(ctx, s.config); err != nil {
		return errors.Wrap(err, "cannot update config Secret")
	}
	if p.restart {
		e.record.Event(mg, event.Normal(reasonRestarted, "Asked the agent to have the container restarted, because the node cannot log in"))
	}
	// Set here, the next observation needs no separate write for it.
	mg.Status.AtProvider.KeyIssued = authKeyOf(p.config) != ""
	return nil
}

// issueKey mints a key, records it, and puts it into the config. It first deletes the machine's
// existing keys: their secrets are lost, or the node could not use them. A key that was not recorded
// is found by its description, and no node can have used it. A key in the config is recorded.
func (e *external) issueKey(ctx context.Context, mg *v1alpha1.Machine, r record, s podSecrets, p plan) error {
	tags := wantedTags(e.tags, mg)
	if len(tags) == 0 {
		return errors.New("a machine needs a tag: set spec.forProvider.tags, or tags of the provider config")
	}
	if p.retire != "" {
		if err := e.api.devices.DeleteDevice(ctx, p.retire); err != nil {
			return errors.Wrapf(err, "cannot delete retired device %q", p.retire)
		}
		if p.lastResort {
			e.record.Event(mg, event.Warning(reasonCannotLogIn, errors.New("the node cannot log in after all restarts, while other machines can; it joins as another device")))
		}
		e.record.Event(mg, event.Normal(reasonDeviceDeleted, "Deleted device "+p.retire+" whose node asked for a new auth key"))
	}
	r, err := e.deleteKeys(ctx, mg, r)
	if err != nil {
		return err
	}
	k, err := e.api.keys.CreateAuthKey(ctx, tailscale.AuthKeyRequest{
		Preauthorized: true,
		Description:   keyDescription(e.clusterID, mg),
		Tags:          tags,
		Expiry:        keyExpiry,
	})
	if err != nil {
		return errors.Wrap(err, "cannot create auth key")
	}
	config, err := nodeConfig(mg, e.controlURL, k.Key)
	if err != nil {
		return err
	}
	r.Key = keyRecord{ID: k.ID, Issued: e.clock().UTC().Truncate(time.Second), Tags: tags}
	if p.retire != "" {
		r.Retired = p.retire
	}
	if r.Login.open() {
		// The node that joins is another device.
		r.Login = loginRecord{}
	}
	if err := e.save(ctx, mg, r); err != nil {
		return err
	}
	forgetHints(s.config)
	s.config.Data = map[string][]byte{meta.ConfigKey: config}
	if err := e.kube.Update(ctx, s.config); err != nil {
		return errors.Wrap(err, "cannot write auth key to config Secret")
	}
	mg.Status.AtProvider.KeyIssued = true
	// The managed reconciler added its finalizer after Observe, and the answer overwrote the
	// unwritten status.
	if p.nodeID == "" {
		mg.SetConditions(waitingForLogin(mg))
	}
	e.record.Event(mg, event.Normal(reasonKeyIssued, "Issued auth key "+k.ID))
	return nil
}

// Disconnect does nothing, because clients are shared.
func (e *external) Disconnect(context.Context) error { return nil }
