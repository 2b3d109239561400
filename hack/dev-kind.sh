#!/usr/bin/env bash
# Copyright 2026 The Tailscale Gateway Authors
# SPDX-License-Identifier: Apache-2.0
#
# Creates a kind cluster with Crossplane, and installs the packages of this tree from a registry
# on this machine, which is connected as in https://kind.sigs.k8s.io/docs/user/local-registry/.
# Later runs update what exists. Run it as make dev-kind.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${VERSION:?}" "${ARCH:?}" "${FLAVOUR:?}"

cluster=tailscale-gateway
registry=tailscale-gateway-registry
port=5001
organization=ghcr.io/tailscale-gateway

for program in docker kind kubectl helm go; do
  command -v "$program" >/dev/null || { echo "dev-kind needs $program" >&2; exit 1; }
done

docker inspect "$registry" >/dev/null 2>&1 ||
  docker run --detach --restart=always --publish="127.0.0.1:$port:5000" --name="$registry" registry:3
kind get clusters 2>/dev/null | grep -qx "$cluster" || kind create cluster --name="$cluster" --wait=2m
docker network connect kind "$registry" 2>/dev/null || true # It may be connected.
kubectl config use-context "kind-$cluster"

# Crossplane's pods pull packages from the registry's private address, without TLS. Nodes pull the
# images of packages there, and that of the agent under its public name.
address=$(docker inspect --format='{{.NetworkSettings.Networks.kind.IPAddress}}' "$registry"):5000
for node in $(kind get nodes --name="$cluster"); do
  for host in "$address" "${organization%%/*}"; do
    docker exec --interactive "$node" sh -c "mkdir -p /etc/containerd/certs.d/$host && cat >/etc/containerd/certs.d/$host/hosts.toml" <<<"[host.\"http://$address\"]"
  done
done

go -C package/builder run . build --out=_out/xpkg --arch="$ARCH" --version="$VERSION"
go -C package/builder run . push --from=_out/xpkg --version="$VERSION" "127.0.0.1:$port/tailscale-gateway"

helm upgrade --install crossplane crossplane --repo=https://charts.crossplane.io/stable \
  --namespace=crossplane-system --create-namespace --wait
# The chart rewrites the names of packages to the registry.
helm upgrade --install tailscale-gateway package/charts/tailscale-gateway \
  --namespace=crossplane-system --set=registry="$address/tailscale-gateway" \
  --set=packages.version="$VERSION" --set=packages.flavour="$FLAVOUR"
kubectl wait provider.pkg,function.pkg,configuration.pkg --selector=app.kubernetes.io/part-of=tailscale-gateway --for=condition=Healthy --timeout=5m
echo "The packages of $VERSION are installed. Continue with the credential: README.md, \"Use it in your cluster\"."
