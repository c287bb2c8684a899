#!/usr/bin/env bash
# Builds the tests and runs them under the validation layers on lavapipe: everything that a change can break, on one driver.
# Last line: "N passed, N failed, N skipped".
# usage: tools/test.sh [--all | --thorough]
#   --all       also the tests labelled `all`; and of device_tests on SwiftShader, which has 4 lanes rather than 8 and compiles
#               everything again each time, every 24th, and on a newer lavapipe under newer validation layers
#               (tools/new_drivers.sh) every twelfth, and every sixth of the tests of matrix units
#   --thorough  all that, with everything labelled `device` and every case of `check` on every driver and at 4 and 16 lanes,
#               the tests labelled `thorough`, and RONDO_TEST_THOROUGH=1 for those that can do more
# RONDO_TEST_DATA=FOLDER gives the tests more models and cases. With CI=true, no SwiftShader or
# newer lavapipe is a failure of --all.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The most tests that one run may skip, those aside that say that RONDO_TEST_DATA is not set: a suite that skips itself away
# must not look green.
max_skipped=12
timeout_s=1800

all=no thorough=no
for argument in "$@"; do
  case $argument in
    --all) all=yes ;;
    --thorough) all=yes thorough=yes ;;
    *) echo "usage: tools/test.sh [--all | --thorough]" >&2; exit 2 ;;
  esac
done

tools/setup.sh --test
if [[ ! -e build/dev/build.ninja || CMakePresets.json -nt build/dev/build.ninja ]]; then
  cmake --preset dev
fi
cmake --build --preset dev

export RONDO_TEST_VALIDATE=1
export VK_LAYER_ENABLES=VALIDATION_CHECK_ENABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT
select_tests=(--parallel "$(nproc)" --timeout "$timeout_s" --no-tests=error
  --test-output-size-passed 100000000 --test-output-size-failed 100000000)
case $all$thorough in
  nono) select_tests+=(-LE '^(all|thorough)$') ;;
  yesno) select_tests+=(-LE '^thorough$') ;;
  *) export RONDO_TEST_THOROUGH=1 ;;
esac

reports=$PWD/build/dev/reports
rm -rf "$reports"
mkdir -p "$reports"

fail() { echo "$1" >>"$reports/failed_runs.txt"; }

# run_tests NAME ICD_MANIFEST [ctest arguments]
run_tests() {
  local name=$1 manifest=$2
  shift 2
  printf '\n== %s\n' "$name"
  # In a folder of its own, as two at once would write the same log.
  mkdir "$reports/$name"
  printf 'subdirs("%s")\n' "$PWD/build/dev" >"$reports/$name/CTestTestfile.cmake"
  VK_DRIVER_FILES=$manifest VK_ICD_FILENAMES=$manifest ctest --test-dir "$reports/$name" \
    --output-junit "$reports/$name.xml" "${select_tests[@]}" "$@" ||
    fail "$name"
}

# share N COMMAND...: with every Nth test of each program, or all if thorough.
share() {
  local shards=$1
  [[ $thorough == no ]] || shards=1
  GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=0 "${@:2}"
}

lavapipe=
for manifest in /usr/share/vulkan/icd.d/lvp_icd*.json /usr/local/share/vulkan/icd.d/lvp_icd*.json; do
  if [[ -z $lavapipe && -e $manifest ]]; then lavapipe=$manifest; fi
done
[[ -n $lavapipe ]] || { echo "test: error: lavapipe's ICD manifest (lvp_icd*.json) not found" >&2; exit 1; }

# What it runs is tested where it is there.
newer=
if [[ $all == yes ]] && newer=$(tools/new_drivers.sh || tools/new_drivers.sh sid); then
  export RONDO_TEST_SPIRV_TOOLS=$newer/tool
fi
# `check` compiles for minutes what op_tests have seen; tools/check_profiles.sh runs it as other devices.
left_out='^check_brief$|_of_matrix_units$'
[[ $thorough == yes ]] || left_out+='|^check$'
run_tests lavapipe "$lavapipe" -E "$left_out"
if [[ $all == yes ]]; then
  others=(-L '^device$' -E '^check$') of_4_lanes=(-L '^device$' -E '^check$')
  if [[ $thorough == yes ]]; then
    others=(-L '^device$') of_4_lanes=(-L '^(device|brief)$' -E '^check$')
    LP_NATIVE_VECTOR_WIDTH=128 run_tests lavapipe-4-lanes "$lavapipe" "${of_4_lanes[@]}"
    LP_NATIVE_VECTOR_WIDTH=512 run_tests lavapipe-16-lanes "$lavapipe" "${others[@]}"
  fi
  # At once, as the first is one program; the lines of both come together.
  if swiftshader=$(tools/fetch_swiftshader.sh); then
    share 24 run_tests swiftshader "$swiftshader" "${of_4_lanes[@]}" | sed 's/^./swiftshader: &/' &
  else
    echo "test: no SwiftShader, so its run is left out"
    if [[ ${CI-} == true ]]; then fail swiftshader; fi
  fi
  if [[ -n $newer ]]; then
    newer_lavapipe=lavapipe-of-mesa-$(cat "$newer/mesa.txt")
    export MESA_SHADER_CACHE_DISABLE=false RONDO_TEST_LAUNCHER=$newer/run RONDO_TEST_DRIVER=lvp
    share 6 run_tests "$newer_lavapipe-matrices" "$newer/icd/lvp.json" -L '^matrix$'
    share 12 run_tests "$newer_lavapipe" "$newer/icd/lvp.json" "${others[@]}"
  else
    echo "test: no newer drivers, so their run is left out"
    if [[ ${CI-} == true ]]; then fail newer-lavapipe; fi
  fi
  wait
fi

status=0
if [[ -e $reports/failed_runs.txt ]]; then
  sed 's/.*/test: run & failed/' "$reports/failed_runs.txt"
  status=1
fi

# A CTest test may be one case or a whole GoogleTest program: where the output has GoogleTest's lines, they are counted.
/usr/bin/python3 - "$max_skipped" "$reports"/*.xml <<'PYTHON' || status=1
import collections, re, sys, xml.etree.ElementTree as xml

max_skipped, ok = int(sys.argv[1]), True
total = collections.Counter()
for path in sys.argv[2:]:
    name = re.sub(r".*/|\.xml$", "", path)
    run, reasons = collections.Counter(), collections.Counter()
    for case in xml.parse(path).getroot().iter("testcase"):
        output = case.findtext("system-out") or ""
        counts = {kind: len(re.findall(rf"\[ +{word} +\] .*\(\d+ ms\)", output))
                  for kind, word in (("passed", "OK"), ("failed", "FAILED"), ("skipped", "SKIPPED"))}
        skip = case.find("skipped")
        if skip is not None and not skip.get("message", "").startswith("SKIP_"):
            counts = {"failed": 1}  # not run at all: no executable, a missing file, a failed fixture
        elif not any(counts.values()):
            kind = "skipped" if skip is not None else "passed" if case.get("status") == "run" else "failed"
            counts = {kind: 1}
        elif case.get("status") == "fail" and not counts["failed"]:
            counts["failed"] = 1  # died on the way
        run.update(counts)
        texts = re.findall(r": Skipped\n(.*)", output) or (output.strip() or "?").splitlines()[-1:]
        reasons.update(texts if counts.get("skipped") else [])
        if counts.get("failed"):
            print(f"test: {name}: failed: {case.get('name')}")
            failed = re.findall(r"^\[ RUN      \] .*\n(?:(?!\[ RUN ).*\n)*?\[  FAILED  \] .* ms\)", output, re.M)
            print("\n".join(failed) or "\n".join(output.splitlines()[-80:]))  # all of it that failed, or where it died
    for reason, count in reasons.most_common():
        print(f"test: {name}: skipped {count} x: {reason}")
    unexplained = run["skipped"] - reasons["RONDO_TEST_DATA is not set"]
    if unexplained > max_skipped:
        print(f"test: {name}: {unexplained} skipped, but max_skipped in tools/test.sh is {max_skipped}")
        ok = False
    ok = ok and not run["failed"]
    total.update(run)
print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
sys.exit(0 if ok and total["passed"] else 1)
PYTHON
exit "$status"
