// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clienttest

import (
	"net/http"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
)

var contactDrivers = map[string]driver{
	"Contacts.Get": func(w *world) {
		owner := tailscale.Contact{Email: "owner@example.com"}
		got, err := w.c.Contacts().Get(w.ctx)
		w.want(&tailscale.Contacts{Account: owner, Support: owner, Security: owner}, got, err)
	},
	"Contacts.Update": func(w *world) {
		want, err := w.c.Contacts().Get(w.ctx)
		w.ok(err)
		email := "security@example.com"
		w.ok(w.c.Contacts().Update(w.ctx, tailscale.ContactSecurity, tailscale.UpdateContactRequest{Email: &email}))
		want.Security = tailscale.Contact{Email: email, FallbackEmail: want.Security.Email, NeedsVerification: true}
		got, err := w.c.Contacts().Get(w.ctx)
		w.want(want, got, err)
	},
}

var settingDrivers = map[string]driver{
	"TailnetSettings.Get": func(w *world) {
		got, err := w.c.TailnetSettings().Get(w.ctx)
		w.want(&tailscale.TailnetSettings{
			DevicesKeyDurationDays: 180, UsersRoleAllowedToJoinExternalTailnets: tailscale.RoleAllowedToJoinExternalTailnetsAdmin,
			RouteSelection: tailscale.RouteSelectionActivePassiveFailover,
		}, got, err)
	},
	"TailnetSettings.Update": func(w *world) {
		enabled := true
		w.ok(w.c.TailnetSettings().Update(w.ctx, tailscale.UpdateTailnetSettingsRequest{
			ACLsExternallyManagedOn: &enabled, ACLsExternalLink: tailscale.PointerTo("https://example.com/policy"),
			DevicesApprovalOn: &enabled, DevicesAutoUpdatesOn: &enabled, DevicesKeyDurationDays: tailscale.PointerTo(90),
			UsersApprovalOn: &enabled, UsersRoleAllowedToJoinExternalTailnets: tailscale.PointerTo(tailscale.RoleAllowedToJoinExternalTailnetsNone),
			NetworkFlowLoggingOn: &enabled, RegionalRoutingOn: &enabled, PostureIdentityCollectionOn: &enabled, HTTPSEnabled: &enabled, //nolint:staticcheck // It can still be set.
		}))
		want := &tailscale.TailnetSettings{
			ACLsExternallyManagedOn: true, ACLsExternalLink: "https://example.com/policy",
			DevicesApprovalOn: true, DevicesAutoUpdatesOn: true, DevicesKeyDurationDays: 90,
			UsersApprovalOn: true, UsersRoleAllowedToJoinExternalTailnets: tailscale.RoleAllowedToJoinExternalTailnetsNone,
			NetworkFlowLoggingOn: true, RegionalRoutingOn: true, PostureIdentityCollectionOn: true, HTTPSEnabled: true, //nolint:staticcheck // It can still be set.
			RouteSelection: tailscale.RouteSelectionRegionalRouting,
		}
		got, err := w.c.TailnetSettings().Get(w.ctx)
		w.want(want, got, err)
		// A setting that is nil keeps its value.
		w.ok(w.c.TailnetSettings().Update(w.ctx, tailscale.UpdateTailnetSettingsRequest{DevicesKeyDurationDays: tailscale.PointerTo(30)}))
		want.DevicesKeyDurationDays = 30
		got, err = w.c.TailnetSettings().Get(w.ctx)
		w.want(want, got, err)
		// The two settings of routing follow each other, and exclude each other in a request.
		w.ok(w.c.TailnetSettings().Update(w.ctx, tailscale.UpdateTailnetSettingsRequest{RouteSelection: tailscale.PointerTo(tailscale.RouteSelectionMagicRoute)}))
		want.RegionalRoutingOn, want.RouteSelection = false, tailscale.RouteSelectionMagicRoute //nolint:staticcheck // It can still be set.
		got, err = w.c.TailnetSettings().Get(w.ctx)
		w.want(want, got, err)
		w.refused(w.c.TailnetSettings().Update(w.ctx, tailscale.UpdateTailnetSettingsRequest{
			RegionalRoutingOn: &enabled, RouteSelection: tailscale.PointerTo(tailscale.RouteSelectionRegionalRouting), //nolint:staticcheck // It can still be set.
		}), http.StatusBadRequest)
	},
}

var tailnetDrivers = map[string]driver{
	"Tailnets.List": func(w *world) {
		all, err := w.c.Tailnets().List(w.ctx)
		w.ok(err)
		w.want(1, len(all), nil)
		if t := all[0]; t.ID == "" || t.OrgID == "" || t.DisplayName == "" || t.DNSName != w.sim.Domain() || t.CreatedAt.IsZero() {
			w.Errorf("want an id, an organization, names and a time, got %+v", t)
		}
	},
	"Tailnets.Create": func(w *world) {
		created, err := w.c.Tailnets().Create(w.ctx, tailscale.CreateTailnetRequest{DisplayName: "stage"})
		w.ok(err)
		if created.ID == "" || created.DisplayName != "stage" || created.OAuthClient == nil || created.OAuthClient.ID == "" || created.OAuthClient.Secret == "" {
			w.Errorf("want an id, the name and a client, got %+v", created)
		}
		all, err := w.c.Tailnets().List(w.ctx)
		w.want(2, len(all), err)
		_, err = w.c.Tailnets().Create(w.ctx, tailscale.CreateTailnetRequest{})
		w.refused(err, http.StatusBadRequest)
	},
	// The simulator's tailnet was not created by API.
	"Tailnets.Delete": func(w *world) { w.refused(w.c.Tailnets().Delete(w.ctx), http.StatusForbidden) },
}

var userDrivers = map[string]driver{
	"Users.List": func(w *world) {
		all, err := w.c.Users().List(w.ctx, nil, nil)
		w.ok(err)
		w.want([]tailscale.User{{
			Type: tailscale.UserTypeMember, Role: tailscale.UserRoleOwner, Status: tailscale.UserStatusActive,
		}}, all, nil, cmpopts.IgnoreFields(tailscale.User{}, "ID", "DisplayName", "LoginName", "ProfilePicURL", "TailnetID", "Created", "LastSeen"))
		if u := all[0]; u.ID == "" || u.DisplayName == "" || u.LoginName == "" || u.TailnetID == "" || u.Created.IsZero() {
			w.Errorf("want an id, names, a tailnet and times, got %+v", u)
		}
		for _, c := range []struct {
			kind tailscale.UserType
			role tailscale.UserRole
			want []tailscale.User
		}{
			{kind: tailscale.UserTypeMember, role: tailscale.UserRoleOwner, want: all},
			{kind: tailscale.UserTypeShared, role: tailscale.UserRoleOwner},
			{kind: tailscale.UserTypeMember, role: tailscale.UserRoleAdmin},
		} {
			got, err := w.c.Users().List(w.ctx, &c.kind, &c.role)
			w.want(c.want, got, err, cmpopts.EquateEmpty())
		}
	},
	"Users.Get": func(w *world) {
		all, err := w.c.Users().List(w.ctx, nil, nil)
		w.ok(err)
		got, err := w.c.Users().Get(w.ctx, all[0].ID)
		w.want(&all[0], got, err)
		_, err = w.c.Users().Get(w.ctx, "uNobody11CNTRL")
		w.gone(err)
	},
}

// hook makes a webhook.
func (w *world) hook() *tailscale.Webhook {
	w.Helper()
	h, err := w.c.Webhooks().Create(w.ctx, tailscale.CreateWebhookRequest{
		EndpointURL: "https://hooks.example.com/tailscale", ProviderType: tailscale.WebhookSlackProviderType,
		Subscriptions: []tailscale.WebhookSubscriptionType{tailscale.WebhookNodeCreated, tailscale.WebhookPolicyUpdate},
	})
	w.ok(err)
	return h
}

// wantHook compares a webhook. The fields that the API chooses only have to be there.
func (w *world) wantHook(got *tailscale.Webhook, err error, secret bool) {
	w.Helper()
	w.ok(err)
	w.want(&tailscale.Webhook{
		EndpointURL: "https://hooks.example.com/tailscale", ProviderType: tailscale.WebhookSlackProviderType,
		Subscriptions: []tailscale.WebhookSubscriptionType{tailscale.WebhookNodeCreated, tailscale.WebhookPolicyUpdate},
	}, got, nil, cmpopts.IgnoreFields(tailscale.Webhook{}, "EndpointID", "CreatorLoginName", "Created", "LastModified", "Secret"))
	if got.EndpointID == "" || got.CreatorLoginName == "" {
		w.Errorf("want an id and a creator, got %+v", got)
	}
	w.recent(got.Created)
	w.recent(got.LastModified)
	if present := got.Secret != nil && *got.Secret != ""; present != secret {
		w.Errorf("secret: want %t, got %t", secret, present)
	}
}

var webhookDrivers = map[string]driver{
	"Webhooks.Create": func(w *world) { w.wantHook(w.hook(), nil, true) },
	"Webhooks.Get": func(w *world) {
		h := w.hook()
		got, err := w.c.Webhooks().Get(w.ctx, h.EndpointID)
		w.wantHook(got, err, false)
		w.want(h.EndpointID, got.EndpointID, nil)
		_, err = w.c.Webhooks().Get(w.ctx, "none")
		w.gone(err)
	},
	"Webhooks.List": func(w *world) {
		got, err := w.c.Webhooks().List(w.ctx)
		w.want([]tailscale.Webhook{}, got, err, cmpopts.EquateEmpty())
		w.hook()
		got, err = w.c.Webhooks().List(w.ctx)
		w.ok(err)
		w.want(1, len(got), nil)
		w.wantHook(&got[0], nil, false)
	},
	"Webhooks.Update": func(w *world) {
		h := w.hook()
		want := []tailscale.WebhookSubscriptionType{tailscale.WebhookNodeDeleted}
		got, err := w.c.Webhooks().Update(w.ctx, h.EndpointID, want)
		w.ok(err)
		w.want(want, got.Subscriptions, nil)
		got, err = w.c.Webhooks().Get(w.ctx, h.EndpointID)
		w.ok(err)
		w.want(want, got.Subscriptions, nil)
	},
	"Webhooks.Delete": func(w *world) {
		h := w.hook()
		w.ok(w.c.Webhooks().Delete(w.ctx, h.EndpointID))
		_, err := w.c.Webhooks().Get(w.ctx, h.EndpointID)
		w.gone(err)
		w.gone(w.c.Webhooks().Delete(w.ctx, h.EndpointID))
	},
	"Webhooks.Test": func(w *world) {
		w.ok(w.c.Webhooks().Test(w.ctx, w.hook().EndpointID))
		w.gone(w.c.Webhooks().Test(w.ctx, "none"))
	},
	"Webhooks.RotateSecret": func(w *world) {
		h := w.hook()
		got, err := w.c.Webhooks().RotateSecret(w.ctx, h.EndpointID)
		w.wantHook(got, err, true)
		if *got.Secret == *h.Secret {
			w.Error("the secret is the old one")
		}
	},
}

// falcon is a request for an integration, and wantFalcon the integration.
var (
	falcon = tailscale.CreatePostureIntegrationRequest{
		Provider: tailscale.PostureIntegrationProviderFalcon, CloudID: "us-1", ClientID: "client", TenantID: "tenant", ClientSecret: "notasecret",
	}
	wantFalcon = tailscale.PostureIntegration{
		Provider: tailscale.PostureIntegrationProviderFalcon, CloudID: "us-1", ClientID: "client", TenantID: "tenant",
	}
)

func (w *world) integrate() *tailscale.PostureIntegration {
	w.Helper()
	p, err := w.c.DevicePosture().CreateIntegration(w.ctx, falcon)
	w.ok(err)
	if p.ID == "" {
		w.Error("the integration has no id")
	}
	return p
}

var withoutID = cmpopts.IgnoreFields(tailscale.PostureIntegration{}, "ID")

var postureDrivers = map[string]driver{
	"DevicePosture.CreateIntegration": func(w *world) {
		w.want(&wantFalcon, w.integrate(), nil, withoutID)
		_, err := w.c.DevicePosture().CreateIntegration(w.ctx, falcon)
		w.refused(err, http.StatusConflict)
	},
	"DevicePosture.GetIntegration": func(w *world) {
		p := w.integrate()
		got, err := w.c.DevicePosture().GetIntegration(w.ctx, p.ID)
		w.want(p, got, err)
		_, err = w.c.DevicePosture().GetIntegration(w.ctx, "none")
		w.gone(err)
	},
	"DevicePosture.ListIntegrations": func(w *world) {
		got, err := w.c.DevicePosture().ListIntegrations(w.ctx)
		w.want([]tailscale.PostureIntegration{}, got, err, cmpopts.EquateEmpty())
		p := w.integrate()
		got, err = w.c.DevicePosture().ListIntegrations(w.ctx)
		w.want([]tailscale.PostureIntegration{*p}, got, err)
	},
	"DevicePosture.UpdateIntegration": func(w *world) {
		p := w.integrate()
		want := *p
		want.CloudID = "eu-1"
		// An empty field keeps its value.
		got, err := w.c.DevicePosture().UpdateIntegration(w.ctx, p.ID, tailscale.UpdatePostureIntegrationRequest{CloudID: "eu-1"})
		w.want(&want, got, err)
		got, err = w.c.DevicePosture().GetIntegration(w.ctx, p.ID)
		w.want(&want, got, err)
	},
	"DevicePosture.DeleteIntegration": func(w *world) {
		p := w.integrate()
		w.ok(w.c.DevicePosture().DeleteIntegration(w.ctx, p.ID))
		_, err := w.c.DevicePosture().GetIntegration(w.ctx, p.ID)
		w.gone(err)
		w.gone(w.c.DevicePosture().DeleteIntegration(w.ctx, p.ID))
	},
}

// stream is a request for a log stream, and wantStream the log stream.
var (
	stream = tailscale.SetLogstreamConfigurationRequest{
		DestinationType: tailscale.LogstreamElasticEndpoint, URL: "https://logs.example.com", User: "user", Token: "notasecret",
		UploadPeriodMinutes: 5, CompressionFormat: tailscale.CompressionFormatZstd,
	}
	wantStream = tailscale.LogstreamConfiguration{
		LogType: tailscale.LogTypeConfig, DestinationType: tailscale.LogstreamElasticEndpoint, URL: "https://logs.example.com", User: "user",
		UploadPeriodMinutes: 5, CompressionFormat: tailscale.CompressionFormatZstd,
	}
)

var loggingDrivers = map[string]driver{
	"Logging.LogstreamConfiguration": func(w *world) {
		_, err := w.c.Logging().LogstreamConfiguration(w.ctx, tailscale.LogTypeNetwork)
		w.gone(err)
		w.ok(w.c.Logging().SetLogstreamConfiguration(w.ctx, tailscale.LogTypeConfig, stream))
		got, err := w.c.Logging().LogstreamConfiguration(w.ctx, tailscale.LogTypeConfig)
		w.want(&wantStream, got, err, cmpopts.EquateEmpty())
	},
	"Logging.SetLogstreamConfiguration": func(w *world) {
		w.ok(w.c.Logging().SetLogstreamConfiguration(w.ctx, tailscale.LogTypeNetwork, stream))
		// It replaces everything.
		w.ok(w.c.Logging().SetLogstreamConfiguration(w.ctx, tailscale.LogTypeNetwork, tailscale.SetLogstreamConfigurationRequest{
			DestinationType: tailscale.LogstreamS3Endpoint, S3Bucket: "logs", S3Region: "eu-west-1", S3KeyPrefix: "tailnet/",
			S3AuthenticationType: tailscale.S3AccessKeyAuthentication, S3AccessKeyID: "id", S3SecretAccessKey: "notasecret",
		}))
		got, err := w.c.Logging().LogstreamConfiguration(w.ctx, tailscale.LogTypeNetwork)
		w.want(&tailscale.LogstreamConfiguration{
			LogType: tailscale.LogTypeNetwork, DestinationType: tailscale.LogstreamS3Endpoint, CompressionFormat: tailscale.CompressionFormatNone,
			S3Bucket: "logs", S3Region: "eu-west-1", S3KeyPrefix: "tailnet/",
			S3AuthenticationType: tailscale.S3AccessKeyAuthentication, S3AccessKeyID: "id",
		}, got, err, cmpopts.EquateEmpty())
		_, err = w.c.Logging().LogstreamConfiguration(w.ctx, tailscale.LogTypeConfig)
		w.gone(err)
	},
	"Logging.DeleteLogstreamConfiguration": func(w *world) {
		w.ok(w.c.Logging().SetLogstreamConfiguration(w.ctx, tailscale.LogTypeConfig, stream))
		w.ok(w.c.Logging().DeleteLogstreamConfiguration(w.ctx, tailscale.LogTypeConfig))
		_, err := w.c.Logging().LogstreamConfiguration(w.ctx, tailscale.LogTypeConfig)
		w.gone(err)
	},
	"Logging.CreateOrGetAwsExternalId": func(w *world) {
		id := w.externalID(true)
		w.want(id, w.externalID(true), nil)
		if w.externalID(false) == id {
			w.Error("an id that is not to be used again is one that is")
		}
	},
	"Logging.ValidateAWSTrustPolicy": func(w *world) {
		const role = "arn:aws:iam::000000000000:role/logs"
		w.ok(w.c.Logging().ValidateAWSTrustPolicy(w.ctx, w.externalID(true), role))
		w.gone(w.c.Logging().ValidateAWSTrustPolicy(w.ctx, "none", role))
		w.refused(w.c.Logging().ValidateAWSTrustPolicy(w.ctx, w.externalID(true), "nonsense"), http.StatusUnprocessableEntity)
	},
	"Logging.GetNetworkFlowLogs": func(w *world) {
		var got []tailscale.NetworkFlowLog
		read := func() error {
			at := time.Now()
			return w.c.Logging().GetNetworkFlowLogs(w.ctx, tailscale.NetworkFlowLogsRequest{Start: at.Add(-time.Hour), End: at}, func(l tailscale.NetworkFlowLog) error {
				got = append(got, l)
				return nil
			})
		}
		// The simulator carries no traffic: its list is always empty.
		err := read()
		w.want([]tailscale.NetworkFlowLog{}, got, err, cmpopts.EquateEmpty())
		w.ok(w.sim.SetSwitches(func(s *tailnetsim.Switches) {
			s.Plan = map[tailnetsim.Feature]int{tailnetsim.NetworkFlowLogs: http.StatusForbidden}
		}))
		if err := read(); err == nil || !strings.HasPrefix(err.Error(), "HTTP 403: ") {
			w.Errorf("a plan without flow logs: want HTTP 403, got: %v", err)
		}
	},
}

// externalID returns an id that Tailscale shows to AWS.
func (w *world) externalID(reusable bool) string {
	w.Helper()
	id, err := w.c.Logging().CreateOrGetAwsExternalId(w.ctx, reusable)
	w.ok(err)
	if id.ExternalID == "" || id.TailscaleAWSAccountID == "" {
		w.Errorf("want an id and an account, got %+v", id)
	}
	return id.ExternalID
}
