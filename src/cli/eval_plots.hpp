// The plots of an evaluation, and the page they are part of.
#pragma once

#include <string>
#include <vector>

#include "cli/eval_report.hpp"

namespace ponder::cli {

struct NamedPlot {
  std::string file;     // "reliability.svg"
  std::string caption;  // one sentence, plain text
  std::string svg;
};

std::vector<NamedPlot> eval_plots(const EvalReport& report);

// One self-contained page: no script, nothing fetched.
std::string eval_page(const EvalReport& report, const std::vector<NamedPlot>& plots);

}  // namespace ponder::cli
