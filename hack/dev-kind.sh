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
configuration=configuration-tailscale-gateway
if [[ "$FLAVOUR" == claims ]]; then configuration+=-claims; fi

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

go -C hack/xpkg run . build --out=_out/xpkg --arch="$ARCH" --version="$VERSION"
go -C hack/xpkg run . push --from=_out/xpkg --version="$VERSION" "127.0.0.1:$port/tailscale-gateway"

helm upgrade --install crossplane crossplane --repo=https://charts.crossplane.io/stable \
  --namespace=crossplane-system --create-namespace --wait
kubectl apply --server-side -f cluster/manifests/rbac.yaml -f cluster/manifests/runtime.yaml \
  -f cluster/manifests/networkpolicies.yaml -f cluster/manifests/tenants.yaml \
  -f cluster/manifests/admission.yaml -f cluster/manifests/admission-extension.yaml
# Crossplane looks up the runtime config of a package under its rewritten name.
kubectl apply --server-side -f - <<EOF
apiVersion: pkg.crossplane.io/v1beta1
kind: ImageConfig
metadata:
  name: tailscale-gateway-dev
spec:
  matchImages:
  - prefix: $organization
  rewriteImage:
    prefix: $address/tailscale-gateway
---
apiVersion: pkg.crossplane.io/v1beta1
kind: ImageConfig
metadata:
  name: tailscale-gateway-dev-provider
spec:
  matchImages:
  - prefix: $address/tailscale-gateway/provider-tailscale
  runtime:
    configRef:
      name: tailscale-gateway-provider
EOF

# Dependencies of a development build have its exact version, so Crossplane replaces them only
# when they are named: first the packages, then the configuration.
for package in Provider/provider-tailscale Function/function-tailscale "Configuration/$configuration"; do
  kubectl apply --server-side -f - <<EOF
apiVersion: pkg.crossplane.io/v1
kind: ${package%%/*}
metadata:
  name: tailscale-gateway-${package#*/}
spec:
  package: $organization/${package#*/}:$VERSION
EOF
done
kubectl wait provider.pkg,function.pkg,configuration.pkg --all --for=condition=Healthy --timeout=5m
echo "The packages of $VERSION are installed. Continue with the credential: README.md, \"Use it in your cluster\"."
