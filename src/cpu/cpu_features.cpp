#include "cpu/cpu_features.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#define PONDER_X86 1
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace ponder::cpu {
namespace {

enum class Needs { nothing, ymm, zmm, tile };

// Where a flag is reported, and which registers the operating system has to save for it.
struct X86Flag {
  bool CpuFlags::*member;
  CpuidRegisters CpuidValues::*leaf;
  std::uint32_t CpuidRegisters::*word;
  int bit;
  Needs needs;
};

constexpr X86Flag kX86Flags[] = {
    {&CpuFlags::sse42, &CpuidValues::leaf1, &CpuidRegisters::ecx, 20, Needs::nothing},
    {&CpuFlags::popcnt, &CpuidValues::leaf1, &CpuidRegisters::ecx, 23, Needs::nothing},
    {&CpuFlags::fma, &CpuidValues::leaf1, &CpuidRegisters::ecx, 12, Needs::ymm},
    {&CpuFlags::avx, &CpuidValues::leaf1, &CpuidRegisters::ecx, 28, Needs::ymm},
    {&CpuFlags::f16c, &CpuidValues::leaf1, &CpuidRegisters::ecx, 29, Needs::ymm},
    {&CpuFlags::avx2, &CpuidValues::leaf7, &CpuidRegisters::ebx, 5, Needs::ymm},
    {&CpuFlags::avx512f, &CpuidValues::leaf7, &CpuidRegisters::ebx, 16, Needs::zmm},
    {&CpuFlags::avx512dq, &CpuidValues::leaf7, &CpuidRegisters::ebx, 17, Needs::zmm},
    {&CpuFlags::avx512bw, &CpuidValues::leaf7, &CpuidRegisters::ebx, 30, Needs::zmm},
    {&CpuFlags::avx512vl, &CpuidValues::leaf7, &CpuidRegisters::ebx, 31, Needs::zmm},
    {&CpuFlags::avx512_vbmi, &CpuidValues::leaf7, &CpuidRegisters::ecx, 1, Needs::zmm},
    {&CpuFlags::avx512_vnni, &CpuidValues::leaf7, &CpuidRegisters::ecx, 11, Needs::zmm},
    {&CpuFlags::avx512_fp16, &CpuidValues::leaf7, &CpuidRegisters::edx, 23, Needs::zmm},
    {&CpuFlags::amx_bf16, &CpuidValues::leaf7, &CpuidRegisters::edx, 22, Needs::tile},
    {&CpuFlags::amx_tile, &CpuidValues::leaf7, &CpuidRegisters::edx, 24, Needs::tile},
    {&CpuFlags::amx_int8, &CpuidValues::leaf7, &CpuidRegisters::edx, 25, Needs::tile},
    {&CpuFlags::avx_vnni, &CpuidValues::leaf7_1, &CpuidRegisters::eax, 4, Needs::ymm},
    {&CpuFlags::avx512_bf16, &CpuidValues::leaf7_1, &CpuidRegisters::eax, 5, Needs::zmm},
};

// XCR0: bit 1 SSE, 2 upper halves of YMM, 5 mask registers, 6 and 7 ZMM, 17 and 18 tiles.
constexpr std::uint64_t kYmmState = 0x6;
constexpr std::uint64_t kZmmState = kYmmState | 0xE0;
constexpr std::uint64_t kTileState = 0x60000;
constexpr std::uint32_t kOsxsave = 1u << 27;

struct NamedFlag {
  const char* name;
  bool CpuFlags::*member;
};

struct Level {
  InstructionSet set;
  const char* name;
  std::vector<NamedFlag> needed;  // each is also needed by the levels above it
  std::vector<NamedFlag> extras;
};

const std::vector<Level>& levels() {
  static const std::vector<Level> all = {
      {InstructionSet::scalar, "scalar", {}, {}},
      {InstructionSet::avx2,
       "avx2",
       {{"avx", &CpuFlags::avx},
        {"avx2", &CpuFlags::avx2},
        {"fma", &CpuFlags::fma},
        {"f16c", &CpuFlags::f16c}},
       {{"avx_vnni", &CpuFlags::avx_vnni}}},
      {InstructionSet::avx512,
       "avx512",
       {{"avx", &CpuFlags::avx},
        {"avx2", &CpuFlags::avx2},
        {"fma", &CpuFlags::fma},
        {"f16c", &CpuFlags::f16c},
        {"avx512f", &CpuFlags::avx512f},
        {"avx512bw", &CpuFlags::avx512bw},
        {"avx512dq", &CpuFlags::avx512dq},
        {"avx512vl", &CpuFlags::avx512vl}},
       {{"avx512_vnni", &CpuFlags::avx512_vnni}, {"avx512_bf16", &CpuFlags::avx512_bf16}}},
      {InstructionSet::neon,
       "neon",
       {{"neon", &CpuFlags::neon}},
       {{"neon_dotprod", &CpuFlags::neon_dotprod}, {"neon_i8mm", &CpuFlags::neon_i8mm}}},
  };
  return all;
}

const Level& level_of(InstructionSet set) {
  for (const Level& level : levels()) {
    if (level.set == set) return level;
  }
  fail(ErrorKind::internal, "unknown instruction set number {}", static_cast<int>(set));
}

std::string maker_of(const CpuidRegisters& leaf0) {
  std::string out(12, '\0');
  std::memcpy(out.data(), &leaf0.ebx, 4);
  std::memcpy(out.data() + 4, &leaf0.edx, 4);
  std::memcpy(out.data() + 8, &leaf0.ecx, 4);
  return out;
}

// The brand string is 48 bytes in register order, padded with zeros or blanks on either side.
std::string brand_text(const std::array<CpuidRegisters, 3>& leaves) {
  std::string text;
  for (const CpuidRegisters& leaf : leaves) {
    for (const std::uint32_t word : {leaf.eax, leaf.ebx, leaf.ecx, leaf.edx}) {
      for (int shift = 0; shift < 32; shift += 8) text += static_cast<char>(word >> shift & 0xFF);
    }
  }
  text.resize(std::min(text.size(), text.find('\0')));
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return {};
  return printable(text.substr(first, text.find_last_not_of(' ') - first + 1));
}

#ifdef PONDER_X86

CpuidRegisters ask_cpuid(std::uint32_t leaf, std::uint32_t subleaf) {
  CpuidRegisters out;
  __cpuid_count(leaf, subleaf, out.eax, out.ebx, out.ecx, out.edx);
  return out;
}

std::uint64_t ask_xcr0() {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  // xgetbv by its bytes: neither flag nor assembler need know it.
  asm volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(low), "=d"(high) : "c"(0));
  return std::uint64_t{high} << 32 | low;
}

CpuidValues read_cpuid() {
  CpuidValues values;
  values.max_leaf = __get_cpuid_max(0, nullptr);
  values.max_extended_leaf = __get_cpuid_max(0x80000000u, nullptr);
  values.leaf0 = ask_cpuid(0, 0);
  if (values.max_leaf >= 1) values.leaf1 = ask_cpuid(1, 0);
  if (values.max_leaf >= 7) values.leaf7 = ask_cpuid(7, 0);
  if (values.max_leaf >= 7 && values.leaf7.eax >= 1) values.leaf7_1 = ask_cpuid(7, 1);
  if (values.max_extended_leaf >= 0x80000004u) {
    for (std::uint32_t i = 0; i < 3; ++i) values.brand[i] = ask_cpuid(0x80000002u + i, 0);
  }
  if ((values.leaf1.ecx & kOsxsave) != 0) values.xcr0 = ask_xcr0();
  return values;
}

#endif

}  // namespace

CpuFeatures decode_cpu_features(const CpuidValues& values) {
  CpuidValues trusted = values;
  // A leaf beyond the highest one answers with another leaf's data (Intel), so it counts for nothing.
  if (values.max_leaf < 1) trusted.leaf1 = {};
  if (values.max_leaf < 7) trusted.leaf7 = {};
  if (trusted.leaf7.eax < 1) trusted.leaf7_1 = {};
  if (values.max_extended_leaf < 0x80000004u) trusted.brand = {};
  if ((trusted.leaf1.ecx & kOsxsave) == 0) trusted.xcr0 = 0;

  CpuFeatures features;
  features.os_ymm = (trusted.xcr0 & kYmmState) == kYmmState;
  features.os_zmm = (trusted.xcr0 & kZmmState) == kZmmState;
  features.os_tile = (trusted.xcr0 & kTileState) == kTileState;
  for (const X86Flag& flag : kX86Flags) {
    const bool reported = ((trusted.*flag.leaf).*flag.word >> flag.bit & 1) != 0;
    const bool enabled = flag.needs == Needs::nothing || (flag.needs == Needs::ymm && features.os_ymm) ||
                         (flag.needs == Needs::zmm && features.os_zmm) ||
                         (flag.needs == Needs::tile && features.os_tile);
    features.reported.*flag.member = reported;
    features.*flag.member = reported && enabled;
  }
  const std::string maker = maker_of(values.leaf0);
  features.fast_bf16_dot = features.avx512_bf16 && (maker == "AuthenticAMD" || maker == "HygonGenuine");
  features.brand = brand_text(trusted.brand);
  return features;
}

CpuFeatures decode_arm_features(std::uint64_t hwcap, std::uint64_t hwcap2) {
  const auto bit = [](std::uint64_t word, int index) { return (word >> index & 1) != 0; };
  CpuFeatures features;
  features.neon = bit(hwcap, 1);           // ASIMD
  features.neon_fp16 = bit(hwcap, 10);     // ASIMDHP
  features.neon_dotprod = bit(hwcap, 20);  // ASIMDDP
  features.sve = bit(hwcap, 22);           // SVE
  features.neon_i8mm = bit(hwcap2, 13);    // I8MM
  features.neon_bf16 = bit(hwcap2, 14);    // BF16
  features.reported = features;
  return features;
}

CpuFeatures detect_cpu_features() {
#ifdef PONDER_X86
  return decode_cpu_features(read_cpuid());
#elif defined(__aarch64__) && defined(__linux__)
  return decode_arm_features(getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
#elif defined(__aarch64__)
  return decode_arm_features(1u << 1, 0);  // the baseline
#else
  return {};
#endif
}

std::string_view name(InstructionSet set) {
  return level_of(set).name;
}

InstructionSet parse_instruction_set(std::string_view text, std::string_view option) {
  for (const Level& level : levels()) {
    if (text == level.name) return level.set;
  }
  fail(ErrorKind::usage, "{} {}: expected scalar, avx2, avx512 or neon", option, printable(text));
}

std::vector<std::string> missing(InstructionSet set, const CpuFeatures& features) {
  std::vector<std::string> names;
  for (const NamedFlag& flag : level_of(set).needed) {
    if (!(features.*flag.member)) names.emplace_back(flag.name);
  }
  return names;
}

bool attainable(InstructionSet set, const CpuFeatures& features) {
  return missing(set, features).empty();
}

std::vector<InstructionSet> attainable(const CpuFeatures& features) {
  std::vector<InstructionSet> sets;
  for (const Level& level : levels()) {
    if (attainable(level.set, features)) sets.push_back(level.set);
  }
  return sets;
}

InstructionSet best(const CpuFeatures& features) {
  return attainable(features).back();
}

void require_instruction_set(InstructionSet set, const CpuFeatures& features, std::string_view option) {
  const std::vector<std::string> lacking = missing(set, features);
  if (lacking.empty()) return;
  std::vector<std::string> switched_off;
  for (const NamedFlag& flag : level_of(set).needed) {
    if (!(features.*flag.member) && features.reported.*flag.member) switched_off.emplace_back(flag.name);
  }
  std::string message =
      fmt::format("{} {}: this CPU/OS lacks {}", option, name(set), fmt::join(lacking, ", "));
  if (!switched_off.empty()) {
    message += fmt::format(" (the CPU has {}, but the operating system has not enabled the registers)",
                           fmt::join(switched_off, ", "));
  }
  throw Error(ErrorKind::unsupported, message);
}

std::string describe(InstructionSet set, const CpuFeatures& features) {
  std::vector<std::string> extras;
  for (const NamedFlag& flag : level_of(set).extras) {
    if (features.*flag.member) extras.emplace_back(flag.name);
  }
  std::string text(name(set));
  if (!extras.empty()) text += fmt::format(" with {}", fmt::join(extras, ", "));
  if (!features.brand.empty()) text += fmt::format(" ({})", features.brand);
  return text;
}

}  // namespace ponder::cpu
