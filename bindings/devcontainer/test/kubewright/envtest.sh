#!/bin/bash
# Run by `devcontainer features test`, in a container that has the feature with the options of scenarios.json.
# shellcheck disable=SC2016 # a login shell expands them
set -e

# shellcheck source=/dev/null # the command brings it
source dev-container-features-test-lib

check "a login shell knows where envtest looks" bash -lc '[ -x "$KUBEBUILDER_ASSETS/kube-apiserver" ] && [ -x "$TEST_ASSET_ETCD" ]'
check "the version is the one that was asked for" bash -lc '[[ "$KUBEBUILDER_ASSETS" == */1.36.* ]]'

reportResults
