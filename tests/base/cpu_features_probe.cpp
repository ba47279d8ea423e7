// Prints what cpu_features makes of the CPU it runs on: run under an emulator it shows what another would do.
#include <cstdio>

#include "cpu/cpu_features.hpp"

int main() {
  using namespace ponder::cpu;
  const CpuFeatures features = detect_cpu_features();
  std::printf("best %s\n", describe(best(features), features).c_str());
  for (const InstructionSet set : attainable(features)) std::printf("has %s\n", name(set).data());
  return 0;
}
