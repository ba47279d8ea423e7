// Files that PyTorch itself saved, and hostile ones made with Python's pickle and zipfile
// (tests/data/formats/torch).
#include <bit>

#include "formats/support.hpp"
#include "formats/torch_pickle.hpp"

namespace ponder::formats {
namespace {

using nlohmann::json;
using test::as_bytes;
using test::data_path;
using test::expect_error;
using test::read_file;
using test::read_json;

std::filesystem::path file(const std::string& name) {
  return data_path("formats/torch") / name;
}

TEST(TorchGolden, EveryStateDictHoldsItsValues) {
  const json good = read_json(file("torch.json"))["good"];
  ASSERT_GE(good.size(), 12U);
  for (const auto& [name, expected] : good.items()) {
    SCOPED_TRACE(name);
    const Checkpoint checkpoint = load_torch_state_dict(file(name));
    EXPECT_EQ(checkpoint.size(), expected["tensors"].size());
    ASSERT_EQ(checkpoint.files().size(), 1U);
    EXPECT_EQ(checkpoint.files()[0].format, "torch");
    for (const auto& [key, tensor] : expected["tensors"].items()) {
      const TensorView& found = checkpoint.at(key);
      EXPECT_EQ(dtype_name(found.dtype), expected["dtype"].get<std::string>());
      EXPECT_EQ(found.shape, tensor["shape"].get<std::vector<std::int64_t>>());
      const std::vector<float> values = float_values(found);
      ASSERT_EQ(values.size(), tensor["values"].size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(values[i]),
                  std::bit_cast<std::uint32_t>(static_cast<float>(tensor["values"][i].get<double>())))
            << key << ' ' << i;
      }
    }
  }
}

TEST(TorchGolden, TensorsComeInDictOrder) {
  std::vector<std::string> names;
  for (const TensorView& tensor : load_torch_state_dict(file("module.pt"))) names.push_back(tensor.name);
  EXPECT_EQ(names, (std::vector<std::string>{"q.weight", "q.bias", "k.weight", "k.bias"}));
}

TEST(TorchGolden, Complaint39_EverythingElseIsRefusedByNameAndNothingRuns) {
  const std::filesystem::path trace = "/tmp/ponder-pickle-was-executed";
  ASSERT_FALSE(std::filesystem::exists(trace));
  const json bad = read_json(file("torch.json"))["bad"];
  ASSERT_GE(bad.size(), 20U);
  for (const auto& [name, parts] : bad.items()) {
    SCOPED_TRACE(name);
    std::vector<std::string> expected = parts.get<std::vector<std::string>>();
    expected.push_back(name);
    const bool damaged = name == "bad_no_storage.pt" || name == "bad_short_storage.pt" ||
                         name == "bad_no_pickle.pt" || name == "bad_two_pickles.pt" ||
                         name == "bad_legacy.pt";
    expect_error([&, n = name] { load_torch_state_dict(file(n)); },
                 damaged ? ErrorKind::bad_file : ErrorKind::unsupported, expected);
  }
  EXPECT_FALSE(std::filesystem::exists(trace));
}

TEST(TorchGolden, EveryChangedByteIsHarmless) {
  for (const std::string name : {"module.pt", "module_p4.pt", "views.pt", "parameters.pt"}) {
    const std::string good = read_file(file(name));
    for (std::size_t at = 0; at < good.size(); ++at) {
      for (const int change : {0x01, 0x80, 0xFF}) {
        std::string changed = good;
        changed[at] = static_cast<char>(changed[at] ^ change);
        try {
          parse_torch_state_dict(as_bytes(changed), "f.pt");
        } catch (const Error& error) {
          EXPECT_TRUE(std::string_view(error.what()).starts_with("f.pt: ")) << error.what();
        }
      }
    }
  }
}

}  // namespace
}  // namespace ponder::formats
