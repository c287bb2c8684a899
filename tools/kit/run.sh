#!/usr/bin/env bash
# Measures a GPU with Rondo: ten minutes at most, no network, nothing installed, nothing sent anywhere.
# usage: ./run.sh [--device N|NAME] [FOLDER]
#   --device  index or part of the name, as ./rondo devices lists them; without it the best one
#   FOLDER    gets report.md and report.json (report-DATE unless given), and isa.json where the driver tells what it compiles
# GGUF files in models/ are measured too, and by llama.cpp where its llama-bench (from its published builds) lies in peer/.
# Exit status 1 if a kernel is wrong or nothing could be measured.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1

usage() {
  echo "usage: ./run.sh [--device N|NAME] [FOLDER]" >&2
  exit 2
}
device=() folder=
while (($#)); do
  case $1 in
    --device) [[ $# -ge 2 ]] || usage; device=(--device "$2"); shift 2 ;;
    -*) usage ;;
    *) [[ -z $folder ]] || usage; folder=$1; shift ;;
  esac
done
folder=${folder:-report-$(date +%Y%m%d-%H%M%S)}
mkdir -p "$folder/parts" || exit 1
parts=$folder/parts
total_s=600
failures=()

# step NAME SECONDS COMMAND...: the command's output in parts/NAME, unless it fails; within what is left of the ten minutes.
step() {
  local name=$1 limit=$2 left=$((total_s - SECONDS)) status=0
  shift 2
  if ((left < limit)); then limit=$left; fi
  if ((limit < 5)); then
    failures+=("$name: no time left")
    return 1
  fi
  echo "$name (at most $limit s)" >&2
  timeout "$limit" "$@" >"$parts/$name" 2>"$parts/$name.err" || status=$?
  if ((status == 0)); then return 0; fi
  local why
  why=$(grep '^rondo: error' "$parts/$name.err" | tail -1 | sed "s,[\"\\\\],,g")
  if ((status == 124)); then why="took longer than $limit s"; fi
  failures+=("$name: ${why:-exit status $status}")
  # A check that finds wrong kernels fails, and says which.
  if [[ $name != check.txt || $status -eq 124 ]]; then rm -f "$parts/$name"; fi
  return 1
}
rondo() { step "$1" "$2" ./rondo "${@:3}" "${device[@]}" --pipeline-cache "$folder/parts/pipelines"; }

step devices.json 30 ./rondo devices --json
rondo text.json 60 generate -m models/kjv-q8_0.gguf -p "And Jesus answered" --temp 0 -n 32 --json
for file in models/*.gguf; do
  name=$(basename "$file" .gguf | tr -c 'A-Za-z0-9_.\n-' _)
  rondo "file-$name.json" 60 bench -m "$file" -p 64 -n 64 -r 3 -o json
  if [[ -x peer/llama-bench ]]; then
    step "peer-$name.json" 60 env LD_LIBRARY_PATH="$PWD/peer" peer/llama-bench -m "$file" -p 64 -n 64 -r 3 -ngl 99 -o json
  fi
done
# With fewer kinds of numbers, once each, where all of them 25 times take too long.
rondo check.txt 200 check || [[ -s $parts/check.txt ]] || rondo check.txt 90 check --brief
rondo kernels.json 120 bench --kernels -r 2 -o json
for model in "135m q8_0" "1b q8_0" "1b q4_k" "8b q4_0"; do
  read -r shape type <<<"$model"
  rondo "model-$shape-$type.json" 60 bench --random "$shape" --type "$type" -p 512 -n 64 -d 0,4096 -r 3 -o json
done
rondo isa.json 60 isa --json && mv "$parts/isa.json" "$folder/isa.json"

# The value of the first field of this name in one of our JSON documents, which have a field a line.
field() { sed -n "s/^ *\"$2\": *\"\{0,1\}\([^\"]*[^\",]\)\"\{0,1\},\{0,1\}$/\1/p" "$parts/$1" 2>/dev/null | head -1; }
device_of() { sed -n '/"device": {/,/}/p' "$parts/$1" 2>/dev/null | sed -n "s/^ *\"$2\": \"\(.*\)\",\{0,1\}$/\1/p" | head -1; }
measured=
for part in "$parts"/file-*.json "$parts"/kernels.json "$parts"/model-*.json; do
  if [[ -z $measured && -s $part ]]; then measured=$(basename "$part"); fi
done
name=$(device_of "${measured:-none}" name) driver=$(device_of "${measured:-none}" driver)
counts=$(tail -1 "$parts/check.txt" 2>/dev/null)
passed=$(sed -n 's/^\([0-9]*\) passed.*/\1/p' <<<"$counts") failed=$(sed -n 's/.* \([0-9]*\) failed.*/\1/p' <<<"$counts")
commit=$(cat commit.txt) version=$(./rondo --version | sed 's/^rondo //')

{
  printf '{"format": 1,\n"commit": "%s", "version": "%s", "date": "%s", "seconds": %d,\n' "$commit" "$version" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$SECONDS"
  printf '"device": {"name": "%s", "driver": "%s"},\n' "$name" "$driver"
  printf '"check": {"passed": %s, "failed": %s},\n' "${passed:-null}" "${failed:-null}"
  printf '"failures": ['
  separator=
  for failure in ${failures[@]+"${failures[@]}"}; do printf '%s\n "%s"' "$separator" "$failure"; separator=,; done
  printf '],\n"parts": {'
  separator=
  for part in "$parts"/*.json; do
    if [[ ! -s $part ]]; then continue; fi
    printf '%s\n"%s": ' "$separator" "$(basename "$part" .json)"
    cat "$part"
    separator=,
  done
  printf '}}\n'
} >"$folder/report.json"

{
  echo "# ${name:-no device}"
  echo
  echo "${driver:-}; Rondo $version, commit $commit; $(date -u +%Y-%m-%d); \`run.sh\` of the kit, $SECONDS s."
  echo
  echo "## Kernels against the reference"
  echo
  echo "${counts:-not measured}"
  grep '^FAILED' "$parts/check.txt" 2>/dev/null | head -20
  echo
  echo "## Models"
  echo
  echo "| model | test | tokens/s | host us/token |"
  echo "|---|---|---:|---:|"
  for part in "$parts"/model-*.json "$parts"/file-*.json; do
    if [[ ! -s $part ]]; then continue; fi
    awk -v model="$(basename "$part" .json)" '
      function value(line) { sub(/^[^:]*: */, "", line); gsub(/[",]/, "", line); return line }
      /"host_us_per_token"/ { host = value($0) }
      /"test"/ { test = value($0) }
      /"tps_mean"/ { mean = value($0) }
      /"tps_stdev"/ { deviation = value($0) }
      /"worst_ms"/ { printf "| %s | %s | %.1f ± %.1f | %.1f |\n", model, test, mean, deviation, host }' "$part"
  done
  for part in "$parts"/peer-*.json; do
    if [[ ! -s $part ]]; then continue; fi
    awk -v model="llama.cpp, $(basename "$part" .json)" '
      function value(line) { sub(/^[^:]*: */, "", line); gsub(/[",]/, "", line); return line }
      /"n_prompt"/ { prompt = value($0) }
      /"n_gen"/ { gen = value($0) }
      /"avg_ts"/ { mean = value($0) }
      /"stddev_ts"/ { printf "| %s | %s | %.1f ± %.1f | |\n", model, prompt > 0 ? "pp" prompt : "tg" gen, mean, value($0) }' "$part"
  done
  echo
  echo "## The device at best"
  echo
  if [[ -s $parts/kernels.json ]]; then
    LC_ALL=C printf 'Copies %.1f GB/s, multiply-adds %.1f GFLOP/s in f32, a dependent dispatch %.2f us.\n' \
      "$(field kernels.json copy_gbps)" "$(field kernels.json fma_gflops)" "$(field kernels.json dispatch_latency_us)"
  fi
  if ((${#failures[@]})); then
    printf '\n## What could not be done\n\n'
    printf -- '- %s\n' "${failures[@]}"
  fi
} >"$folder/report.md"
rm -f "$parts/pipelines"
cat "$folder/report.md"
echo "$folder/report.md, $folder/report.json"
[[ -n $measured && ${failed:-0} == 0 ]]
