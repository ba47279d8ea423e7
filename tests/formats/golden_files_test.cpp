// Whole checkpoints against values that an independent reader found in them.
#include <bit>
#include <map>

#include "base/float_types.hpp"
#include "formats/safetensors.hpp"
#include "formats/safetensors_dtypes.hpp"
#include "formats/support.hpp"
#include "formats/torch_pickle.hpp"
#include "formats/zip_archive.hpp"

namespace ponder::formats {
namespace {

using nlohmann::json;
using test::data_path;
using test::expect_error;
using test::read_file;
using test::read_json;
using test::TempFolder;
using test::write_file;

void expect_values(const json& golden, const TensorView& tensor) {
  const std::vector<float> values = float_values(tensor);
  const auto same = [&](const json& expected, std::size_t at) {
    ASSERT_LT(at, values.size());
    EXPECT_EQ(std::bit_cast<std::uint32_t>(values[at]), std::bit_cast<std::uint32_t>(expected.get<float>()))
        << tensor.name << ' ' << at;
  };
  for (std::size_t i = 0; i < golden["first"].size(); ++i) same(golden["first"][i], i);
  const std::size_t last = golden["last"].size();
  for (std::size_t i = 0; i < last; ++i) same(golden["last"][i], values.size() - last + i);
  const std::vector<double> wide(values.begin(), values.end());
  EXPECT_EQ(crc32(std::as_bytes(std::span(wide))), golden["crc32_of_f64"].get<std::uint32_t>())
      << tensor.name;
}

void expect_tensors(const json& golden, const Checkpoint& checkpoint) {
  EXPECT_EQ(checkpoint.size(), golden.size());
  for (const auto& [name, expected] : golden.items()) {
    const TensorView& tensor = checkpoint.at(name);
    EXPECT_EQ(safetensors_name_of(tensor.dtype), expected["dtype"].get<std::string>()) << name;
    EXPECT_EQ(tensor.shape, expected["shape"].get<std::vector<std::int64_t>>()) << name;
    EXPECT_EQ(std::filesystem::path(tensor.file).filename(), expected["file"].get<std::string>()) << name;
    EXPECT_EQ(crc32(tensor.bytes), expected["crc32"].get<std::uint32_t>()) << name;
    expect_values(expected, tensor);
  }
}

class GoldenFolder : public testing::TestWithParam<const char*> {
 protected:
  json golden_ = read_json(data_path("formats/hybrid-tensors.json"))[GetParam()];
  std::filesystem::path folder_ = data_path("hybrid") / GetParam();
};

TEST_P(GoldenFolder, EveryTensorOfTheModelIsBitExact) {
  const Checkpoint checkpoint = open_model_folder(folder_);
  expect_tensors(golden_["tensors"], checkpoint);
  ASSERT_EQ(checkpoint.files().size(), golden_["files"].size());
  for (std::size_t i = 0; i < golden_["files"].size(); ++i) {
    const FileInfo& file = checkpoint.files()[i];
    EXPECT_EQ(file.path, (folder_ / golden_["files"][i].get<std::string>()).string());
    EXPECT_EQ(file.bytes, std::filesystem::file_size(file.path));
    EXPECT_EQ(file.format, "safetensors");
  }
  EXPECT_EQ(*checkpoint.metadata("format"), "pt");
  checkpoint.check_unchanged();
}

TEST_P(GoldenFolder, EveryTensorOfTheDrafterIsBitExact) {
  std::vector<std::string> names;
  for (const auto& path : find_drafters(folder_)) {
    names.push_back(path.filename().string());
    expect_tensors(golden_["drafter_tensors"], open_safetensors(path));
  }
  EXPECT_EQ(names, golden_["drafters"].get<std::vector<std::string>>());
}

TEST_P(GoldenFolder, TheHeadIsBitExact) {
  const Checkpoint head = load_torch_state_dict(folder_ / "head.pt");
  EXPECT_EQ(head.size(), golden_["head"].size());
  for (const auto& [name, expected] : golden_["head"].items()) {
    const TensorView& tensor = head.at(name);
    EXPECT_EQ(tensor.dtype, DType::f32);
    EXPECT_EQ(tensor.shape, expected["shape"].get<std::vector<std::int64_t>>());
    expect_values(expected, tensor);
  }
}

// The scale of an fp8 row turns its codes into the values the model means; both must come from the same
// places.
TEST_P(GoldenFolder, Fp8WeightsComeWithOneScaleARow) {
  const Checkpoint checkpoint = open_model_folder(folder_);
  std::size_t count = 0;
  for (const TensorView& tensor : checkpoint) {
    if (tensor.dtype != DType::f8_e4m3) continue;
    ++count;
    const TensorView& scale = checkpoint.at(tensor.name + "_scale");
    EXPECT_EQ(scale.dtype, DType::f32);
    EXPECT_EQ(scale.shape, std::vector<std::int64_t>{tensor.shape[0]});
  }
  EXPECT_EQ(count > 0, std::string_view(GetParam()) == "tiny-c");
}

// Cut at 10 %, 50 %, and by the last byte: opening must notice, not the first long prompt.
TEST_P(GoldenFolder, Complaint14_ACutDrafterDoesNotOpen) {
  for (const auto& path : find_drafters(folder_)) {
    const std::string whole = read_file(path);
    const TempFolder folder;
    const std::size_t header_end =
        8 + std::bit_cast<std::uint64_t>(std::array<char, 8>{whole[0], whole[1], whole[2], whole[3], whole[4],
                                                             whole[5], whole[6], whole[7]});
    for (const std::size_t kept :
         {whole.size() / 10, whole.size() / 2, whole.size() - 1, header_end, header_end - 1, std::size_t{9},
          std::size_t{8}, std::size_t{7}, std::size_t{1}}) {
      write_file(folder / "drafter_k4.safetensors", std::string_view(whole).substr(0, kept));
      ASSERT_EQ(find_drafters(folder.path()).size(), 1U);
      expect_error([&] { open_safetensors(find_drafters(folder.path()).front()); }, ErrorKind::bad_file,
                   {"drafter_k4.safetensors"});
    }
    write_file(folder / "drafter_k4.safetensors", whole);
    EXPECT_FALSE(open_safetensors(folder / "drafter_k4.safetensors").empty());
  }
}

TEST_P(GoldenFolder, ACutHeadDoesNotOpen) {
  const std::string whole = read_file(folder_ / "head.pt");
  for (std::size_t kept = whole.size() - 1; kept > 0; kept -= kept > 200 ? 97 : 1) {
    expect_error([&] { parse_torch_state_dict(test::as_bytes(whole).first(kept), "head.pt"); },
                 ErrorKind::bad_file, {"head.pt"});
  }
}

INSTANTIATE_TEST_SUITE_P(Hybrid, GoldenFolder, testing::Values("tiny-a", "tiny-b", "tiny-c", "tiny-d"),
                         [](const auto& tested) { return std::string("tiny_") + tested.param[5]; });

TEST(GoldenFile, TypesFileIsBitExactDownToItsEmptyTensor) {
  const Checkpoint checkpoint = open_safetensors(data_path("formats/types.safetensors"));
  expect_tensors(read_json(data_path("formats/types.json"))["tensors"], checkpoint);
  EXPECT_EQ(checkpoint.at("none.f32").shape, (std::vector<std::int64_t>{0, 4}));
  EXPECT_TRUE(checkpoint.at("none.f32").bytes.empty());
}

// What each corrupt sample's message must name, besides the file.
const std::map<std::string, std::vector<std::string>> named_in{
    {"empty.safetensors", {"empty"}},
    {"length_past_end.safetensors", {"header length is 172", "164 bytes"}},
    {"length_huge.safetensors", {"header length is 18446744073709551608"}},
    {"truncated_data.safetensors", {"'b'", "[32, 44]", "39 bytes"}},
    {"trailing_bytes.safetensors", {"end at byte 44", "46 bytes"}},
    {"not_json.safetensors", {"not valid JSON at byte 2"}},
    {"not_object.safetensors", {"does not start with '{'"}},
    {"not_utf8.safetensors", {"not valid JSON", "\\xff"}},
    {"name_twice.safetensors", {"'a'", "twice"}},
    {"dtype_unknown.safetensors", {"'a'", "'Q9'"}},
    {"offsets_reversed.safetensors", {"'a'", "[32, 0]"}},
    {"offsets_outside.safetensors", {"'b'", "[4096, 4108]", "44 bytes"}},
    {"offsets_huge.safetensors", {"'b'", "18446744073709551616"}},
    {"overlap.safetensors", {"'b'", "20", "'a'", "32"}},
    {"hole.safetensors", {"'b'", "36", "32"}},
    {"size_mismatch.safetensors", {"'a'", "F32", "[2, 5]", "40", "32 bytes"}},
    {"shape_overflow.safetensors", {"'a'", "[4294967296, 4294967296]"}},
    {"shape_negative.safetensors", {"'a'", "-2"}},
    {"shape_float.safetensors", {"'a'", "2.0"}},
    {"deep_json.safetensors", {"'a'", "a list"}},
    {"index_escapes", {"model.safetensors.index.json", "'lm_head.weight'", "'../model.safetensors'"}},
    {"index_shard_missing",
     {"model.safetensors.index.json", "'model-00001-of-00002.safetensors'", "'lm_head.weight'"}},
};

TEST(GoldenFile, Complaint37_EveryCorruptSampleIsRefusedByName) {
  const json listed = read_json(data_path("formats/bad/bad.json"))["files"];
  EXPECT_EQ(listed.size(), named_in.size());
  for (const json& entry : listed) {
    const std::string name = entry["file"];
    SCOPED_TRACE(name + ": " + entry["reason"].get<std::string>());
    std::vector<std::string> parts = named_in.at(name);
    parts.push_back(name);
    const auto path = data_path("formats/bad") / name;
    const auto open = [&] {
      name.ends_with(".safetensors") ? open_safetensors(path) : open_model_folder(path);
    };
    expect_error(open, ErrorKind::bad_file, parts);
  }
}

}  // namespace
}  // namespace ponder::formats
