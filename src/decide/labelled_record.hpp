// Labelled records, one JSON object a line: requests whose right answers are known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decide/request.hpp"

namespace ponder::decide {

// requests: {"state", "questions": {name: {type, instructions, criteria, label, src}}, "_meta": {"source"}}
// jevbench: {"id", "family", "state", "question": {type, instructions, criteria}, "labels", "expected", ...}
enum class RecordForm { requests, jevbench };

const char* form_name(RecordForm form);

struct Label {
  // Which option is right. None: the state does not say, and even probabilities are right.
  std::optional<std::uint32_t> option;
  std::string source;  // where the question comes from; its family in JevBench
};

struct LabelledRecord {
  RecordForm form = RecordForm::requests;
  Request request;
  std::vector<Label> labels;  // one a question
  std::string id;             // JevBench only
  std::string where;          // "file:line"; whoever reads the file sets it, and the next
  std::uint32_t file = 0;
};

// Throws Error(invalid_input or too_large) with one line that says what was found and what was expected.
LabelledRecord parse_labelled_record(std::string_view line);

}  // namespace ponder::decide
