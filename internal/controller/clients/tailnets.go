// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Reasons of events.
const (
	reasonTailnetMoved     event.Reason = "MovedToTailnet"
	reasonTailnetConfirmed event.Reason = "ConfirmedTailnet"
)

// A Residence describes how the objects of a kind are bound to the tailnet in which they are managed.
// Each field may be nil.
type Residence struct {
	// Joined returns the DNS name of the tailnet of a resource without a record: one of an earlier
	// version, or of a backup. Others may write what it reads: a name only makes the resource wait.
	Joined func(ctx context.Context, mg resource.ModernManaged) (string, error)

	// Forget removes from a resource what it records to have made in the tailnet that it leaves.
	Forget func(ctx context.Context, mg resource.ModernManaged) error

	// Events receives the changes of a resource's tailnet.
	Events event.Recorder
}

// Residing returns a connector for the kind with the residence.
func (c *Connector) Residing(r Residence) *Connector {
	out := *c
	out.residence = r
	return &out
}

// A verdict says whether a client leads to the recorded tailnet.
type verdict int

const (
	tailnetUnknown verdict = iota
	tailnetSame
	tailnetOther
)

// judge compares the tailnet of a client with the recorded one. Only two values of the same kind say
// that the tailnets are different. A credential leads to one tailnet permanently, so that with the same
// credential another domain is a new name.
func judge(recorded, client tailscale.TailnetIdentity) verdict {
	switch {
	case sameCredential(recorded, client):
		return tailnetSame
	case recorded.ID != "" && client.ID != "":
		return equal(recorded.ID, client.ID)
	case recorded.Domain != "" && client.Domain != "":
		return equal(recorded.Domain, client.Domain)
	}
	return tailnetUnknown
}

func equal(a, b string) verdict {
	if a == b {
		return tailnetSame
	}
	return tailnetOther
}

func sameCredential(a, b tailscale.TailnetIdentity) bool {
	return a.Credential != "" && a.Credential == b.Credential && a.URL == b.URL
}

// merged returns the record of a resource that is in the tailnet of a client. Values that the client
// does not know stay.
func merged(recorded, client tailscale.TailnetIdentity) tailscale.TailnetIdentity {
	client.ID, client.Domain = cmp.Or(client.ID, recorded.ID), cmp.Or(client.Domain, recorded.Domain)
	return client
}

// reside returns an error unless a client leads to the tailnet in which the resource is managed. The
// record of that tailnet is beside the resource's permit, where users cannot write. It is written
// before the resource makes anything, and completed under the same credential.
//
// All managed resources pass it: there is no other way to a client than Connect.
func (c *Connector) reside(ctx context.Context, pc config, mg resource.ModernManaged, cl *tailscale.Client) error {
	recorded, err := c.recorded(ctx, mg)
	if err != nil {
		return err
	}
	client := cl.Tailnet().KnownTailnetIdentity()
	fresh := recorded == tailscale.TailnetIdentity{}
	if fresh || sameCredential(recorded, client) {
		if xpmeta.WasDeleted(mg) {
			return nil
		}
		if !recorded.Known() {
			identity, err := cl.Tailnet().TailnetIdentity(ctx)
			if leadsNowhere(err) {
				return nil
			}
			// Without an answer, the credential identifies the tailnet, and a later call completes the record.
			client = identity
		}
		return c.record(ctx, mg, merged(recorded, client))
	}
	if client, err = cl.Tailnet().TailnetIdentity(ctx); err != nil {
		return errors.Wrap(err, "cannot learn to which tailnet the changed credential leads")
	}
	v := judge(recorded, client)
	if v == tailnetSame {
		return c.record(ctx, mg, merged(recorded, client))
	}
	if v == tailnetUnknown && recorded.Credential == "" && xpmeta.WasDeleted(mg) {
		// Only the resource itself shows its tailnet. The record goes before the resource does, with what
		// that had in the tailnet, which may have been the last device.
		return nil
	}
	switch {
	case says(meta.AnnotationSameTailnet, client, mg.GetAnnotations(), pc.annotations):
		if err := c.record(ctx, mg, client); err != nil {
			return err
		}
		c.report(mg, event.Normal(reasonTailnetConfirmed, fmt.Sprintf("Annotation %s says that %s is the tailnet from before, %s", meta.AnnotationSameTailnet, nameIn(client), nameIn(recorded))))
		return nil
	case says(meta.AnnotationMoveToTailnet, client, mg.GetAnnotations(), pc.annotations):
		return c.move(ctx, mg, recorded, client)
	}
	return c.refuseTailnet(pc, mg, v, recorded, client)
}

// leadsNowhere reports whether an error means that a credential leads to no tailnet: nothing can be made
// with it, and a user corrects it.
func leadsNowhere(err error) bool {
	c := tailscale.ClassOf(err)
	return c == tailscale.ClassUnauthorized || c == tailscale.ClassTailnetNotFound
}

// recorded returns the recorded tailnet of a resource. It is empty if there is none.
func (c *Connector) recorded(ctx context.Context, mg resource.ModernManaged) (tailscale.TailnetIdentity, error) {
	s, err := c.permits.Tailnet(ctx, mg.GetUID())
	if err != nil {
		return tailscale.TailnetIdentity{}, errors.Wrap(err, "cannot read the tailnet of the resource")
	}
	if s != "" {
		return decodeTailnet(s)
	}
	if c.residence.Joined == nil {
		return tailscale.TailnetIdentity{}, nil
	}
	domain, err := c.residence.Joined(ctx, mg)
	return tailscale.TailnetIdentity{Domain: domain}, err
}

// record stores the tailnet of a resource, unless the resource is being deleted: it then makes nothing.
func (c *Connector) record(ctx context.Context, mg resource.ModernManaged, i tailscale.TailnetIdentity) error {
	if xpmeta.WasDeleted(mg) {
		return nil
	}
	return errors.Wrap(c.permits.SetTailnet(ctx, mg.GetUID(), encodeTailnet(i)), "cannot record the tailnet of the resource")
}

// move makes a resource start again in the tailnet of a client. The objects that it made in the recorded
// one stay there. Its records go first: they must not count in another tailnet, where others may have the
// same.
func (c *Connector) move(ctx context.Context, mg resource.ModernManaged, recorded, client tailscale.TailnetIdentity) error {
	if c.residence.Forget != nil {
		if err := c.residence.Forget(ctx, mg); err != nil {
			return errors.Wrap(err, "cannot forget what the resource made in another tailnet")
		}
	}
	if err := c.permits.Move(ctx, mg.GetUID(), encodeTailnet(client)); err != nil {
		return errors.Wrap(err, "cannot record the tailnet of the resource")
	}
	c.report(mg, event.Normal(reasonTailnetMoved, fmt.Sprintf("Annotation %s moves the object to the tailnet %s; what it made in the tailnet %s stays there", meta.AnnotationMoveToTailnet, nameIn(client), nameIn(recorded))))
	return nil
}

// says reports whether one of the annotations with the key has a name of the tailnet as its value.
func says(key string, i tailscale.TailnetIdentity, annotations ...map[string]string) bool {
	return slices.ContainsFunc(annotations, func(a map[string]string) bool { return slices.Contains(i.Names(), a[key]) })
}

// refuseTailnet returns the error of a resource that is managed in another tailnet than that of a
// client, or in one of which this is not known.
func (c *Connector) refuseTailnet(pc config, mg resource.ModernManaged, v verdict, recorded, client tailscale.TailnetIdentity) error {
	if len(client.Names()) == 0 {
		return errors.New("the credential of the provider config has no name")
	}
	name, current, previous := tailscale.OneLine(client.Names()[0]), tailscale.OneLine(nameIn(client)), tailscale.OneLine(nameIn(recorded))
	e := &CredentialsError{
		Reason: meta.ReasonTailnetChanged,
		Message: fmt.Sprintf("%s %q now leads to the tailnet %s, and the object is managed in the tailnet %s, where it stays unchanged; change the config back. "+
			"Or annotate the object, or the config for all of its objects, with %s=%s to leave what the object made in %s and begin again in %s, or with %s=%s if the tailnet was only renamed",
			pc.kind, pc.name, current, previous, meta.AnnotationMoveToTailnet, name, previous, current, meta.AnnotationSameTailnet, name),
	}
	if v == tailnetUnknown {
		e = &CredentialsError{
			Reason: meta.ReasonTailnetUnknown,
			Message: fmt.Sprintf("The credential of %s %q changed, and nothing shows whether %s leads to the tailnet %s, where the object is managed: one of them had no devices, or may not read them (scope devices:core:read). "+
				"Annotate the object, or the config for all of its objects, with %s=%s if it does. If not, change the config back, or annotate with %s=%s to leave what the object made there and begin again",
				pc.kind, pc.name, name, previous, meta.AnnotationSameTailnet, name, meta.AnnotationMoveToTailnet, name),
		}
	}
	if mg.GetCondition(xpv2.TypeReady).Reason != e.Reason {
		c.report(mg, event.Warning(event.Reason(e.Reason), e))
	}
	return e
}

func (c *Connector) report(mg resource.ModernManaged, e event.Event) {
	if c.residence.Events != nil {
		c.residence.Events.Event(mg, e)
	}
}

// nameIn returns the name of a tailnet in messages.
func nameIn(i tailscale.TailnetIdentity) string {
	switch {
	case i.ID != "" && i.Domain != "":
		return fmt.Sprintf("%s (%s)", i.Domain, i.ID)
	case i.Known():
		return i.Names()[0]
	}
	return "of the credential " + i.Credential
}

// Keys of a recorded tailnet.
const (
	keyTailnetID  = "id"
	keyDomain     = "domain"
	keyCredential = "credential"
	keyURL        = "url"
)

// encodeTailnet returns the stored form of an identity, which has no spaces.
func encodeTailnet(i tailscale.TailnetIdentity) string {
	v := url.Values{}
	for key, value := range map[string]string{keyTailnetID: i.ID, keyDomain: i.Domain, keyCredential: i.Credential, keyURL: i.URL} {
		if value != "" {
			v.Set(key, value)
		}
	}
	return v.Encode()
}

// decodeTailnet returns the identity with a stored form.
func decodeTailnet(s string) (tailscale.TailnetIdentity, error) {
	v, err := url.ParseQuery(s)
	i := tailscale.TailnetIdentity{ID: v.Get(keyTailnetID), Domain: v.Get(keyDomain), Credential: v.Get(keyCredential), URL: v.Get(keyURL)}
	if err != nil || i == (tailscale.TailnetIdentity{}) {
		// Unknown is not none: the resource waits instead of acting in any tailnet.
		return i, errors.New("cannot read the recorded tailnet of the resource in the provider's permits")
	}
	return i, nil
}
