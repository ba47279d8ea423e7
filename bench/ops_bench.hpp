// What the files of ops_bench share: the machine's own limits, and a line's share of them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include <benchmark/benchmark.h>

#include "base/aligned_buffer.hpp"
#include "base/thread_pool.hpp"
#include "cpu/backend.hpp"

namespace ponder::bench {

struct Setting {
  cpu::InstructionSet isa;
  std::shared_ptr<ThreadPool> pool;
  std::unique_ptr<ops::Backend> backend;
  double read_bytes = 0;  // bytes a second, plain reading of a large buffer
  double flops = 0;       // float operations a second, multiply-adds that never leave the first-level cache
};
extern Setting setting;

// Rates of a line: bytes and float operations of one iteration.
void report(benchmark::State& state, double bytes, double flops);
AlignedBuffer<float> random_rows(std::size_t n);
void add(const std::string& name, std::function<void(benchmark::State&)> body);

// Attention, the delta rule and the operations on rows, on the shapes of a 4B model.
void register_sequence_ops();

}  // namespace ponder::bench
