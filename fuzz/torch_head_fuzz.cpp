// Any bytes as a torch.save archive, and as the pickle inside one (an archive's checksums would hide it).
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/error.hpp"
#include "formats/pickle_reader.hpp"
#include "formats/torch_pickle.hpp"

namespace {

using ponder::formats::TensorView;

void require(bool condition) {
  if (!condition) __builtin_trap();
}

void check(const std::vector<TensorView>& tensors) {
  unsigned sum = 0;
  for (const TensorView& tensor : tensors) {
    const auto elements = ponder::formats::checked_elements(tensor.shape);
    require(elements.has_value() && ponder::dtype_bytes(tensor.dtype, *elements) == tensor.bytes.size());
    for (const std::byte byte : tensor.bytes) sum += std::to_integer<unsigned>(byte);  // read them all
  }
  require(sum < UINT32_MAX);
}

template <class Parse>
void attempt(Parse parse) {
  try {
    check(parse());
  } catch (const ponder::Error& error) {
    require(std::strchr(error.what(), '\n') == nullptr);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  attempt([&] { return ponder::formats::parse_torch_state_dict(bytes, "f"); });
  attempt([&] {
    static constexpr std::array<std::byte, 240> storage{};
    // Storages of the sizes that the samples use, so that whole dicts can be read.
    const auto lookup = [](std::string_view key) {
      return std::span<const std::byte>(storage).first(key == "0" || key == "2" ? 240 : key.size() * 20);
    };
    return ponder::formats::PickleReader(bytes, "f", lookup).read();
  });
  return 0;
}
