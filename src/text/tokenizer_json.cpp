#include "text/tokenizer_json.hpp"

#include "base/error.hpp"

namespace ponder::text {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxValues = std::size_t{4} << 20;
constexpr std::int64_t kMaxId = INT32_MAX - 1;

class Reader {
 public:
  using number_integer_t = json::number_integer_t;
  using number_unsigned_t = json::number_unsigned_t;
  using number_float_t = json::number_float_t;
  using string_t = json::string_t;
  using binary_t = json::binary_t;

  Reader(std::string_view where, TokenizerSpec* spec) : where_(where), spec_(spec) {}

  json take() { return std::move(root_); }

  bool null() { return value(nullptr); }
  bool boolean(bool v) { return value(v); }
  bool number_integer(number_integer_t v) { return value(v); }
  bool number_float(number_float_t v, const string_t& /*text*/) { return value(v); }
  bool binary(binary_t& /*v*/) { return value(nullptr); }

  bool number_unsigned(number_unsigned_t v) {
    if (part_ != Part::vocab) return value(v);
    if (v > static_cast<number_unsigned_t>(kMaxId)) {
      fail(ErrorKind::bad_file, "{}: vocab: token '{}': id {} is out of range", where_,
           printable(spec_->text(token_)), v);
    }
    spec_->vocab.push_back({token_, static_cast<std::int32_t>(v)});
    return true;
  }

  bool string(string_t& v) {
    if (part_ == Part::merges) return merge_line(v);
    if (part_ == Part::pair) return merge_part(v);
    return value(v);
  }

  bool key(string_t& v) {
    if (part_ == Part::vocab) {
      token_ = store(v);
      return true;
    }
    if (stack_.back()->contains(v))
      fail(ErrorKind::bad_file, "{}: \"{}\" is given twice", where_, printable(v));
    key_ = v;
    if (stack_.size() == 1) top_key_ = v;
    return true;
  }

  bool start_object(std::size_t /*size*/) {
    if (streams("vocab")) {
      value(true);
      part_ = Part::vocab;
      return true;
    }
    return enter(json::object());
  }

  bool start_array(std::size_t /*size*/) {
    if (streams("merges")) {
      value(true);
      part_ = Part::merges;
      return true;
    }
    if (part_ == Part::merges) {
      part_ = Part::pair;
      parts_ = 0;
      return true;
    }
    return enter(json::array());
  }

  bool end_object() {
    if (part_ == Part::vocab) {
      part_ = Part::tree;
      return true;
    }
    stack_.pop_back();
    return true;
  }

  bool end_array() {
    if (part_ == Part::merges) {
      part_ = Part::tree;
      return true;
    }
    if (part_ == Part::pair) {
      if (parts_ != 2) bad_merge("it has not two parts");
      part_ = Part::merges;
      return true;
    }
    stack_.pop_back();
    return true;
  }

  bool parse_error(std::size_t at, const std::string& /*token*/, const nlohmann::detail::exception& e) {
    fail(ErrorKind::bad_file, "{}: not valid JSON at byte {}: {}", where_, at, printable(e.what(), 160));
  }

 private:
  enum class Part : std::uint8_t { tree, vocab, merges, pair };

  bool streams(const char* name) const {
    return spec_ != nullptr && part_ == Part::tree && stack_.size() == 2 && top_key_ == "model" &&
           key_ == name;
  }

  [[noreturn]] void bad_merge(std::string_view why) const {
    const std::size_t index = spec_->merges.size() - (part_ == Part::pair && parts_ == 2 ? 1 : 0);
    fail(ErrorKind::bad_file, "{}: merge {}: {}", where_, index, why);
  }

  TokenizerSpec::Slice store(std::string_view text) {
    const TokenizerSpec::Slice slice{static_cast<std::uint32_t>(spec_->spellings.size()),
                                     static_cast<std::uint32_t>(text.size())};
    spec_->spellings += text;
    return slice;
  }

  bool merge_line(std::string_view line) {
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos || space == 0 || space + 1 == line.size() ||
        line.find(' ', space + 1) != std::string_view::npos) {
      bad_merge(fmt::format("'{}' is not two tokens with a space between them", printable(line)));
    }
    const auto left = store(line.substr(0, space));
    spec_->merges.push_back({left, store(line.substr(space + 1))});
    return true;
  }

  bool merge_part(std::string_view token) {
    if (parts_ == 2) bad_merge("it has more than two parts");
    const auto slice = store(token);
    if (parts_++ == 0) {
      token_ = slice;
    } else {
      spec_->merges.push_back({token_, slice});
    }
    return true;
  }

  // Adds a value to the innermost array or object and returns where it now is.
  json* place(json v) {
    if (++values_ > kMaxValues) {
      fail(ErrorKind::too_large, "{}: over {} values beside vocab and merges", where_, kMaxValues);
    }
    if (stack_.empty()) {
      root_ = std::move(v);
      return &root_;
    }
    if (stack_.back()->is_array()) return &stack_.back()->emplace_back(std::move(v));
    return &((*stack_.back())[key_] = std::move(v));
  }

  bool value(json v) {
    if (part_ == Part::vocab) {
      fail(ErrorKind::bad_file, "{}: vocab: token '{}': its id is not a whole number of 0 or more", where_,
           printable(spec_->text(token_)));
    }
    if (part_ != Part::tree) bad_merge("it is neither \"a b\" nor [\"a\", \"b\"]");
    place(std::move(v));
    return true;
  }

  bool enter(json container) {
    if (part_ != Part::tree) return value(std::move(container));  // fails
    if (stack_.size() >= kMaxDepth)
      fail(ErrorKind::bad_file, "{}: nested deeper than {} levels", where_, kMaxDepth);
    stack_.push_back(place(std::move(container)));
    return true;
  }

  std::string_view where_;
  TokenizerSpec* spec_;
  json root_;
  std::vector<json*> stack_;  // open containers; the tree never moves one while it is open
  std::string key_;
  std::string top_key_;
  Part part_ = Part::tree;
  TokenizerSpec::Slice token_;
  int parts_ = 0;
  std::size_t values_ = 0;
};

}  // namespace

json read_tokenizer_json(std::string_view text, std::string_view where, TokenizerSpec* spec) {
  if (text.size() > kMaxTokenizerBytes) {
    fail(ErrorKind::too_large, "{}: {} bytes; at most {} are read", where, text.size(), kMaxTokenizerBytes);
  }
  if (const std::size_t nul = text.find('\0'); nul != text.npos) {  // the parser would take it for the end
    fail(ErrorKind::bad_file, "{}: a NUL byte at byte {}, expected JSON text", where, nul);
  }
  Reader reader(where, spec);
  json::sax_parse(text.begin(), text.end(), &reader);
  json tree = reader.take();
  if (!tree.is_object()) fail(ErrorKind::bad_file, "{}: not a JSON object", where);
  return tree;
}

}  // namespace ponder::text
