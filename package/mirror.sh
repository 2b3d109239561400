#!/usr/bin/env bash
# Copyright 2026 The Tailscale Gateway Authors
# SPDX-License-Identifier: Apache-2.0
#
# Copies images to another registry, with all their architectures, and prints a line for each:
# the source, a space, and the copy with its digest. Run it where both registries can be reached:
#
#   curl -fsSL https://github.com/tailscale-gateway/tailscale-gateway/releases/download/v0.1.0/images.txt | bash mirror.sh registry.example.com/mirror
#
# The copy has the path of the source without its registry:
# ghcr.io/tailscale-gateway/agent:v0.1.0 becomes
# registry.example.com/mirror/tailscale-gateway/agent:v0.1.0.
#
# It uses crane, skopeo or oras, the first one that is installed, or the one that TOOL names. Log in
# with that tool before.
set -euo pipefail

if [[ $# -ne 1 || $1 == -* ]]; then
  echo "usage: mirror.sh REGISTRY[/PATH] < IMAGES" >&2
  exit 2
fi
registry=${1%/}

tool=${TOOL:-}
for candidate in crane skopeo oras; do
  if [[ -z $tool ]] && command -v "$candidate" >/dev/null; then
    tool=$candidate
  fi
done

# copy copies image $1 to $2, and prints the digest of the copy.
copy() {
  case $tool in
  crane)
    crane copy "$1" "$2" >&2 && crane digest "$2"
    ;;
  skopeo)
    local file
    file=$(mktemp) && skopeo copy --all --preserve-digests --digestfile "$file" "docker://$1" "docker://$2" >&2 && cat "$file" && rm -f "$file"
    ;;
  oras)
    oras cp "$1" "$2" >&2 && oras resolve "$2"
    ;;
  *)
    echo "install crane, skopeo or oras, or name one of them in TOOL" >&2
    return 1
    ;;
  esac
}

while read -r image || [[ -n $image ]]; do
  if [[ -z $image || $image == \#* ]]; then
    continue
  fi
  # An image without a registry is one of Docker Hub, and would lose a part of its path here.
  if [[ ${image%%/*} != *[.:]* ]]; then
    echo "$image has no registry" >&2
    exit 1
  fi
  path=${image#*/}
  target=$registry/${path%@*}
  # A digest names one image. skopeo refuses a tag beside it.
  source=$image
  if [[ $image == *@* ]]; then
    source=${image%@*}
    if [[ ${source##*/} == *:* ]]; then
      source=${source%:*}
    fi
    source+=@${image#*@}
  fi
  digest=$(copy "$source" "$target" </dev/null)
  echo "$image $target@$digest"
done
