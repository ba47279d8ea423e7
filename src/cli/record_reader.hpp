// Labelled records out of files, one after another.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "cli/io.hpp"
#include "decide/labelled_record.hpp"

namespace ponder::cli {

class RecordReader {
 public:
  // Regular files: they are read twice.
  explicit RecordReader(std::vector<std::string> files);

  // The next record; nothing at the end. Throws Error with "file:line: what was found and expected" for a
  // line that is no record, a record of another form than the first one, or a JevBench id that was there
  // before.
  std::optional<decide::LabelledRecord> next();

  // The form of the first record read.
  decide::RecordForm form() const { return *form_; }

 private:
  std::optional<decide::LabelledRecord> parse(const std::string& line);

  std::vector<std::string> files_;
  std::size_t at_ = 0;  // files opened
  std::unique_ptr<Input> input_;
  std::optional<decide::RecordForm> form_;
  std::unordered_set<std::string> ids_;
};

struct RecordCount {
  std::size_t records = 0;
  decide::RecordForm form = decide::RecordForm::requests;
};

// Reads everything once, so that a bad line is found before a model is loaded; at most `limit` records where
// given. Throws Error(invalid_input) when there are none.
RecordCount check_records(const std::vector<std::string>& files, std::optional<std::size_t> limit);

}  // namespace ponder::cli
