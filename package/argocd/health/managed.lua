-- Copyright 2026 The Tailscale Gateway Authors
-- SPDX-License-Identifier: Apache-2.0
--
-- Health of managed resources: objects in a tailnet that the provider creates and updates.
--
-- Argo CD runs the script with the object in the global obj, and the libraries base, table and os
-- (argoproj/argo-cd util/lua/lua.go). It reports an object that is being deleted as Progressing
-- itself (argoproj/gitops-engine pkg/health/health.go). Synced and Ready are crossplane-runtime's:
-- Ready is False with the reason Creating or Deleting while nothing is wrong, and with other
-- reasons otherwise (crossplane/crossplane apis/core/v2/condition.go).

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

-- An empty list of management policies pauses an object as well as the annotation does
-- (crossplane/crossplane-runtime pkg/reconciler/managed/reconciler.go).
if (obj.metadata.annotations or {})["crossplane.io/paused"] == "true"
  or (synced ~= nil and synced.reason == "ReconcilePaused") then
  return { status = "Suspended", message = "The annotation crossplane.io/paused is set, or spec.managementPolicies is empty: changes wait" }
end

if synced == nil and ready == nil then
  return { status = "Progressing", message = "Waiting for the provider; if this lasts, check that it is installed and healthy" }
end

if stale(synced) or stale(ready) then
  return { status = "Progressing", message = "Waiting for the provider to process the latest change" }
end

-- A refusal by the provider says what to do, and Synced only which call failed.
if ready ~= nil and ready.status == "False" and ready.reason ~= "Creating" and ready.reason ~= "Deleting" then
  local cause = ready
  if (ready.message == nil or ready.message == "") and synced ~= nil and synced.status == "False" then
    cause = synced
  end
  return { status = "Degraded", message = text(cause) }
end

if synced ~= nil and synced.status == "False" then
  return { status = "Degraded", message = text(synced) }
end

for _, t in ipairs({ "Authenticated", "Deletable", "CertificateReady", "Approved", "Routed" }) do
  local c = conditions[t]
  if c ~= nil and c.status == "False" and c.reason ~= "ApprovalPending" then
    return { status = "Degraded", message = text(c) }
  end
end

if synced == nil or ready == nil or ready.status ~= "True" then
  local message = "Waiting for the provider"
  if ready ~= nil and ready.message ~= nil and ready.message ~= "" then
    message = ready.message
  end
  return { status = "Progressing", message = message }
end

-- What deserves a look, although the object has its desired state.
for _, bad in ipairs({
  { "Approved", "False" }, { "AddressKept", "False" }, { "AnnotationsKept", "False" },
  { "HostTagsMatch", "False" }, { "Conflict", "True" }, { "PolicyWarnings", "True" },
}) do
  local c = conditions[bad[1]]
  if c ~= nil and c.status == bad[2] then
    return { status = "Healthy", message = text(c) }
  end
end
if ready.message ~= nil and ready.message ~= "" then
  return { status = "Healthy", message = ready.message }
end
return { status = "Healthy", message = "The object is ready" }
