#!/usr/bin/env bash
# Installs a release of kubewright, for the steps of a job that follow.
#
# It reads from the environment:
#   KUBEWRIGHT_VERSION         the release, such as 0.1.0
#   KUBEWRIGHT_ENVTEST         true: in the place of envtest's programs, too; false or empty: not
#   KUBEWRIGHT_FOR_KUBERNETES  the version of Kubernetes that is served; empty is the newest
#   KUBEWRIGHT_RELEASES        where the releases are (for tests and mirrors)
#   KUBEWRIGHT_INSTALL_DIR     where it is installed; by default below RUNNER_TEMP
#   GITHUB_PATH, GITHUB_ENV, GITHUB_OUTPUT  the files of GitHub Actions
set -euo pipefail

releases=${KUBEWRIGHT_RELEASES:-https://github.com/kubewright/kubewright/releases/download}

fail() {
  echo "::error title=setup-kubewright::$1" >&2
  exit 1
}

# The part of an archive's name that says for which machine it is.
target() {
  [[ $(uname -s) == Linux ]] ||
    fail "there are no released programs for $(uname -s): use a Linux runner, or put a kubewright on the PATH before"
  case $(uname -m) in
    x86_64 | amd64) echo x86_64-unknown-linux-musl ;;
    aarch64 | arm64) echo aarch64-unknown-linux-musl ;;
    *) fail "there are no released programs for $(uname -m): x86_64 and aarch64 have some; put a kubewright on the PATH before" ;;
  esac
}

download() {
  curl --fail --silent --show-error --location --retry 3 --output "$2" "$1" ||
    fail "$1 cannot be downloaded: is version $version a release?"
}

# Downloads a release, holds it to its checksum, and unpacks it into a folder.
install_release() {
  local folder=$1 name archive
  name=kubewright-$version-$(target)
  archive=$name.tar.gz
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  download "$releases/v$version/$archive" "$work/$archive"
  download "$releases/v$version/SHA256SUMS" "$work/SHA256SUMS"
  # Lines are the sum, a space, a space or an asterisk, and the name.
  awk -v name="$archive" '{ file = substr($0, length($1) + 3) } file == name' "$work/SHA256SUMS" >"$work/expected"
  [[ $(wc -l <"$work/expected") -eq 1 ]] || fail "SHA256SUMS of version $version does not have exactly one line for $archive"
  (cd "$work" && sha256sum --check --status expected) ||
    fail "the sha256 of $archive is not the one in SHA256SUMS: it was not installed"
  mkdir "$work/unpacked"
  tar --extract --gzip --no-same-owner --file "$work/$archive" --directory "$work/unpacked"
  # At the top, or in a folder of the archive's name.
  local found
  found=$(find "$work/unpacked" -maxdepth 2 -type f -name kubewright | head -n 1)
  [[ -n $found ]] || fail "$archive has no program kubewright"
  mkdir -p "$folder"
  install -m 755 "$found" "$folder/kubewright"
}

version=${KUBEWRIGHT_VERSION:-}
version=${version#v}
envtest=${KUBEWRIGHT_ENVTEST:-false}
kubernetes=${KUBEWRIGHT_FOR_KUBERNETES:-}

[[ -z $kubernetes || $kubernetes =~ ^[0-9]+\.[0-9]+$ ]] ||
  fail "the input kubernetes-version is \"$kubernetes\": give one such as 1.36"
case $envtest in
  true | false) ;;
  *) fail "the input envtest is \"$envtest\": give true or false" ;;
esac

if program=$(command -v kubewright); then
  echo "kubewright is on the PATH already: $program"
else
  [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+([-+.][0-9A-Za-z.+-]*)?$ ]] ||
    fail "the input version is \"$version\": give a release such as 0.1.0"
  folder=${KUBEWRIGHT_INSTALL_DIR:-${RUNNER_TEMP:-${TMPDIR:-/tmp}}/kubewright-$version}
  install_release "$folder"
  program=$folder/kubewright
  echo "$folder" >>"${GITHUB_PATH:-/dev/null}"
fi
"$program" --version
echo "path=$program" >>"${GITHUB_OUTPUT:-/dev/null}"

if [[ -n $kubernetes ]]; then
  # What `kubewright up` and the programs of envtest serve in the steps that follow.
  echo "KUBEWRIGHT_KUBERNETES_VERSION=$kubernetes" >>"${GITHUB_ENV:-/dev/null}"
fi

if [[ $envtest == true ]]; then
  arguments=(envtest use --print path)
  [[ -z $kubernetes ]] || arguments+=("$kubernetes")
  # It says itself what is wrong.
  assets=$("$program" "${arguments[@]}") || fail "\"kubewright ${arguments[*]}\" failed"
  {
    echo "KUBEBUILDER_ASSETS=$assets"
    echo "TEST_ASSET_KUBE_APISERVER=$assets/kube-apiserver"
    echo "TEST_ASSET_ETCD=$assets/etcd"
  } >>"${GITHUB_ENV:-/dev/null}"
  echo "assets=$assets" >>"${GITHUB_OUTPUT:-/dev/null}"
fi
