-- Copyright 2026 The Tailscale Gateway Authors
-- SPDX-License-Identifier: Apache-2.0
--
-- Health of the kinds of users that Crossplane composes, and of their claims.
--
-- Argo CD runs the script with the object in the global obj, and the libraries base, table and os
-- (argoproj/argo-cd util/lua/lua.go). It reports an object that is being deleted as Progressing
-- itself (argoproj/gitops-engine pkg/health/health.go). Synced and Ready mean what they mean in
-- Crossplane's guide (docs.crossplane.io, "Configuring Crossplane with Argo CD"). That guide's
-- check returns at the first condition, and so depends on their order. This one does not.

-- Conditions of ours, a cause before its consequences.
local order = {
  "Authenticated", "TailnetAccepted", "TailnetsValid", "GatewayValid", "Accepted",
  "EndpointsSelected", "VIPServiceReady", "StatefulSetsReady", "NetworkReady", "MachinesReady", "ProxyGroupReady",
  "EndpointsReady", "EgressReady", "DiscoverySuccessful", "Approved", "Advertised", "Routed",
  "ExtensionServerReady", "ServicesReady", "GatewayVIPReady", "RoutesReady", "SplitDNSReady",
}

-- Reasons of a False condition that passes without a change by the user, and those about another
-- object, whose health has the cause. Every other reason is a failure.
local waiting = {
  ApprovalPending = true,
  EndpointsNotReady = true,
  EndpointsProvisioned = true,
  ExtensionNotReady = true,
  GatewayNotValid = true,
  GatewayVIPNotHosted = true,
  MachinesNotReady = true,
  NoHealthyBackend = true,
  NoHost = true,
  ProxyGroupCreating = true,
  ReplicasNotReady = true,
  RoutesPending = true,
  ServicesCreating = true,
  SplitDNSCreating = true,
  TargetsNotPlaced = true,
  VIPServiceCreating = true,
  Waiting = true,
  -- Envoy Gateway creates the Service of a new Gateway soon after. The Service of a
  -- TailscaleServices is the user's.
  ["GatewayValid/ServiceNotFound"] = true,
}

-- Reasons of a False condition without an effect on what the object does.
local remark = {
  ExtensionNotNeeded = true,
  FamilyNotServed = true,
  ForwardedPacketsDropped = true,
  NameMismatch = true,
}

local conditions = {}
for _, c in ipairs((obj.status or {}).conditions or {}) do
  conditions[c.type] = c
end

-- text returns the message of a condition, or its reason.
local function text(c)
  if c.message ~= nil and c.message ~= "" then
    return c.message
  end
  return c.reason
end

-- stale returns whether a condition is about an older spec.
local function stale(c)
  return c ~= nil and c.observedGeneration ~= nil and obj.metadata.generation ~= nil
    and c.observedGeneration < obj.metadata.generation
end

local synced, ready = conditions.Synced, conditions.Ready

if (obj.metadata.annotations or {})["crossplane.io/paused"] == "true"
  or (synced ~= nil and synced.reason == "ReconcilePaused") then
  return { status = "Suspended", message = "The annotation crossplane.io/paused is set: changes wait until it is removed" }
end

if synced == nil and ready == nil then
  return { status = "Progressing", message = "Waiting for Crossplane; if this lasts, check that the Configuration and its function are healthy" }
end

if stale(synced) or stale(ready) then
  return { status = "Progressing", message = "Waiting for Crossplane to process the latest change" }
end

if synced ~= nil and synced.status == "False" then
  return { status = "Degraded", message = text(synced) }
end

local pending
for _, t in ipairs(order) do
  local c = conditions[t]
  if c ~= nil and c.status ~= "True" and not remark[c.reason] and c.reason ~= "NotRequested" then
    if c.status == "False" and not waiting[c.reason] and not waiting[t .. "/" .. c.reason] then
      return { status = "Degraded", message = text(c) }
    end
    -- A False condition says more than an Unknown one.
    if pending == nil or (pending.status ~= "False" and c.status == "False") then
      pending = c
    end
  end
end

if synced == nil or ready == nil or ready.status ~= "True" then
  local message = "Waiting for Crossplane"
  if pending ~= nil then
    message = text(pending)
  elseif ready ~= nil and ready.message ~= nil and ready.message ~= "" then
    message = ready.message
  end
  return { status = "Progressing", message = message }
end

-- What deserves a look, although everything works.
if conditions.Conflict ~= nil and conditions.Conflict.status == "True" then
  return { status = "Healthy", message = text(conditions.Conflict) }
end
if conditions.DiscoveryPrivate ~= nil and conditions.DiscoveryPrivate.status == "False" then
  return { status = "Healthy", message = text(conditions.DiscoveryPrivate) }
end
if conditions.EgressReady ~= nil and (conditions.EgressReady.reason == "NameMismatch" or conditions.EgressReady.reason == "FamilyNotServed") then
  return { status = "Healthy", message = text(conditions.EgressReady) }
end
return { status = "Healthy", message = "The object is ready" }
