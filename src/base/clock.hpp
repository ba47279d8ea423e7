// Elapsed time for reports and budgets; never an input to a result.
#pragma once

#include <chrono>

namespace ponder {

class Stopwatch {
 public:
  void restart() { start_ = Clock::now(); }
  // Milliseconds since construction or the last restart(). Never goes backwards.
  double elapsed_ms() const {
    return std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace ponder
