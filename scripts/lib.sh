# shellcheck shell=bash disable=SC2034
# Shared by the scripts here: where the project is, which packages it needs, how stages are counted.
# Sourced, never run.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=$(nproc)

# Names of Debian 12 and 13.
build_packages=(g++ cmake ninja-build pkgconf nlohmann-json3-dev libcli11-dev libfmt-dev libpcre2-dev libutf8proc-dev)
test_packages=(libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev zlib1g-dev binutils python3 qemu-user
               g++-aarch64-linux-gnu clang libclang-rt-dev)
lint_packages=(clang-format clang-tidy)

die() {
  echo "$(basename "$0"): $*" >&2
  exit 1
}

is_installed() {
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# need_packages NAME...: installs those that are missing, as root or through sudo.
need_packages() {
  command -v dpkg-query >/dev/null || die "this is not Debian; install by hand: $*"
  local missing=() name as_root=()
  for name in "$@"; do
    is_installed "$name" || missing+=("$name")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "these packages are missing; install them as root: ${missing[*]}"
    as_root=(sudo)
  fi
  echo "Installing ${missing[*]}"
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
  "${as_root[@]}" "${apt[@]}" update || die "apt-get update failed"
  "${as_root[@]}" "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null \
    || die "apt-get could not install: ${missing[*]}"
}

# configure PRESET [CMAKE ARGUMENT...]
configure() {
  local preset=$1
  shift
  local launcher=()
  if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  cmake --preset "$preset" "${launcher[@]}" "$@" >/dev/null
}

# ---- stages --------------------------------------------------------------------------------------------------

passed=0
failed=0

say() { printf '\n==== %s\n' "$*"; }

# run_ctest PRESET [CTEST ARGUMENT...]: every test case of the programs that ctest runs counts.
run_ctest() {
  local preset=$1 log more_passed=0 more_failed=0 status=0
  shift
  log=$root/build/$preset/Testing/Temporary/LastTest.log
  rm -f "$log"
  ctest --preset "$preset" --no-tests=error -j "$jobs" "$@" || status=$?
  if [ -f "$log" ]; then read -r more_passed more_failed <<<"$("$root/scripts/count-tests" "$log")"; fi
  if [ "$status" -ne 0 ] && [ "$more_failed" -eq 0 ]; then more_failed=1; fi
  passed=$((passed + more_passed))
  failed=$((failed + more_failed))
}

# The last line of a script that counts; the exit status says whether everything passed.
finish() {
  printf '\n%d passed, %d failed\n' "$passed" "$failed"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
