#!/bin/sh
# Checks that only the kernel files hold wide instructions, and that they hold nothing else the linker could take
# for the whole program.
#
#   check_objects.sh BUILD_DIR [NM] [OBJDUMP]
#
# 1. Kernel objects (kernels_*.cpp, packed_*.cpp) define no weak or unique symbols: a copy of an inline function
#    compiled with AVX flags could otherwise be the one every caller gets.
# 2. No other object of a libponder_*.a touches a ymm, zmm or mask register or uses a VEX-encoded instruction, and
#    neither do the scalar kernels.
# 3. AVX-512 stays in *_avx512*, and dot products of bytes and of bf16 pairs in the objects of that name: these are
#    chosen by CPU flags of their own.
set -u
build=$1
nm=${2:-nm}
objdump=${3:-objdump}
bad=0
archives=$(find "$build" -name 'libponder_*.a')
[ -n "$archives" ] || { echo "no libponder_*.a below $build"; exit 1; }

for archive in $archives; do
  symbols=$("$nm" "$archive" 2>/dev/null | awk '
    /^[^ ]*\.o:$/ { member = $1; next }
    member ~ /^(kernels|packed)_/ && member !~ /^packed_layout/ && ($2 ~ /^[WVuvw]$/ || $1 ~ /^[vw]$/) {
      print "weak " member " " $NF }')
  if [ -n "$symbols" ]; then printf '%s\n' "$symbols"; bad=1; fi

  wide=$("$objdump" -d --no-show-raw-insn "$archive" | awk '
    function report(what) { if (!((member, what) in seen)) print member " " what ": " $0; seen[member, what] = 1 }
    /^[^ ]*\.o: / { member = $1; avx = member ~ /^(kernels|packed)_avx/; next }
    !avx && (/%[yz]mm|%k[0-7]/ || /\tv[a-z0-9]+ .*%xmm/) { report("is outside the baseline") }
    avx && member !~ /_avx512/ && /%zmm|%k[1-7]|%[xy]mm(1[6-9]|2[0-9]|3[01])/ { report("uses AVX-512") }
    /\tvpdp(bus|wss)/ && member !~ /_vnni|_peak/ { report("uses VNNI") }
    /\tv(dp|cvtne.*ps2?2?)bf16/ && member !~ /_bf16|_peak/ { report("uses BF16") }')
  if [ -n "$wide" ]; then
    echo "$archive:"
    echo "$wide"
    bad=1
  fi
done

# The check itself must be able to see: the objects are there, and use what they are named for.
cpu=$(printf '%s\n' "$archives" | grep '/libponder_cpu\.a$')
uses() {
  "$objdump" -d --no-show-raw-insn "$cpu" | awk -v name="$1" -v wanted="$2" '
    /^[^ ]*\.o: / { here = $1 == name ".cpp.o:"; next }
    here && $0 ~ wanted { found = 1 }
    END { exit !found }' || { echo "$1 has no $2: is it built, is $objdump at fault?"; bad=1; }
}
uses kernels_scalar xmm
uses kernels_avx2 ymm
uses kernels_avx512 zmm
uses packed_scalar xmm
uses packed_avx2 vpmaddubsw
uses packed_avx2_vnni vpdpbusd
uses packed_avx512 vpmaddubsw
uses packed_avx512_vnni vpdpbusd
uses kernels_avx512_bf16 vdpbf16ps
exit $bad
