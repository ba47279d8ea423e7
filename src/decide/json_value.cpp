#include "decide/json_value.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace ponder::decide {

Object::Object() = default;
Object::Object(const Object&) = default;
Object::Object(Object&&) noexcept = default;
Object& Object::operator=(const Object&) = default;
Object& Object::operator=(Object&&) noexcept = default;
Object::~Object() = default;

void Object::append(std::string key, Value value) {
  members_.push_back(Member{std::move(key), std::move(value)});
}

const Value* Object::find(std::string_view key) const {
  const auto at =
      std::find_if(members_.begin(), members_.end(), [&](const Member& m) { return m.key == key; });
  return at == members_.end() ? nullptr : &at->value;
}

bool Object::operator==(const Object& other) const {
  return members_ == other.members_;
}

namespace {

// "line 2, column 7 (byte 31)"; `offset` counts the bytes up to and including the offending one.
std::string place(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset > 0 ? offset - 1 : 0, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 == 0
  return fmt::format("line {}, column {} (byte {})", line, before.size() - line_start + 1, before.size() + 1);
}

// Lets the handler know how far the lexer has read: its callbacks carry no position.
class TrackedByte {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  TrackedByte() = default;
  TrackedByte(const char* at, const char** furthest) : at_(at), furthest_(furthest) {}
  reference operator*() const { return *at_; }
  TrackedByte& operator++() {
    *furthest_ = ++at_;
    return *this;
  }
  TrackedByte operator++(int) {
    const TrackedByte old = *this;
    ++*this;
    return old;
  }
  bool operator==(const TrackedByte& other) const { return at_ == other.at_; }

 private:
  const char* at_ = nullptr;
  const char** furthest_ = nullptr;
};

// First place, last value. Sorting finds repeats in n log n whatever the keys are; a hash could be flooded.
void merge_repeated_keys(std::vector<Member>& members) {
  std::vector<std::uint32_t> order(members.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return members[a].key < members[b].key; });
  std::vector<bool> drop;
  for (std::size_t i = 0; i + 1 < order.size();) {
    std::size_t end = i + 1;
    while (end < order.size() && members[order[end]].key == members[order[i]].key) ++end;
    if (end - i > 1) {
      drop.resize(members.size());
      members[order[i]].value = std::move(members[order[end - 1]].value);
      for (std::size_t j = i + 1; j < end; ++j) drop[order[j]] = true;
    }
    i = end;
  }
  if (drop.empty()) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (drop[i]) continue;
    if (kept != i) members[kept] = std::move(members[i]);
    ++kept;
  }
  members.resize(kept);
}

class TreeBuilder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  TreeBuilder(std::string_view text, const ParseLimits& limits, const char* const* furthest)
      : text_(text), limits_(limits), furthest_(furthest) {}

  Value take() { return std::move(root_); }

  bool null() override { return add(Value()); }
  bool boolean(bool b) override { return add(b); }
  bool number_integer(number_integer_t i) override { return add(std::int64_t{i}); }
  bool number_unsigned(number_unsigned_t i) override {
    if (i <= static_cast<std::uint64_t>(INT64_MAX)) return add(static_cast<std::int64_t>(i));
    return add(BigInteger{std::to_string(i)});
  }
  bool number_float(number_float_t d, const string_t& token) override {
    if (!is_integer(token)) return add(d);
    check_digits(token);
    return add(BigInteger{token});
  }
  bool string(string_t& s) override { return add(std::move(s)); }
  bool binary(binary_t&) override { fail(ErrorKind::internal, "binary value in JSON text"); }

  bool start_object(std::size_t) override { return open(Object()); }
  bool start_array(std::size_t) override { return open(Array()); }
  bool key(string_t& k) override {
    open_.back()->if_object()->append(std::move(k), Value());
    return true;
  }
  bool end_object() override {
    merge_repeated_keys(open_.back()->if_object()->members());
    open_.pop_back();
    return true;
  }
  bool end_array() override {
    open_.pop_back();
    return true;
  }

  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::json::exception& e) override {
    constexpr int number_overflow = 406;
    if (e.id == number_overflow) {
      if (is_integer(token)) check_digits(token);
      fail(ErrorKind::invalid_input, "invalid JSON at {}: {} is not a finite number", here(),
           printable(token, 40));
    }
    std::string_view reason = e.what();
    for (const std::string_view cut : {"parse error at ", ": ", "syntax error "}) {
      const std::size_t at = reason.find(cut);
      if (at != std::string_view::npos) reason.remove_prefix(at + cut.size());
    }
    reason = reason.substr(0, reason.find("; last read"));  // a user's text stays out of messages and logs
    fail(ErrorKind::invalid_input, "invalid JSON at {}: {}", place(text_, position), printable(reason, 160));
  }

 private:
  static bool is_integer(const std::string& token) {
    return token.find_first_not_of("-0123456789") == token.npos;
  }

  std::string here() const { return place(text_, static_cast<std::size_t>(*furthest_ - text_.data())); }

  void check_digits(const std::string& token) const {
    const std::size_t digits = token.size() - (token.front() == '-' ? 1 : 0);
    if (digits > max_integer_digits) {
      fail(ErrorKind::too_large, "JSON at {} has an integer of {} digits, over the limit of {}", here(),
           digits, max_integer_digits);
    }
  }

  Value* place_for_next() {
    if (++values_ > limits_.max_values) {
      fail(ErrorKind::too_large, "JSON at {} has more than {} values", here(), limits_.max_values);
    }
    if (open_.empty()) return &root_;
    if (Object* object = open_.back()->if_object()) return &object->members().back().value;
    return &open_.back()->if_array()->emplace_back();
  }

  bool add(Value value) {
    *place_for_next() = std::move(value);
    return true;
  }

  bool open(Value container) {
    if (open_.size() >= limits_.max_depth) {
      fail(ErrorKind::too_large, "JSON at {} is nested deeper than {} levels", here(), limits_.max_depth);
    }
    Value* at = place_for_next();
    *at = std::move(container);
    open_.push_back(at);  // stays put: a parent does not grow while a child is open
    return true;
  }

  std::string_view text_;
  const ParseLimits& limits_;
  const char* const* furthest_;
  Value root_;
  std::vector<Value*> open_;
  std::size_t values_ = 0;
};

}  // namespace

Value parse_json(std::string_view text, const ParseLimits& limits) {
  if (text.size() > limits.max_bytes) {
    fail(ErrorKind::too_large, "JSON of {} bytes is over the limit of {}", text.size(), limits.max_bytes);
  }
  // The lexer takes a NUL for the end of the text; JSON has no place for one.
  if (const std::size_t nul = text.find('\0'); nul != text.npos) {
    fail(ErrorKind::invalid_input, "invalid JSON at {}: NUL byte", place(text, nul + 1));
  }
  const char* furthest = text.data();
  TreeBuilder builder(text, limits, &furthest);
  nlohmann::json::sax_parse(TrackedByte(text.data(), &furthest),
                            TrackedByte(text.data() + text.size(), &furthest), &builder);
  return builder.take();
}

}  // namespace ponder::decide
