-- Copyright 2026 The Tailscale Gateway Authors
-- SPDX-License-Identifier: Apache-2.0
--
-- Health of objects without a status: configuration, and data that components exchange.
-- The script exists because Argo CD shows no health for kinds without a check.

return { status = "Healthy", message = "The object has no status" }
