// What the JSON readers of this room share: text from a file into SAX events, strictly; internal to this
// room.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace ponder::formats {

// A SAX receiver that accepts nothing: readers override the events that may occur where they are.
class StrictSax : public nlohmann::json_sax<nlohmann::json> {
 public:
  // `what` names the text in messages: "the header".
  StrictSax(std::string_view file, std::string_view what) : file_(printable(file, 4096)), what_(what) {}

  bool null() override { return unexpected("null"); }
  bool boolean(bool value) override { return unexpected(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override {
    return unexpected(fmt::format("the number {}", value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return unexpected(fmt::format("the number {}", value));
  }
  bool number_float(number_float_t /*value*/, const string_t& text) override {
    return unexpected(fmt::format("the number {}", printable(text)));
  }
  bool string(string_t& value) override { return unexpected(fmt::format("the text '{}'", printable(value))); }
  bool binary(binary_t& /*value*/) override { return unexpected("binary data"); }
  bool start_object(std::size_t /*size*/) override { return unexpected("an object"); }
  bool start_array(std::size_t /*size*/) override { return unexpected("a list"); }
  bool key(string_t& value) override { return unexpected(fmt::format("the name '{}'", printable(value))); }
  bool end_object() override { return true; }
  bool end_array() override { return true; }

  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception& error) override;

 protected:
  // Throws; says where the reader is and what it wanted instead.
  virtual bool unexpected(const std::string& found) = 0;

  const std::string& file() const { return file_; }
  const std::string& what() const { return what_; }

 private:
  std::string file_;
  std::string what_;
};

// Feeds all of `text` to `reader`, whose own errors pass through. The parser keeps one bit per open bracket
// and does not recurse; a reader that throws at an unexpected bracket bounds the depth.
void parse_strict_json(std::span<const std::byte> text, std::string_view file, std::string_view what,
                       StrictSax& reader);

}  // namespace ponder::formats
