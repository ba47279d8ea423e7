// Register values are written out by hand from the vendors' manuals, as shifts of the bits named there.
#include "cpu/cpu_features.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace ponder::cpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::uint32_t bits(std::initializer_list<int> positions) {
  std::uint32_t word = 0;
  for (const int position : positions) word |= 1u << position;
  return word;
}

constexpr std::uint64_t kXcr0Sse = 0b011;
constexpr std::uint64_t kXcr0Avx = 0b111;
constexpr std::uint64_t kXcr0Avx512 = 0b11100111;
constexpr std::uint64_t kXcr0Amx = kXcr0Avx512 | 1u << 17 | 1u << 18;

void set_brand(CpuidValues& values, const std::string& text) {
  std::array<char, 48> raw{};
  std::copy_n(text.begin(), std::min(text.size(), raw.size()), raw.begin());
  const auto word = [&](std::size_t at) {
    std::uint32_t bytes = 0;
    for (std::size_t i = 4; i-- > 0;) bytes = bytes << 8 | static_cast<unsigned char>(raw[at + i]);
    return bytes;
  };
  for (std::size_t leaf = 0; leaf < 3; ++leaf) {
    const std::size_t at = leaf * 16;
    values.brand[leaf] = {word(at), word(at + 4), word(at + 8), word(at + 12)};
  }
}

// SSE4.2 and no AVX; the state of 2008.
CpuidValues nehalem() {
  CpuidValues values;
  values.max_leaf = 11;
  values.leaf1.ecx = bits({0, 9, 19, 20, 23});
  return values;
}

CpuidValues haswell() {
  CpuidValues values = nehalem();
  values.max_leaf = 13;
  values.leaf1.ecx |= bits({12, 26, 27, 28, 29});  // FMA, XSAVE, OSXSAVE, AVX, F16C
  values.leaf7.ebx = bits({3, 5, 8});              // BMI1, AVX2, BMI2
  values.xcr0 = kXcr0Avx;
  return values;
}

CpuidValues skylake_server() {
  CpuidValues values = haswell();
  values.max_leaf = 22;
  values.leaf7.ebx |= bits({16, 17, 28, 30, 31});  // F, DQ, CD, BW, VL
  values.xcr0 = kXcr0Avx512;
  return values;
}

CpuidValues sapphire_rapids() {
  CpuidValues values = skylake_server();
  values.max_leaf = 32;
  values.leaf7.eax = 2;
  values.leaf7.ecx = bits({1, 6, 11, 12, 14});  // VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ
  values.leaf7.edx = bits({22, 23, 24, 25});    // AMX-BF16, AVX512-FP16, AMX-TILE, AMX-INT8
  values.leaf7_1.eax = bits({4, 5});            // AVX-VNNI, AVX512-BF16
  values.xcr0 = kXcr0Amx;
  values.max_extended_leaf = 0x80000008;
  set_brand(values, "   Intel(R) Xeon(R) Platinum 8481C @ 2.70GHz");
  return values;
}

TEST(CpuFeatures, ThreeGenerations) {
  const CpuFeatures old = decode_cpu_features(nehalem());
  EXPECT_TRUE(old.sse42);
  EXPECT_TRUE(old.popcnt);
  EXPECT_FALSE(old.avx);
  EXPECT_EQ(best(old), InstructionSet::scalar);
  EXPECT_THAT(attainable(old), ElementsAre(InstructionSet::scalar));

  const CpuFeatures middle = decode_cpu_features(haswell());
  EXPECT_TRUE(middle.avx && middle.avx2 && middle.fma && middle.f16c);
  EXPECT_FALSE(middle.avx512f || middle.avx_vnni);
  EXPECT_EQ(best(middle), InstructionSet::avx2);

  const CpuFeatures server = decode_cpu_features(skylake_server());
  EXPECT_TRUE(server.avx512f && server.avx512bw && server.avx512dq && server.avx512vl);
  EXPECT_FALSE(server.avx512_vnni || server.avx512_bf16 || server.amx_tile);
  EXPECT_EQ(best(server), InstructionSet::avx512);
  EXPECT_THAT(attainable(server),
              ElementsAre(InstructionSet::scalar, InstructionSet::avx2, InstructionSet::avx512));

  const CpuFeatures latest = decode_cpu_features(sapphire_rapids());
  EXPECT_TRUE(latest.avx512_vbmi && latest.avx512_vnni && latest.avx512_bf16 && latest.avx512_fp16);
  EXPECT_TRUE(latest.avx_vnni && latest.amx_tile && latest.amx_int8 && latest.amx_bf16);
  EXPECT_EQ(latest.brand, "Intel(R) Xeon(R) Platinum 8481C @ 2.70GHz");
  EXPECT_EQ(describe(InstructionSet::avx512, latest),
            "avx512 with avx512_vnni, avx512_bf16 (Intel(R) Xeon(R) Platinum 8481C @ 2.70GHz)");
  EXPECT_EQ(describe(InstructionSet::scalar, middle), "scalar");
}

// Two CPUs with the same flags: which of two ways is faster is the maker's doing.
TEST(CpuFeatures, Bf16DotProductsAreUsedWhereTheyAreFast) {
  CpuidValues values = sapphire_rapids();
  const auto set_maker = [&](const char* name) {
    std::memcpy(&values.leaf0.ebx, name, 4);
    std::memcpy(&values.leaf0.edx, name + 4, 4);
    std::memcpy(&values.leaf0.ecx, name + 8, 4);
  };
  set_maker("GenuineIntel");
  EXPECT_FALSE(decode_cpu_features(values).fast_bf16_dot);
  set_maker("AuthenticAMD");
  EXPECT_TRUE(decode_cpu_features(values).fast_bf16_dot);
  values.leaf7_1.eax = bits({4});
  EXPECT_FALSE(decode_cpu_features(values).fast_bf16_dot);
}

TEST(CpuFeatures, Complaint52_CpuidSaysAvx512ButTheOsDoesNotSaveZmm) {
  CpuidValues values = sapphire_rapids();
  values.xcr0 = kXcr0Avx;
  const CpuFeatures features = decode_cpu_features(values);
  EXPECT_FALSE(features.avx512f || features.avx512bw || features.avx512dq || features.avx512vl);
  EXPECT_FALSE(features.avx512_vnni || features.avx512_bf16 || features.avx512_fp16 || features.avx512_vbmi);
  EXPECT_FALSE(features.amx_tile || features.amx_int8 || features.amx_bf16);
  EXPECT_TRUE(features.reported.avx512f);
  EXPECT_TRUE(features.avx2 && features.avx_vnni);
  EXPECT_EQ(best(features), InstructionSet::avx2);
  try {
    require_instruction_set(InstructionSet::avx512, features);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_STREQ(
        error.what(),
        "--isa avx512: this CPU/OS lacks avx512f, avx512bw, avx512dq, avx512vl (the CPU has avx512f, "
        "avx512bw, avx512dq, avx512vl, but the operating system has not enabled the registers)");
  }
}

TEST(CpuFeatures, Complaint52_EveryBitOfTheRegisterStateIsNeeded) {
  // Mask registers, upper ZMM halves, upper sixteen ZMM, YMM, SSE: without any one, no AVX-512.
  for (const int bit : {1, 2, 5, 6, 7}) {
    CpuidValues values = skylake_server();
    values.xcr0 &= ~(std::uint64_t{1} << bit);
    EXPECT_FALSE(attainable(InstructionSet::avx512, decode_cpu_features(values))) << bit;
    EXPECT_EQ(attainable(InstructionSet::avx2, decode_cpu_features(values)), bit > 2) << bit;
  }
  for (const int bit : {17, 18}) {
    CpuidValues values = sapphire_rapids();
    values.xcr0 &= ~(std::uint64_t{1} << bit);
    EXPECT_FALSE(decode_cpu_features(values).amx_tile) << bit;
    EXPECT_TRUE(decode_cpu_features(values).avx512f) << bit;
  }
}

TEST(CpuFeatures, Complaint52_YmmHiddenByTheOs) {
  CpuidValues values = haswell();
  values.xcr0 = kXcr0Sse;
  const CpuFeatures features = decode_cpu_features(values);
  EXPECT_FALSE(features.avx || features.avx2 || features.fma || features.f16c);
  EXPECT_EQ(best(features), InstructionSet::scalar);
  EXPECT_THAT(missing(InstructionSet::avx2, features), ElementsAre("avx", "avx2", "fma", "f16c"));
}

TEST(CpuFeatures, Complaint52_WithoutOsxsaveXcr0CountsForNothing) {
  CpuidValues values = skylake_server();
  values.leaf1.ecx &= ~bits({27});
  const CpuFeatures features = decode_cpu_features(values);
  EXPECT_FALSE(features.os_ymm || features.os_zmm);
  EXPECT_EQ(best(features), InstructionSet::scalar);
}

TEST(CpuFeatures, Complaint52_EachPartOfALevelIsNeeded) {
  struct Part {
    std::uint32_t CpuidRegisters::*word;
    CpuidRegisters CpuidValues::*leaf;
    int bit;
    const char* name;
    bool avx2_too;
  };
  const std::vector<Part> parts = {
      {&CpuidRegisters::ecx, &CpuidValues::leaf1, 28, "avx", true},
      {&CpuidRegisters::ecx, &CpuidValues::leaf1, 12, "fma", true},
      {&CpuidRegisters::ecx, &CpuidValues::leaf1, 29, "f16c", true},
      {&CpuidRegisters::ebx, &CpuidValues::leaf7, 5, "avx2", true},
      {&CpuidRegisters::ebx, &CpuidValues::leaf7, 16, "avx512f", false},
      {&CpuidRegisters::ebx, &CpuidValues::leaf7, 17, "avx512dq", false},
      {&CpuidRegisters::ebx, &CpuidValues::leaf7, 30, "avx512bw", false},
      {&CpuidRegisters::ebx, &CpuidValues::leaf7, 31, "avx512vl", false},
  };
  for (const Part& part : parts) {
    CpuidValues values = skylake_server();
    (values.*part.leaf).*part.word &= ~(1u << part.bit);
    const CpuFeatures features = decode_cpu_features(values);
    EXPECT_THAT(missing(InstructionSet::avx512, features), ElementsAre(part.name));
    EXPECT_EQ(attainable(InstructionSet::avx2, features), !part.avx2_too) << part.name;
    try {
      require_instruction_set(InstructionSet::avx512, features);
      ADD_FAILURE() << part.name;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()), std::string("--isa avx512: this CPU/OS lacks ") + part.name);
    }
  }
}

TEST(CpuFeatures, LeavesTheCpuDoesNotHaveCountForNothing) {
  // Intel CPUs answer a leaf beyond the last with the last one's data.
  CpuidValues values = sapphire_rapids();
  values.max_leaf = 6;
  EXPECT_FALSE(decode_cpu_features(values).avx2);
  values = sapphire_rapids();
  values.leaf7.eax = 0;
  EXPECT_FALSE(decode_cpu_features(values).avx512_bf16);
  EXPECT_TRUE(decode_cpu_features(values).avx512_vnni);
  values.max_extended_leaf = 0x80000001;
  EXPECT_EQ(decode_cpu_features(values).brand, "");
  values.max_leaf = 0;
  EXPECT_FALSE(decode_cpu_features(values).sse42);
}

TEST(CpuFeatures, TheBrandIsMadePrintable) {
  CpuidValues values = sapphire_rapids();
  set_brand(values, "ab\ncd\x01  ");
  EXPECT_EQ(decode_cpu_features(values).brand, "ab\\x0acd\\x01");
  set_brand(values, std::string(48, 'x'));  // no terminating zero
  EXPECT_EQ(decode_cpu_features(values).brand, std::string(48, 'x'));
  set_brand(values, "      ");
  EXPECT_EQ(decode_cpu_features(values).brand, "");
}

TEST(CpuFeatures, Arm) {
  // Linux' HWCAP bits for arm64: FP 0, ASIMD 1, ASIMDHP 10, ASIMDDP 20, SVE 22; HWCAP2: I8MM 13, BF16 14.
  const CpuFeatures plain = decode_arm_features(0b11, 0);
  EXPECT_TRUE(plain.neon);
  EXPECT_FALSE(plain.neon_dotprod || plain.neon_fp16 || plain.neon_i8mm || plain.neon_bf16 || plain.sve);
  EXPECT_EQ(best(plain), InstructionSet::neon);
  const CpuFeatures graviton =
      decode_arm_features(0b11 | 1u << 10 | 1u << 20 | 1u << 22, 1u << 13 | 1u << 14);
  EXPECT_TRUE(graviton.neon_dotprod && graviton.neon_fp16 && graviton.neon_i8mm && graviton.neon_bf16 &&
              graviton.sve);
  EXPECT_THAT(attainable(graviton), ElementsAre(InstructionSet::scalar, InstructionSet::neon));
  EXPECT_EQ(best(decode_arm_features(0, 0)), InstructionSet::scalar);
}

TEST(InstructionSets, NamesAndBack) {
  for (const InstructionSet set :
       {InstructionSet::scalar, InstructionSet::avx2, InstructionSet::avx512, InstructionSet::neon}) {
    EXPECT_EQ(parse_instruction_set(name(set)), set);
  }
  for (const std::string& wrong : std::vector<std::string>{"", "AVX2", "avx", "avx512 ", "sse", "auto\n"}) {
    try {
      parse_instruction_set(wrong);
      ADD_FAILURE() << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_THAT(error.what(), HasSubstr("expected scalar, avx2, avx512 or neon"));
      EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
    }
  }
}

TEST(InstructionSets, Complaint52_AForeignSetIsRefused) {
  try {
    require_instruction_set(InstructionSet::neon, decode_cpu_features(skylake_server()), "--cpu");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_STREQ(error.what(), "--cpu neon: this CPU/OS lacks neon");
  }
  EXPECT_NO_THROW(require_instruction_set(InstructionSet::scalar, CpuFeatures{}));
}

#if defined(__x86_64__) && defined(__linux__)
// The kernel's own list, which is already without what it does not support.
std::set<std::string> kernel_flags() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with("flags")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    return {std::istream_iterator<std::string>(words), {}};
  }
  return {};
}

TEST(CpuFeatures, Complaint52_ThisMachineAsTheKernelSeesIt) {
  const std::set<std::string> flags = kernel_flags();
  if (flags.empty()) GTEST_SKIP() << "/proc/cpuinfo lists no flags";
  const CpuFeatures features = detect_cpu_features();
  EXPECT_EQ(features.sse42, flags.contains("sse4_2"));
  EXPECT_EQ(features.popcnt, flags.contains("popcnt"));
  EXPECT_EQ(features.avx, flags.contains("avx"));
  EXPECT_EQ(features.avx2, flags.contains("avx2"));
  EXPECT_EQ(features.fma, flags.contains("fma"));
  EXPECT_EQ(features.f16c, flags.contains("f16c"));
  EXPECT_EQ(features.avx512f, flags.contains("avx512f"));
  EXPECT_EQ(features.avx512bw, flags.contains("avx512bw"));
  EXPECT_EQ(features.avx512dq, flags.contains("avx512dq"));
  EXPECT_EQ(features.avx512vl, flags.contains("avx512vl"));
  EXPECT_EQ(features.avx512_vbmi, flags.contains("avx512vbmi"));
  EXPECT_EQ(features.avx512_vnni, flags.contains("avx512_vnni"));
  EXPECT_EQ(features.avx512_bf16, flags.contains("avx512_bf16"));
  EXPECT_EQ(features.avx512_fp16, flags.contains("avx512_fp16"));
  EXPECT_EQ(features.avx_vnni, flags.contains("avx_vnni"));
  EXPECT_EQ(features.amx_tile, flags.contains("amx_tile"));
  EXPECT_EQ(features.amx_int8, flags.contains("amx_int8"));
}
#endif

TEST(CpuFeatures, TheMachineItselfCanBeAsked) {
  const CpuFeatures features = detect_cpu_features();
  EXPECT_THAT(missing(best(features), features), IsEmpty());
  EXPECT_NO_THROW(require_instruction_set(best(features), features));
}

}  // namespace
}  // namespace ponder::cpu
