#include "formats/safetensors.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "formats/safetensors_dtypes.hpp"
#include "formats/strict_json.hpp"

namespace ponder::formats {
namespace {

constexpr std::size_t max_dimensions = 32;
constexpr std::size_t max_metadata = 100'000;
constexpr std::string_view metadata_key = "__metadata__";

// Reads the header in one pass; a tensor is checked and kept when its object closes.
class HeaderReader final : public StrictSax {
 public:
  HeaderReader(std::string_view file, std::span<const std::byte> data, SafetensorsContents& out)
      : StrictSax(file, "the header"), data_(data), out_(out) {}

  bool start_object(std::size_t size) override {
    if (place_ == Place::before) return go(Place::names);
    if (place_ == Place::entry_value) {
      begin_entry();
      return go(Place::fields);
    }
    if (place_ == Place::metadata_value) return go(Place::metadata);
    return StrictSax::start_object(size);
  }

  bool end_object() override {
    if (place_ == Place::fields) {
      end_entry();
      return go(Place::names);
    }
    return go(place_ == Place::metadata ? Place::names : Place::after);
  }

  bool key(string_t& name) override {
    if (place_ == Place::names) return top_level_key(name);
    if (place_ == Place::fields) return field_key(name);
    metadata_name_ = std::move(name);
    return go(Place::metadata_text);
  }

  bool string(string_t& value) override {
    if (place_ == Place::dtype) {
      dtype_ = dtype_of_safetensors_name(value);
      if (!dtype_) fail_entry("has unknown type '{}'", printable(value));
      return go(Place::fields);
    }
    if (place_ == Place::metadata_text) return metadata_entry(value);
    return StrictSax::string(value);
  }

  bool start_array(std::size_t size) override {
    if (place_ == Place::shape) return go(Place::dimensions);
    if (place_ == Place::offsets) return go(Place::offset_values);
    return StrictSax::start_array(size);
  }

  bool end_array() override {
    if (place_ == Place::offset_values && offset_count_ != 2) {
      fail_entry("has {} data_offsets, expected 2", offset_count_);
    }
    return go(Place::fields);
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::dimensions) {
      if (value > INT64_MAX) fail_entry("has the dimension {}, too large", value);
      if (shape_.size() == max_dimensions) fail_entry("has more than {} dimensions", max_dimensions);
      shape_.push_back(static_cast<std::int64_t>(value));
      return true;
    }
    if (place_ == Place::offset_values) {
      if (offset_count_ == 2) fail_entry("has more than 2 data_offsets");
      offsets_[offset_count_++] = value;
      return true;
    }
    return StrictSax::number_unsigned(value);
  }

 private:
  enum class Place {
    before,
    names,           // at a tensor's name
    entry_value,     // after one
    fields,          // at a field's name
    dtype,           // after "dtype"
    shape,           // after "shape"
    dimensions,      // inside its list
    offsets,         // after "data_offsets"
    offset_values,   // inside its list
    metadata_value,  // after "__metadata__"
    metadata,        // at a name in it
    metadata_text,   // after one
    after,
  };

  bool go(Place place) {
    place_ = place;
    return true;
  }

  template <class... Args>
  [[noreturn]] void fail_entry(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::bad_file, "{}: tensor '{}' {}", file(), printable(name_),
         fmt::format(format, std::forward<Args>(args)...));
  }

  bool top_level_key(string_t& name) {
    if (name == metadata_key) {
      if (std::exchange(have_metadata_, true)) {
        fail(ErrorKind::bad_file, "{}: {} occurs twice in the header", file(), metadata_key);
      }
      return go(Place::metadata_value);
    }
    name_ = std::move(name);
    return go(Place::entry_value);
  }

  bool field_key(const string_t& field) {
    bool twice = false;
    if (field == "dtype") {
      twice = dtype_.has_value();
      go(Place::dtype);
    } else if (field == "shape") {
      twice = std::exchange(have_shape_, true);
      go(Place::shape);
    } else if (field == "data_offsets") {
      twice = std::exchange(have_offsets_, true);
      go(Place::offsets);
    } else {
      fail_entry("has the unknown field '{}', expected dtype, shape and data_offsets", printable(field));
    }
    if (twice) fail_entry("has '{}' twice", field);
    return true;
  }

  bool metadata_entry(string_t& value) {
    if (out_.metadata.size() == max_metadata) {
      fail(ErrorKind::too_large, "{}: {} has more than {} entries", file(), metadata_key, max_metadata);
    }
    const auto [at, added] = out_.metadata.try_emplace(std::move(metadata_name_), std::move(value));
    if (!added) {
      fail(ErrorKind::bad_file, "{}: {} has '{}' twice", file(), metadata_key, printable(at->first));
    }
    return go(Place::metadata);
  }

  void begin_entry() {
    dtype_.reset();
    have_shape_ = false;
    have_offsets_ = false;
    shape_.clear();
    offset_count_ = 0;
  }

  void end_entry() {
    if (!dtype_) fail_entry("has no dtype");
    if (!have_shape_) fail_entry("has no shape");
    if (!have_offsets_) fail_entry("has no data_offsets");
    const auto [begin, end] = offsets_;
    if (begin > end) fail_entry("has data_offsets [{}, {}] in reverse", begin, end);
    if (end > data_.size()) {
      fail_entry("has data_offsets [{}, {}], but the file holds only {} bytes of data (cut short?)", begin,
                 end, data_.size());
    }
    if (byte_count() != end - begin) {
      fail_entry("has {} bytes at data_offsets [{}, {}], but {} of shape {} takes {}", end - begin, begin,
                 end, safetensors_name_of(*dtype_), shape_text(shape_), byte_count());
    }
    TensorView& tensor = out_.tensors.emplace_back();
    tensor.name = std::move(name_);
    tensor.dtype = *dtype_;
    tensor.shape.assign(shape_.begin(), shape_.end());
    tensor.bytes = data_.subspan(begin, end - begin);
  }

  std::uint64_t byte_count() const {
    const std::optional<std::uint64_t> elements = checked_elements(shape_);
    if (!elements) fail_entry("has shape {}, whose product passes 63 bits", shape_text(shape_));
    const std::optional<std::uint64_t> bytes = dtype_bytes(*dtype_, *elements);
    if (!bytes) {
      fail_entry("has shape {}, which {} cannot store in whole bytes of a 64-bit count", shape_text(shape_),
                 safetensors_name_of(*dtype_));
    }
    return *bytes;
  }

  bool unexpected(const std::string& found) override {
    switch (place_) {
      case Place::entry_value:
        fail_entry("is {}, expected an object with dtype, shape and data_offsets", found);
      case Place::dtype:
        fail_entry("has {} as dtype, expected a type's name", found);
      case Place::shape:
        fail_entry("has {} as shape, expected a list", found);
      case Place::dimensions:
        fail_entry("has {} in its shape, expected integers from 0", found);
      case Place::offsets:
        fail_entry("has {} as data_offsets, expected a list", found);
      case Place::offset_values:
        fail_entry("has {} in its data_offsets, expected integers from 0 to {}", found, UINT64_MAX);
      case Place::metadata_value:
        fail(ErrorKind::bad_file, "{}: {} is {}, expected an object", file(), metadata_key, found);
      case Place::metadata_text:
        fail(ErrorKind::bad_file, "{}: {} has {} under '{}', expected text", file(), metadata_key, found,
             printable(metadata_name_));
      default:
        fail(ErrorKind::bad_file, "{}: the header holds {} where it makes no sense", file(), found);
    }
  }

  std::span<const std::byte> data_;
  SafetensorsContents& out_;
  Place place_ = Place::before;
  bool have_metadata_ = false;
  std::string metadata_name_;

  // The entry being read.
  std::string name_;
  std::optional<DType> dtype_;
  bool have_shape_ = false;
  bool have_offsets_ = false;
  std::vector<std::int64_t> shape_;
  std::array<std::uint64_t, 2> offsets_{};
  std::size_t offset_count_ = 0;
};

std::vector<std::uint32_t> all_indices(const std::vector<TensorView>& tensors, const std::string& file) {
  if (tensors.size() > UINT32_MAX) fail(ErrorKind::too_large, "{}: {} tensors", file, tensors.size());
  std::vector<std::uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

void check_names(const std::vector<TensorView>& tensors, const std::string& file) {
  std::vector<std::uint32_t> order = all_indices(tensors, file);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return tensors[a].name < tensors[b].name; });
  const auto twice = std::adjacent_find(order.begin(), order.end(),
                                        [&](auto a, auto b) { return tensors[a].name == tensors[b].name; });
  if (twice == order.end()) return;
  fail(ErrorKind::bad_file, "{}: tensor '{}' occurs twice in the header", file,
       printable(tensors[*twice].name));
}

// The tensors must cover the data from its first byte to its last, each byte once.
void check_coverage(const std::vector<TensorView>& tensors, std::span<const std::byte> data,
                    const std::string& file) {
  std::vector<std::uint32_t> order = all_indices(tensors, file);
  const auto begin_of = [&](std::uint32_t i) {
    return static_cast<std::uint64_t>(tensors[i].bytes.data() - data.data());
  };
  std::sort(order.begin(), order.end(), [&](auto a, auto b) {
    const auto [begin_a, begin_b] = std::pair(begin_of(a), begin_of(b));
    return begin_a != begin_b ? begin_a < begin_b : tensors[a].bytes.size() < tensors[b].bytes.size();
  });
  std::uint64_t at = 0;
  const TensorView* previous = nullptr;
  for (const std::uint32_t i : order) {
    const TensorView& tensor = tensors[i];
    const std::uint64_t begin = begin_of(i);
    if (begin < at) {
      fail(ErrorKind::bad_file,
           "{}: tensor '{}' begins at byte {} of the data, inside '{}', which ends at {}", file,
           printable(tensor.name), begin, printable(previous->name), at);
    }
    if (begin > at) {
      fail(ErrorKind::bad_file,
           "{}: tensor '{}' begins at byte {} of the data, leaving bytes from {} to no tensor", file,
           printable(tensor.name), begin, at);
    }
    at = begin + tensor.bytes.size();
    previous = &tensor;
  }
  if (at != data.size()) {
    fail(ErrorKind::bad_file, "{}: the tensors end at byte {} of the data, but the file holds {} bytes of it",
         file, at, data.size());
  }
}

}  // namespace

SafetensorsContents parse_safetensors(std::span<const std::byte> bytes, std::string_view file) {
  const std::string shown = printable(file, 4096);
  std::uint64_t length = 0;
  if (bytes.size() < sizeof length) {
    fail(ErrorKind::bad_file,
         "{}: {} bytes are no safetensors file, which starts with an 8-byte header length", shown,
         bytes.size());
  }
  std::memcpy(&length, bytes.data(), sizeof length);
  const std::span<const std::byte> rest = bytes.subspan(sizeof length);
  if (length > rest.size()) {
    fail(ErrorKind::bad_file, "{}: the header length is {}, but only {} bytes follow it (cut short?)", shown,
         length, rest.size());
  }
  if (length > max_safetensors_header) {
    fail(ErrorKind::too_large, "{}: the header has {} bytes, over the limit of {}", shown, length,
         max_safetensors_header);
  }
  SafetensorsContents contents;
  const std::span<const std::byte> data = rest.subspan(length);
  HeaderReader reader(file, data, contents);
  parse_strict_json(rest.first(length), file, "the header", reader);
  check_names(contents.tensors, shown);
  check_coverage(contents.tensors, data, shown);
  return contents;
}

}  // namespace ponder::formats
