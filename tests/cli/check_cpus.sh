#!/bin/sh
# The program on a processor this machine is not, in an emulator: it takes the instruction set that processor has,
# says so, and gives the answers it gives here.
#
#   check_cpus.sh PONDER QEMU CPU MODEL EXPECTED...
#
# EXPECTED: the instruction sets one of which must be taken (emulators differ in what they can).
set -u
ponder=$1 qemu=$2 cpu=$3 model=$4
shift 4
request='{"state":"parcel 7 is late","questions":{
  "a":{"type":"noul","instructions":"Should the shop pay?"},
  "b":{"type":"choice","instructions":"Which way?","criteria":{"north":"up","south":"down","stay":"here"}}},
  "options":{"think":false}}'
bad=0
# The numbers of the answers; usage counts the digits of these.
numbers() { sed 's/,"usage".*//' | grep -o ':[0-9][0-9.e+-]*' | tr -d :; }

run() { # TYPE ACTIVATIONS TOLERANCE
  here=$(printf '%s' "$request" | "$ponder" decide --model "$model" --isa scalar --type "$1" --activations "$2" | numbers)
  there=$(printf '%s' "$request" | "$qemu" -cpu "$cpu" "$ponder" decide -v --model "$model" --type "$1" --activations "$2" \
    2>"$log" | numbers)
  if [ -z "$here" ] || [ -z "$there" ]; then
    echo "$cpu, --type $1 --activations $2: no answer"
    grep -v '^qemu' "$log"
    bad=1
    return
  fi
  found=
  for isa in $expected; do if grep -q "^cpu $isa," "$log"; then found=$isa; fi; done
  if [ -z "$found" ]; then
    echo "$cpu: took '$(grep '^cpu ' "$log")', expected one of: $expected"
    bad=1
  fi
  printf '%s\n' "$here" >"$log.here"
  printf '%s\n' "$there" | paste "$log.here" - | awk -v tolerance="$3" '
    { d = $1 - $2; if (d < 0) d = -d; if (NF != 2 || d > tolerance) { print "number " NR ": " $1 " here, " $2 " there"; bad = 1 } }
    END { exit bad }' || { echo "$cpu, --type $1 --activations $2: the answers differ"; bad=1; }
}

log=$(mktemp)
trap 'rm -f "$log" "$log.here"' EXIT
expected=$*
run auto f32 1e-4
run q8 f32 1e-4
run q4 native 0.02
run q4tp native 0.02
run bf16 native 0.02
exit $bad
