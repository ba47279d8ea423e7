#include "text/template_json.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "text/template_cells.hpp"

namespace ponder::text::jinja {
namespace {

// Builds values as the parser meets them: no recursion, whatever the nesting.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(bool trusted) : trusted_(trusted) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t& spelled) override {
    // An integer of more than 64 bits arrives here.
    if (spelled.find_first_of(".eE") == std::string::npos) return add(Value::big_integer(spelled));
    return add(value);
  }
  bool string(string_t& value) override { return add(text(std::move(value))); }
  bool binary(binary_t& /*value*/) override { return false; }
  bool key(string_t& name) override {
    open_.back().key = text(std::move(name));
    return true;
  }
  bool start_object(std::size_t /*count*/) override { return open(true); }
  bool start_array(std::size_t /*count*/) override { return open(false); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception&) override {
    fail(ErrorKind::invalid_input, "not JSON: byte {} is unexpected", position);
  }

  Value take() { return std::move(result_); }

 private:
  struct Level {
    bool is_object;
    Value key;
    Dict dict;
    std::vector<Value> items;
  };

  Value text(std::string value) const {
    return trusted_ ? Value(std::move(value)) : Value::untrusted(std::move(value));
  }

  bool open(bool is_object) {
    if (open_.size() >= kMaxValueDepth) {
      fail(ErrorKind::too_large, "JSON nested deeper than {} levels", kMaxValueDepth);
    }
    open_.push_back({is_object, {}, {}, {}});
    return true;
  }

  bool close() {
    Level level = std::move(open_.back());
    open_.pop_back();
    return add(level.is_object ? make_dict(std::move(level.dict)) : Value::list(std::move(level.items)));
  }

  bool add(Value value) {
    if (open_.empty()) {
      result_ = std::move(value);
    } else if (open_.back().is_object) {
      open_.back().dict.put(std::move(open_.back().key), std::move(value));
    } else {
      open_.back().items.push_back(std::move(value));
    }
    return true;
  }

  bool trusted_;
  std::vector<Level> open_;
  Value result_;
};

}  // namespace

Value parse_json(std::string_view text, bool trusted) {
  Builder builder(trusted);
  nlohmann::json::sax_parse(text, &builder);
  return builder.take();
}

}  // namespace ponder::text::jinja
