// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

// TestOfficialClient makes the calls of the official client that no other test makes.
func TestOfficialClient(t *testing.T) {
	r := simtest.StartAPI(t)
	puppets(t, r, "nA")
	c, ctx := r.Client(t), t.Context()

	t.Run("Attributes", func(t *testing.T) {
		at := time.Date(2099, 1, 2, 3, 4, 5, 0, time.UTC)
		mustDo(t, c.Devices().SetPostureAttribute(ctx, "nA", "custom:a", tailscale.DevicePostureAttributeRequest{Value: true, Expiry: tailscale.Time{Time: at}, Comment: "why"}))
		got := must[*tailscale.DevicePostureAttributes](t)(c.Devices().GetPostureAttributes(ctx, "nA"))
		if got.Attributes["custom:a"] != true || !got.Expiries["custom:a"].Equal(at) {
			t.Errorf("attributes: %+v", got)
		}
	})
	t.Run("Device", func(t *testing.T) {
		mustDo(t, c.TailnetSettings().Update(ctx, tailscale.UpdateTailnetSettingsRequest{PostureIdentityCollectionOn: tailscale.PointerTo(true)}))
		r.SetDeviceFacts("nA", tailnetsim.DeviceFacts{SerialNumbers: []string{"one"}, TailnetLockKey: "nlpub:1"})
		got := must[*tailscale.Device](t)(c.Devices().GetWithAllFields(ctx, "nA"))
		if diff := cmp.Diff(&tailscale.DevicePostureIdentity{SerialNumbers: []string{"one"}}, got.PostureIdentity); diff != "" || got.TailnetLockKey != "nlpub:1" {
			t.Errorf("device: %q, -want, +got:\n%s", got.TailnetLockKey, diff)
		}
		mustDo(t, c.Devices().SetName(ctx, "nA", "A.b"))
		if got := must[*tailscale.Device](t)(c.Devices().Get(ctx, "nA")); got.Name != "a-b."+r.Domain() {
			t.Errorf("name: %q", got.Name)
		}
	})
	t.Run("Policy", func(t *testing.T) {
		mustDo(t, c.PolicyFile().Set(ctx, "{}", ""))
		mustDo(t, c.PolicyFile().Set(ctx, "", ""))
		if raw := must[*tailscale.RawACL](t)(c.PolicyFile().Raw(ctx)); raw.HuJSON != tailnetsim.DefaultPolicy {
			t.Errorf("an empty policy file resets it: %s", raw.HuJSON)
		}
		acl := must[*tailscale.ACL](t)(c.PolicyFile().Get(ctx))
		must[*tailscale.ACL](t)(c.PolicyFile().SetAndGet(ctx, *acl, acl.ETag))
		// The client takes a warning for a failure, which it is not: the policy can be
		// set. Its newer callers must read the message.
		set(t, r, func(w *tailnetsim.Switches) { w.UnsyncedGroups = []string{"group:scim"} })
		warned := `{"tagOwners": {"tag:k8s-operator": [], "tag:k8s": ["tag:k8s-operator"]}, "grants": [{"src": ["group:scim"], "dst": ["*"], "ip": ["*"]}]}`
		if err := c.PolicyFile().Validate(ctx, warned); err == nil || !strings.Contains(err.Error(), "warning(s) found") {
			t.Errorf("validate: %v", err)
		}
		mustDo(t, c.PolicyFile().Set(ctx, warned, ""))
	})
	t.Run("Logging", func(t *testing.T) {
		id := must[*tailscale.AWSExternalID](t)(c.Logging().CreateOrGetAwsExternalId(ctx, true))
		again := must[*tailscale.AWSExternalID](t)(c.Logging().CreateOrGetAwsExternalId(ctx, true))
		if diff := cmp.Diff(id, again); diff != "" || id.ExternalID == "" {
			t.Errorf("a reusable id: -first, +second:\n%s", diff)
		}
		mustDo(t, c.Logging().ValidateAWSTrustPolicy(ctx, id.ExternalID, "arn:aws:iam::000000000000:role/r"))
		mustDo(t, c.Logging().SetLogstreamConfiguration(ctx, tailscale.LogTypeNetwork, tailscale.SetLogstreamConfigurationRequest{
			DestinationType: tailscale.LogstreamS3Endpoint, S3Bucket: "b", S3Region: "r", S3AuthenticationType: tailscale.S3RoleARNAuthentication,
			S3RoleARN: "arn:aws:iam::000000000000:role/r", S3ExternalID: id.ExternalID,
		}))
		if next := must[*tailscale.AWSExternalID](t)(c.Logging().CreateOrGetAwsExternalId(ctx, true)); next.ExternalID == id.ExternalID {
			t.Error("an id that a stream uses is given again")
		}
		got := must[*tailscale.LogstreamConfiguration](t)(c.Logging().LogstreamConfiguration(ctx, tailscale.LogTypeNetwork))
		if got.S3ExternalID != id.ExternalID {
			t.Errorf("stream: %+v", got)
		}
		mustDo(t, c.Logging().GetNetworkFlowLogs(ctx, tailscale.NetworkFlowLogsRequest{Start: time.Now().Add(-time.Hour), End: time.Now()}, func(tailscale.NetworkFlowLog) error { return nil }))
	})
	t.Run("Users", func(t *testing.T) {
		all := must[[]tailscale.User](t)(c.Users().List(ctx, nil, nil))
		if len(all) != 1 || all[0].Role != tailscale.UserRoleOwner {
			t.Fatalf("users: %+v", all)
		}
		one := must[*tailscale.User](t)(c.Users().Get(ctx, all[0].ID))
		if diff := cmp.Diff(all[0], *one); diff != "" {
			t.Errorf("user: -listed, +got:\n%s", diff)
		}
		shared := must[[]tailscale.User](t)(c.Users().List(ctx, tailscale.PointerTo(tailscale.UserTypeShared), nil))
		if len(shared) != 0 {
			t.Errorf("shared users: %+v", shared)
		}
	})
	t.Run("Webhooks", func(t *testing.T) {
		if hooks := must[[]tailscale.Webhook](t)(c.Webhooks().List(ctx)); len(hooks) != 0 {
			t.Errorf("webhooks: %+v", hooks)
		}
		w := must[*tailscale.Webhook](t)(c.Webhooks().Create(ctx, tailscale.CreateWebhookRequest{
			EndpointURL: "https://a.example/x", Subscriptions: []tailscale.WebhookSubscriptionType{tailscale.WebhookNodeDeleted, tailscale.WebhookNodeCreated},
		}))
		if diff := cmp.Diff([]tailscale.WebhookSubscriptionType{tailscale.WebhookNodeCreated, tailscale.WebhookNodeDeleted}, w.Subscriptions); diff != "" {
			t.Errorf("subscriptions: -want, +got:\n%s", diff)
		}
		mustDo(t, c.Webhooks().Delete(ctx, w.EndpointID))
	})
	t.Run("Services", func(t *testing.T) {
		if got := must[[]tailscale.Service](t)(c.Services().List(ctx)); len(got) != 0 {
			t.Errorf("services: %+v", got)
		}
		v := tailscale.Service{Name: "svc:x", Ports: []string{"do-not-validate"}}
		mustDo(t, c.Services().CreateOrUpdate(ctx, v))
		had := must[*tailscale.Service](t)(c.Services().Get(ctx, v.Name))
		v.Addrs = []string{"100.64.0.7", had.Addrs[1]}
		mustDo(t, c.Services().CreateOrUpdate(ctx, v))
		if diff := cmp.Diff(v.Addrs, must[*tailscale.Service](t)(c.Services().Get(ctx, v.Name)).Addrs); diff != "" {
			t.Errorf("an IPv4 address may change, the IPv6 stays: -want, +got:\n%s", diff)
		}
		v.Addrs[1] = "fd7a:115c:a1e0::1:1"
		if code, _ := status(t, c.Services().CreateOrUpdate(ctx, v)); code != 400 {
			t.Errorf("another IPv6 address: %d", code)
		}
		mustDo(t, c.Services().Delete(ctx, v.Name))
	})
}
