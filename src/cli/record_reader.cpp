#include "cli/record_reader.hpp"

#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"

namespace ponder::cli {

using decide::LabelledRecord;

RecordReader::RecordReader(std::vector<std::string> files) : files_(std::move(files)) {
  for (const std::string& file : files_) {
    std::error_code ec;
    if (std::filesystem::exists(file, ec) && !std::filesystem::is_regular_file(file, ec)) {
      fail(ErrorKind::invalid_input, "{}: expected a regular file, since it is read twice",
           printable(file, 4000));
    }
  }
}

std::optional<LabelledRecord> RecordReader::next() {
  while (true) {
    if (!input_) {
      if (at_ == files_.size()) return std::nullopt;
      input_ = std::make_unique<Input>(files_[at_++]);
    }
    if (const auto line = input_->line()) return parse(*line);
    input_.reset();
  }
}

std::optional<LabelledRecord> RecordReader::parse(const std::string& line) {
  const std::string where = fmt::format("{}:{}", printable(input_->name(), 4000), input_->line_number());
  LabelledRecord record;
  try {
    record = decide::parse_labelled_record(line);
  } catch (const Error& error) {
    fail(error.kind(), "{}: {}", where, error.what());
  }
  if (!form_) form_ = record.form;
  if (record.form != *form_) {
    fail(ErrorKind::invalid_input, "{}: {} and {} are mixed, expected {} as in the first line", where,
         form_name(*form_), form_name(record.form), form_name(*form_));
  }
  if (record.form == decide::RecordForm::jevbench && !ids_.insert(record.id).second) {
    fail(ErrorKind::invalid_input, "{}: id '{}' was there before", where, printable(record.id));
  }
  record.where = where;
  record.file = static_cast<std::uint32_t>(at_ - 1);
  return record;
}

RecordCount check_records(const std::vector<std::string>& files, std::optional<std::size_t> limit) {
  RecordReader reader(files);
  RecordCount out;
  while ((!limit || out.records < *limit) && reader.next()) ++out.records;
  if (out.records == 0) {
    fail(ErrorKind::invalid_input, "{}: no records in {}",
         printable(fmt::format("{}", fmt::join(files, ", ")), 4000), files.size() == 1 ? "it" : "them");
  }
  out.form = reader.form();
  return out;
}

}  // namespace ponder::cli
