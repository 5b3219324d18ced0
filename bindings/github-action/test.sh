#!/usr/bin/env bash
# Tests install.sh and trial/trial.sh, the first on a folder of releases that is made here. KUBEWRIGHT is the path of a kubewright program.
set -euo pipefail

: "${KUBEWRIGHT:?give the path of a kubewright program}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
# Folders of links are read-only.
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
passed=0 failed=0

releases=$work/releases
name=kubewright-9.8.7-$(uname -m | sed 's/arm64/aarch64/')-unknown-linux-musl
mkdir -p "$releases/v9.8.7" "$work/$name"
# Not the program itself, which may be large.
printf '#!/bin/sh\nexec "%s" "$@"\n' "$(realpath "$KUBEWRIGHT")" >"$work/$name/kubewright"
chmod +x "$work/$name/kubewright"
tar -czf "$releases/v9.8.7/$name.tar.gz" -C "$work" "$name"
(cd "$releases/v9.8.7" && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)

# Runs install.sh with inputs (NAME=VALUE) as a step of a job without kubewright; says what it wrote in $work/step.
install() {
  rm -rf "$work/step"
  mkdir -p "$work/step/temp" "$work/step/home"
  env -i PATH="${with_path:-/usr/bin:/bin}" HOME="$work/step/home" RUNNER_TEMP="$work/step/temp" \
    GITHUB_PATH="$work/step/path" GITHUB_ENV="$work/step/env" GITHUB_OUTPUT="$work/step/output" \
    KUBEWRIGHT_RELEASES="file://$releases" KUBEWRIGHT_VERSION=9.8.7 "$@" \
    bash "$here/install.sh" >"$work/step/said" 2>&1
}

# Fails with these words, and installs nothing.
refuses() {
  local words=$1
  shift
  ! install "$@" || return 1
  grep -qF -- "$words" "$work/step/said" && [[ ! -e $work/step/path && -z $(find "$work/step/temp" -name kubewright) ]]
}

check() {
  local promise=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
    echo "ok: $promise"
  else
    failed=$((failed + 1))
    echo "FAILED: $promise"
    sed 's/^/  /' "$work/step/said"
  fi
}

a_release_is_put_on_the_path() {
  install && "$(cat "$work/step/path")/kubewright" --version | grep -q '^kubewright ' &&
    [[ ! -e $work/step/env ]] && grep -q "^path=$(cat "$work/step/path")/kubewright$" "$work/step/output"
}

a_version_may_begin_with_v() {
  install KUBEWRIGHT_VERSION=v9.8.7
}

envtest_exports_where_its_programs_are() {
  install KUBEWRIGHT_ENVTEST=true && (
    # shellcheck disable=SC1091
    . "$work/step/env"
    [[ -x $KUBEBUILDER_ASSETS/kube-apiserver && $TEST_ASSET_ETCD == "$KUBEBUILDER_ASSETS/etcd" && -x $TEST_ASSET_ETCD &&
      -x $TEST_ASSET_KUBE_APISERVER ]] && grep -q "^assets=$KUBEBUILDER_ASSETS$" "$work/step/output"
  )
}

a_version_of_kubernetes_is_the_one_of_the_programs() {
  install KUBEWRIGHT_ENVTEST=true KUBEWRIGHT_FOR_KUBERNETES=1.35 &&
    grep -q '^KUBEBUILDER_ASSETS=.*/1\.35\.' "$work/step/env" && grep -qx 'KUBEWRIGHT_KUBERNETES_VERSION=1.35' "$work/step/env"
}

a_kubewright_on_the_path_is_used_as_it_is() {
  with_path=$work/$name:/usr/bin:/bin install KUBEWRIGHT_VERSION= KUBEWRIGHT_RELEASES=file:///nowhere &&
    [[ ! -e $work/step/path ]] && grep -qx "path=$work/$name/kubewright" "$work/step/output"
}

a_wrong_checksum_is_refused() {
  cp "$releases/v9.8.7/$name.tar.gz" "$work/good"
  printf 'x' >>"$releases/v9.8.7/$name.tar.gz"
  local result=0
  refuses "was not installed" || result=1
  mv "$work/good" "$releases/v9.8.7/$name.tar.gz"
  return $result
}

an_archive_without_a_checksum_is_refused() {
  cp "$releases/v9.8.7/SHA256SUMS" "$work/good"
  sed "s/$name/another-$name/" "$work/good" >"$releases/v9.8.7/SHA256SUMS"
  local result=0
  refuses "does not have exactly one line" || result=1
  mv "$work/good" "$releases/v9.8.7/SHA256SUMS"
  return $result
}

check "a release is put on the path" a_release_is_put_on_the_path
check "a version may begin with v" a_version_may_begin_with_v
check "envtest exports where its programs are" envtest_exports_where_its_programs_are
check "a version of Kubernetes is the one of the programs" a_version_of_kubernetes_is_the_one_of_the_programs
check "a kubewright on the path is used as it is" a_kubewright_on_the_path_is_used_as_it_is
check "a wrong checksum is refused" a_wrong_checksum_is_refused
check "an archive without a checksum is refused" an_archive_without_a_checksum_is_refused
check "a version that is no release is refused" refuses "is version 1.2.3 a release?" KUBEWRIGHT_VERSION=1.2.3
check "a version that is none is refused" refuses "give a release such as" KUBEWRIGHT_VERSION=../../etc
check "no version is refused" refuses "give a release such as" KUBEWRIGHT_VERSION=
check "an envtest that is neither true nor false is refused" refuses "give true or false" KUBEWRIGHT_ENVTEST=yes
check "a version of Kubernetes that is none is refused" refuses "give one such as 1.36" KUBEWRIGHT_FOR_KUBERNETES=latest
unsupported() {
  ! install KUBEWRIGHT_ENVTEST=true KUBEWRIGHT_FOR_KUBERNETES=1.30 && grep -qF "supported are" "$work/step/said"
}
check "a version of Kubernetes that is not supported is refused with those that are" unsupported

# Runs trial/trial.sh beside a kubewright that writes down its arguments and a report, and a gh that writes down its own.
mkdir -p "$work/fakes"
cat >"$work/fakes/kubewright" <<'FAKE'
#!/bin/sh
printf '%s\n' "$@" >"$STEP/arguments"
while [ "$#" -gt 0 ]; do
  case $2 in *.md) echo "# Trial of x" >"$2" ;; esac
  shift
done
exit "${ENDS_WITH:-0}"
FAKE
printf '#!/bin/sh\nprintf "%%s\\n" "$@" >"$STEP/comment"\n' >"$work/fakes/gh"
chmod +x "$work"/fakes/*
trial() {
  rm -rf "$work/step"
  mkdir -p "$work/step/temp"
  env -i PATH="$work/fakes:/usr/bin:/bin" STEP="$work/step" RUNNER_TEMP="$work/step/temp" GITHUB_OUTPUT="$work/step/output" \
    GITHUB_STEP_SUMMARY="$work/step/summary" "$@" bash "$here/trial/trial.sh" >"$work/step/said" 2>&1
}

a_trial_is_told_in_the_summary_and_on_the_pull_request() {
  trial PULL_REQUEST=7 TRIAL_ARGUMENTS="--sample 'my samples' -- ./bin/manager" && grep -qx '# Trial of x' "$work/step/summary" &&
    grep -qx 'my samples' "$work/step/arguments" && [[ $(tail -n 2 "$work/step/arguments") == $'--\n./bin/manager' ]] &&
    grep -qx 7 "$work/step/comment" && grep -q '^report=' "$work/step/output"
}

a_trial_that_failed_is_told_and_fails() {
  local result=0
  trial PULL_REQUEST=7 ENDS_WITH=1 || result=$?
  [[ $result -eq 1 && -e $work/step/comment ]]
}

no_comment_is_made_where_none_is_wanted_or_there_is_no_pull_request() {
  trial PULL_REQUEST=7 TRIAL_COMMENT=false && [[ ! -e $work/step/comment ]] && trial && [[ ! -e $work/step/comment ]]
}

a_comment_that_is_neither_true_nor_false_is_refused() {
  ! trial TRIAL_COMMENT=yes && grep -q "give true or false" "$work/step/said"
}

check "a trial is told in the summary and on the pull request" a_trial_is_told_in_the_summary_and_on_the_pull_request
check "a trial that failed is told, and fails" a_trial_that_failed_is_told_and_fails
check "no comment is made where none is wanted, or there is no pull request" no_comment_is_made_where_none_is_wanted_or_there_is_no_pull_request
check "a comment that is neither true nor false is refused" a_comment_that_is_neither_true_nor_false_is_refused

echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
