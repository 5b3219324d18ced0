#!/bin/sh
# Installs the feature, as root while the image is built. Its options are the variables VERSION, ENVTEST and KUBERNETESVERSION.
# install-release.sh does the work: it is the script of the GitHub Action.
set -eu

prefix=${KUBEWRIGHT_PREFIX:-/usr/local}
profile=${KUBEWRIGHT_PROFILE:-/etc/profile.d/kubewright.sh}

for tool in bash curl; do
    command -v "$tool" >/dev/null || {
        echo "error: the image has no $tool: install it, or add the feature ghcr.io/devcontainers/features/common-utils" >&2
        exit 1
    }
done

here=$(cd "$(dirname "$0")" && pwd)
exports=$(mktemp)
trap 'rm -f "$exports"' EXIT
# The links for envtest go where every user of the container can read them.
GITHUB_ENV=$exports GITHUB_PATH='' GITHUB_OUTPUT='' XDG_DATA_HOME="$prefix/share" KUBEWRIGHT_INSTALL_DIR="$prefix/bin" \
    KUBEWRIGHT_VERSION="${VERSION:-}" KUBEWRIGHT_ENVTEST="${ENVTEST:-false}" KUBEWRIGHT_FOR_KUBERNETES="${KUBERNETESVERSION:-}" \
    bash "$here/install-release.sh"
if [ -s "$exports" ]; then
    mkdir -p "$(dirname "$profile")"
    sed "s/^\([A-Z_]*\)=\(.*\)\$/export \1='\2'/" "$exports" >"$profile"
    chmod 644 "$profile"
fi
