-- Copyright 2026 The Tailscale Gateway Authors
-- SPDX-License-Identifier: Apache-2.0
--
-- Health of policy attachments of Gateway API: the condition Accepted of each ancestor, and the
-- rules of a TailscaleRoutePolicy.
--
-- Argo CD runs the script with the object in the global obj, and the libraries base, table and os
-- (argoproj/argo-cd util/lua/lua.go). The meaning of Accepted and of the other conditions is Gateway API's (GEP-713).

local status = obj.status or {}

if status.ancestors == nil or next(status.ancestors) == nil then
  return { status = "Progressing", message = "Waiting for a controller to accept the policy; if this lasts, check that the extension is installed" }
end

for _, a in ipairs(status.ancestors) do
  for _, c in ipairs(a.conditions or {}) do
    if c.observedGeneration ~= nil and obj.metadata.generation ~= nil and c.observedGeneration < obj.metadata.generation then
      return { status = "Progressing", message = "Waiting for a controller to process the latest change" }
    end
  end
end

local open
for _, a in ipairs(status.ancestors) do
  local accepted = false
  for _, c in ipairs(a.conditions or {}) do
    if c.status == "False" then
      return { status = "Degraded", message = (a.ancestorRef or {}).name .. ": " .. (c.message or c.reason) }
    end
    accepted = accepted or (c.type == "Accepted" and c.status == "True")
  end
  if not accepted then
    open = a
  end
end

for _, r in ipairs(status.rules or {}) do
  if not r.active then
    return { status = "Degraded", message = r.name .. ": " .. (r.message or "the rule does not apply") }
  end
end

if open ~= nil then
  return { status = "Progressing", message = (open.ancestorRef or {}).name .. ": waiting for the policy to be accepted" }
end
return { status = "Healthy", message = "The policy has been accepted" }
