// Which instructions this machine can execute: what the CPU reports, and of that only what the operating
// system has switched on.
//
// A CPU may report AVX-512 under a kernel or hypervisor that does not save its registers; the first such
// instruction would kill the process. So both are asked: CPUID, and the XCR0 register by XGETBV.
// Sources: Intel SDM volume 1 chapter 13 and volume 2 CPUID; AMD APM volume 3 appendix E; Linux elf_hwcaps
// for Arm.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ponder::cpu {

struct CpuFlags {
  bool sse42 = false;
  bool popcnt = false;
  bool avx = false;
  bool avx2 = false;
  bool fma = false;
  bool f16c = false;
  bool avx_vnni = false;  // the 256-bit form, on CPUs without AVX-512
  bool avx512f = false;
  bool avx512bw = false;
  bool avx512dq = false;
  bool avx512vl = false;
  bool avx512_vbmi = false;
  bool avx512_vnni = false;
  bool avx512_bf16 = false;
  bool avx512_fp16 = false;
  bool amx_tile = false;  // the process must still ask Linux for the tile registers before it uses them
  bool amx_int8 = false;
  bool amx_bf16 = false;
  bool neon = false;
  bool neon_fp16 = false;
  bool neon_dotprod = false;
  bool neon_i8mm = false;
  bool neon_bf16 = false;
  bool sve = false;
};

// The flags themselves say what may be used.
struct CpuFeatures : CpuFlags {
  CpuFlags reported;    // what the CPU claims, whether or not the operating system lets it be used
  bool os_ymm = false;  // the operating system saves the 256-bit registers
  bool os_zmm = false;  // ... and the 512-bit and mask registers
  bool os_tile = false;
  // vdpbf16ps does more than fused multiply-adds of floats do: on AMD's CPUs one or two start each cycle, on
  // Intel's one every other cycle (measured; uops.info), which two multiply-adds a cycle equal and beat.
  bool fast_bf16_dot = false;
  std::string brand;  // the CPU's own name, printable; may be empty
};

struct CpuidRegisters {
  std::uint32_t eax = 0;
  std::uint32_t ebx = 0;
  std::uint32_t ecx = 0;
  std::uint32_t edx = 0;
};

// The raw answers; leaves that the CPU does not have stay 0.
struct CpuidValues {
  std::uint32_t max_leaf = 0;
  std::uint32_t max_extended_leaf = 0;
  CpuidRegisters leaf0;  // ebx, edx, ecx: the maker's name
  CpuidRegisters leaf1;
  CpuidRegisters leaf7;                   // subleaf 0
  CpuidRegisters leaf7_1;                 // subleaf 1, where leaf7.eax >= 1
  std::array<CpuidRegisters, 3> brand{};  // leaves 0x80000002 to 4
  std::uint64_t xcr0 = 0;                 // 0 unless CPUID says XGETBV works (OSXSAVE)
};

CpuFeatures decode_cpu_features(const CpuidValues& values);
// From Linux' auxiliary vector on 64-bit Arm.
CpuFeatures decode_arm_features(std::uint64_t hwcap, std::uint64_t hwcap2);

// Asks this machine. Costs some microseconds (much more in a virtual machine): ask once and keep the answer.
CpuFeatures detect_cpu_features();

// The instruction sets kernels are compiled for.
enum class InstructionSet {
  scalar,  // the compiler's baseline of the architecture, always there
  avx2,    // AVX2, FMA and F16C
  avx512,  // F, BW, DQ and VL, on top of avx2
  neon,    // 64-bit Arm's baseline
};

std::string_view name(InstructionSet set);

// "scalar", "avx2", "avx512" or "neon"; anything else fails with ErrorKind::usage, naming `option`.
InstructionSet parse_instruction_set(std::string_view text, std::string_view option = "--isa");

// What of `set` is not there, by name; empty when it can be used.
std::vector<std::string> missing(InstructionSet set, const CpuFeatures& features);
bool attainable(InstructionSet set, const CpuFeatures& features);
// All that can be used, from the plainest to the best; never empty.
std::vector<InstructionSet> attainable(const CpuFeatures& features);
InstructionSet best(const CpuFeatures& features);

// Fails with ErrorKind::unsupported, naming what is missing, when `set` cannot be used here.
void require_instruction_set(InstructionSet set, const CpuFeatures& features,
                             std::string_view option = "--isa");

// For the log: "avx512 with avx512_vnni, avx512_bf16 (CPU name)". The extras are those `set` can make use of.
std::string describe(InstructionSet set, const CpuFeatures& features);

}  // namespace ponder::cpu
