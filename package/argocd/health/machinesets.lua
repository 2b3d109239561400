-- Copyright 2026 The Tailscale Gateway Authors
-- SPDX-License-Identifier: Apache-2.0
--
-- Health of a MachineSet, which has no conditions: it lists its machines, and summarizes its
-- StatefulSet.
--
-- Argo CD runs the script with the object in the global obj, and the libraries base, table and os
-- (argoproj/argo-cd util/lua/lua.go).

local status = obj.status or {}
local pods = status.statefulSet or {}

if status.observedGeneration == nil or status.observedGeneration < obj.metadata.generation then
  return { status = "Progressing", message = "Waiting for the provider to process the latest change" }
end

if pods.message ~= nil and pods.message ~= "" then
  return { status = "Degraded", message = pods.message }
end

local pending
for _, m in ipairs(status.machines or {}) do
  if m.failed then
    return { status = "Degraded", message = m.name .. ": " .. (m.message or "the provider cannot prepare the machine") }
  end
  if not m.ready then
    pending = pending or m
  end
end

if pending ~= nil then
  return { status = "Progressing", message = pending.name .. ": " .. (pending.message or "the machine is not ready") }
end

if (pods.readyReplicas or 0) < (pods.replicas or 0) or (pods.updatedReplicas or 0) < (pods.replicas or 0) or not pods.observed then
  return { status = "Progressing", message = "Waiting for pods" }
end
return { status = "Healthy", message = "All machines are in the tailnet" }
