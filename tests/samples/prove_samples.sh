#!/usr/bin/env bash
# Proves every rewriting of every sample: prove_samples.sh PTXREWRITE FILE.ptx... A table per form, and its time.
# Fails if any kernel is not proved.
set -uo pipefail
tool=$1
shift
failed=0
prove() {
  echo "== $1"
  shift
  local start=$SECONDS
  "$tool" prove "${files[@]}" --passes "$@" || failed=1
  echo "$((SECONDS - start)) s"
}
files=("$@")
prove "hardware form" r2d2 --form hardware
prove "legal form, as the model chooses" "r2d2(cost=model)"
prove "legal form, all candidates" "r2d2(force)"
for candidate in 1 2 3 5; do
  prove "legal form, candidate $candidate" "r2d2(force,candidates=$candidate)"
done
exit $failed
