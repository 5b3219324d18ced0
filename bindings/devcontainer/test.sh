#!/usr/bin/env bash
# Tests the feature's install.sh without a container, on a folder of releases that is made here. KUBEWRIGHT is the path of a
# kubewright program.
#
# shellcheck disable=SC2329 # functions are called by their names
set -euo pipefail

: "${KUBEWRIGHT:?give the path of a kubewright program}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
feature=$here/src/kubewright
work=$(mktemp -d)
# Folders of links are read-only.
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
failed=0

name=kubewright-0.1.0-$(uname -m | sed 's/arm64/aarch64/')-unknown-linux-musl
mkdir -p "$work/releases/v0.1.0" "$work/$name"
# Not the program itself, which may be large.
printf '#!/bin/sh\nexec "%s" "$@"\n' "$(realpath "$KUBEWRIGHT")" >"$work/$name/kubewright"
chmod +x "$work/$name/kubewright"
tar -czf "$work/releases/v0.1.0/$name.tar.gz" -C "$work" "$name"
(cd "$work/releases/v0.1.0" && sha256sum -- *.tar.gz >SHA256SUMS)

# install NAME=VALUE...: what the build of an image does, with these options; what comes of it is in $work/root.
install() {
  [[ ! -e $work/root ]] || chmod -R u+w "$work/root"
  rm -rf "$work/root"
  mkdir -p "$work/root/tmp"
  env -i PATH=/usr/bin:/bin HOME="$work/root/home" TMPDIR="$work/root/tmp" KUBEWRIGHT_RELEASES="file://$work/releases" \
    KUBEWRIGHT_PREFIX="$work/root/usr" KUBEWRIGHT_PROFILE="$work/root/etc/profile.d/kubewright.sh" "$@" \
    sh "$feature/install.sh" >"$work/said" 2>&1
}

# shell COMMAND: what a command says that a shell runs which has read the profile.
shell() {
  # shellcheck disable=SC2016 # the shell expands them
  env -i PATH=/usr/bin:/bin sh -c '. "$0" && sh -c "$1"' "$work/root/etc/profile.d/kubewright.sh" "$1"
}

defaults() {
  python3 -c 'import json, sys
for name, option in json.load(open(sys.argv[1]))["options"].items():
    print(name.upper() + "=" + (option["default"] if option["type"] == "string" else str(option["default"]).lower()))' \
    "$feature/devcontainer-feature.json"
}

check() {
  if "$1"; then
    echo "ok: ${1//_/ }"
  else
    failed=1
    echo "FAILED: ${1//_/ }"
    sed 's/^/  /' "$work/said"
  fi
}

with_its_default_options_the_release_is_installed() {
  mapfile -t options < <(defaults)
  install "${options[@]}" && [[ $("$work/root/usr/bin/kubewright" --version) == "kubewright "* && ! -e $work/root/etc ]]
}

with_envtest_a_login_shell_knows_where_its_programs_are() {
  install VERSION=0.1.0 ENVTEST=true && shell "[ -x \"\$KUBEBUILDER_ASSETS/kube-apiserver\" ] && [ -x \"\$TEST_ASSET_ETCD\" ]" &&
    [[ $(shell "echo \"\$KUBEBUILDER_ASSETS\"") == "$work/root/usr/share/"* ]]
}

what_is_installed_can_be_read_by_every_user() {
  (umask 022 && install VERSION=0.1.0 ENVTEST=true) && [[ -z $(find "$work/root/usr" "$work/root/etc" ! -type l ! -perm -o=r) ]]
}

the_version_of_kubernetes_is_the_one_that_was_asked_for() {
  install VERSION=0.1.0 ENVTEST=true KUBERNETESVERSION=1.36 && [[ $(shell "echo \"\$KUBEBUILDER_ASSETS\"") == */1.36.* ]] &&
    [[ $(shell "echo \"\$KUBEWRIGHT_KUBERNETES_VERSION\"") == 1.36 ]]
}

a_kubewright_on_the_path_is_used_as_it_is() {
  install PATH="$work/$name:/usr/bin:/bin" VERSION=7.0.0 && [[ ! -e $work/root/usr/bin ]]
}

a_release_that_is_not_there_fails_the_build() {
  ! install VERSION=7.0.0 && grep -qF 'is version 7.0.0 a release?' "$work/said" && [[ ! -e $work/root/usr && ! -e $work/root/etc ]]
}

an_image_without_curl_is_told_what_to_do() {
  mkdir "$work/tools"
  ln -s "$(command -v bash)" "$(command -v sh)" "$work/tools"
  ! install PATH="$work/tools" VERSION=0.1.0 && grep -qF 'has no curl: install it' "$work/said"
}

nothing_is_left_in_the_temporary_folder() {
  install VERSION=0.1.0 ENVTEST=true && [[ -z $(ls -A "$work/root/tmp") ]] && ! install VERSION=7.0.0 && [[ -z $(ls -A "$work/root/tmp") ]]
}

the_script_is_that_of_the_github_action() {
  cmp "$here/../github-action/install.sh" "$feature/install-release.sh" >"$work/said"
}

check with_its_default_options_the_release_is_installed
check with_envtest_a_login_shell_knows_where_its_programs_are
check what_is_installed_can_be_read_by_every_user
check the_version_of_kubernetes_is_the_one_that_was_asked_for
check a_kubewright_on_the_path_is_used_as_it_is
check a_release_that_is_not_there_fails_the_build
check an_image_without_curl_is_told_what_to_do
check nothing_is_left_in_the_temporary_folder
check the_script_is_that_of_the_github_action
exit "$failed"
