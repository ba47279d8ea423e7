// What `ponder bench --think` found, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "decide/json_value.hpp"
#include "decide/think_benchmark.hpp"
#include "models/hybrid/drafter.hpp"

namespace ponder::cli {

decide::Value spread_json(const engine::Spread& spread);

struct ThinkReport {
  decide::ThinkSettings settings;
  hybrid::DraftMemory memory;
  std::string draft_kv;                       // its type
  std::vector<decide::ThinkFigures> figures;  // empty: nothing was asked for

  std::string text() const;
  decide::Value json() const;
};

}  // namespace ponder::cli
