#!/bin/sh
# Checks that only the kernel files hold wide instructions, and that they hold nothing else the linker could take
# for the whole program.
#
#   check_objects.sh BUILD_DIR [NM] [OBJDUMP]
#
# 1. Objects of kernels_*.cpp define no weak or unique symbols: a copy of an inline function compiled with AVX
#    flags could otherwise be the one every caller gets.
# 2. No other object of a libponder_*.a touches a ymm, zmm or mask register or uses a VEX-encoded instruction.
set -u
build=$1
nm=${2:-nm}
objdump=${3:-objdump}
bad=0
archives=$(find "$build" -name 'libponder_*.a')
[ -n "$archives" ] || { echo "no libponder_*.a below $build"; exit 1; }

kernels=0
for archive in $archives; do
  symbols=$("$nm" "$archive" 2>/dev/null | awk '
    /^[^ ]*\.o:$/ { member = $1; if (member ~ /^kernels_/) print "kernels " member; next }
    member ~ /^kernels_/ && ($2 ~ /^[WVuvw]$/ || $1 ~ /^[vw]$/) { print "weak " member " " $NF }')
  kernels=$((kernels + $(printf '%s\n' "$symbols" | grep -c '^kernels ')))
  if printf '%s\n' "$symbols" | grep '^weak '; then bad=1; fi

  wide=$("$objdump" -d --no-show-raw-insn "$archive" | awk '
    /^[^ ]*\.o: / { member = $1; next }
    member !~ /^kernels_(avx|scalar)/ || member ~ /^kernels_scalar/ {
      if ($0 ~ /%[yz]mm|%k[0-7]/ || $0 ~ /\tv[a-z0-9]+ .*%xmm/) { if (!(member in seen)) print member ": " $0; seen[member] = 1 }
    }')
  if [ -n "$wide" ]; then
    echo "$archive holds instructions outside the baseline:"
    echo "$wide"
    bad=1
  fi
done
[ "$kernels" -ge 3 ] || { echo "found $kernels kernel objects, expected scalar, avx2 and avx512"; bad=1; }
# The check itself must be able to see: the AVX kernels do use wide registers.
for archive in $archives; do
  case $archive in
    */libponder_cpu.a)
      "$objdump" -d "$archive" | grep -q '%zmm' || { echo "no zmm in the AVX-512 kernels: is $objdump at fault?"; bad=1; } ;;
  esac
done
exit $bad
