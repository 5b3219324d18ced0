#!/bin/bash
# Run by `devcontainer features test`, in a container that has the feature.
set -e

# shellcheck source=/dev/null # the command brings it
source dev-container-features-test-lib

# Starts a control plane, waits for its kubeconfig, and ends it.
a_control_plane_starts_and_ends() {
    kubeconfig=$(mktemp -d)/kubeconfig
    kubewright up --port 0 --quiet --kubeconfig "$kubeconfig" &
    until [ -f "$kubeconfig" ]; do
        kill -0 $! || return 1
    done
    kill $! && wait $!
}

check "kubewright is on the PATH" kubewright --version
check "a control plane starts and ends" a_control_plane_starts_and_ends

reportResults
