#!/usr/bin/env bash
# Runs `kubewright trial` and tells the job's summary and the pull request. Variables: TRIAL_ARGUMENTS, TRIAL_MINUTES, TRIAL_FAIL_ON,
# TRIAL_BASELINE, TRIAL_COMMENT (true or false), PULL_REQUEST (its number), GH_TOKEN.
set -euo pipefail

fail() {
  echo "::error::$1"
  exit 2
}

command -v kubewright >/dev/null || fail "kubewright is not on the PATH: use kubewright/kubewright/bindings/github-action before"
case ${TRIAL_COMMENT:-true} in
true | false) ;;
*) fail "comment is ${TRIAL_COMMENT}: give true or false" ;;
esac

report=${RUNNER_TEMP:-/tmp}/kubewright-trial
mkdir -p "$report"
echo "report=$report" >>"${GITHUB_OUTPUT:-/dev/null}"

# The arguments are the workflow's own, and written as for a shell.
words=()
eval "words=(${TRIAL_ARGUMENTS:-})"
options=(--time "${TRIAL_MINUTES:-10}" --fail-on "${TRIAL_FAIL_ON:-error}" --recordings "$report/recordings"
  --report "$report/trial.md" --report "$report/trial.html" --report "$report/trial.json"
  --junit "$report/junit.xml" --sarif "$report/trial.sarif")
if [[ -n ${TRIAL_BASELINE:-} ]]; then
  options+=(--baseline "$TRIAL_BASELINE")
fi

result=0
kubewright trial "${options[@]}" "${words[@]}" >/dev/null || result=$?
if [[ ! -f $report/trial.md ]]; then
  exit "$result"
fi

# A comment has at most 65,536 characters, a summary a megabyte.
head -c 60000 "$report/trial.md" >"$report/comment.md"
cat "$report/comment.md" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
if [[ ${TRIAL_COMMENT:-true} == true && -n ${PULL_REQUEST:-} ]]; then
  gh pr comment "$PULL_REQUEST" --edit-last --create-if-none --body-file "$report/comment.md" ||
    echo "::warning::the report did not become a comment: has the job pull-requests: write?"
fi
exit "$result"
