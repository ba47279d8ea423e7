#include <algorithm>

#include "formats/safetensors.hpp"
#include "formats/support.hpp"

namespace ponder::formats {
namespace {

using nlohmann::json;
using test::as_bytes;
using test::expect_error;
using test::TempFolder;
using test::write_file;

// A folder to which files of one-byte tensors are added.
class ModelFolder : public testing::Test {
 protected:
  void shard(std::string_view file, const std::vector<std::string>& names) {
    std::vector<TensorData> tensors;
    tensors.reserve(names.size());
    for (const std::string& name : names) tensors.push_back({name, DType::u8, {1}, as_bytes("x")});
    write_safetensors(folder_ / file, tensors, {}, TensorOrder::as_given);
  }
  void index(const json& weight_map) {
    index_text(json{{"metadata", {{"total_size", 2}}}, {"weight_map", weight_map}}.dump());
  }
  void index_text(std::string_view text) { write_file(folder_ / "model.safetensors.index.json", text); }

  Checkpoint open() { return open_model_folder(folder_.path()); }
  std::vector<std::string> names() {
    std::vector<std::string> found;
    for (const TensorView& tensor : open()) found.push_back(tensor.name);
    return found;
  }
  void refuse(std::vector<std::string> parts) {
    parts.push_back(folder_.path().string());
    expect_error([&] { open(); }, ErrorKind::bad_file, parts);
  }

  TempFolder folder_;
};

using Names = std::vector<std::string>;

TEST_F(ModelFolder, AnIndexNamesTheShards) {
  shard("m-2.safetensors", {"d", "c"});
  shard("m-1.safetensors", {"b", "a"});
  shard("model.safetensors", {"other"});  // an index goes first
  shard("unrelated.safetensors", {"else"});
  index({{"a", "m-1.safetensors"},
         {"b", "m-1.safetensors"},
         {"c", "m-2.safetensors"},
         {"d", "m-2.safetensors"}});
  EXPECT_EQ(names(), (Names{"b", "a", "d", "c"}));
  EXPECT_EQ(open().at("c").file, (folder_ / "m-2.safetensors").string());
}

TEST_F(ModelFolder, WithoutAnIndexOneFileOrAllLooseOnes) {
  shard("z.safetensors", {"z"});
  shard("a.safetensors", {"a"});
  shard("drafter_k4.safetensors", {"draft"});
  shard("drafter.safetensors", {"draft"});
  write_file(folder_ / "notes.txt", "x");
  write_file(folder_ / "b.safetensors.partial-1-0", "half");
  EXPECT_EQ(names(), (Names{"a", "z"}));
  shard("model.safetensors", {"m"});
  EXPECT_EQ(names(), (Names{"m"}));
}

TEST_F(ModelFolder, FindsDraftersSorted) {
  EXPECT_TRUE(find_drafters(folder_.path()).empty());
  shard("model.safetensors", {"m"});
  shard("drafter_k8.safetensors", {"d"});
  shard("drafter_k4.safetensors", {"d"});
  write_file(folder_ / "drafter.json", "{}");
  EXPECT_EQ(find_drafters(folder_.path()),
            (std::vector<std::filesystem::path>{folder_ / "drafter_k4.safetensors",
                                                folder_ / "drafter_k8.safetensors"}));
  expect_error([&] { find_drafters(folder_ / "absent"); }, ErrorKind::bad_file, {"absent"});
}

TEST_F(ModelFolder, LinkedFilesAreFollowed) {
  shard("blob", {"a"});
  std::filesystem::create_symlink("blob", folder_ / "model.safetensors");
  EXPECT_EQ(names(), (Names{"a"}));
}

TEST_F(ModelFolder, NoWeightsIsAnErrorThatSaysWhatWasLookedFor) {
  refuse({"no weights", "model.safetensors.index.json"});
  shard("drafter_k4.safetensors", {"d"});
  refuse({"no weights"});
  expect_error([&] { open_model_folder(folder_ / "absent"); }, ErrorKind::bad_file,
               {"absent", "No such file"});
  expect_error([&] { open_model_folder(folder_ / "drafter_k4.safetensors"); }, ErrorKind::bad_file,
               {"drafter_k4.safetensors"});
}

TEST_F(ModelFolder, ATensorInTwoFilesIsRefused) {
  shard("a.safetensors", {"w", "x"});
  shard("b.safetensors", {"y", "x"});
  refuse({"b.safetensors", "'x'", "already in", "a.safetensors"});
  index({{"w", "a.safetensors"}, {"x", "a.safetensors"}, {"y", "b.safetensors"}});
  refuse({"b.safetensors", "'x'", "a.safetensors"});
}

TEST_F(ModelFolder, IndexAndShardsMustAgree) {
  shard("a.safetensors", {"w"});
  shard("b.safetensors", {"x"});
  const json good{{"w", "a.safetensors"}, {"x", "b.safetensors"}};
  index(good);
  EXPECT_EQ(names(), (Names{"w", "x"}));

  index({{"w", "a.safetensors"}, {"x", "b.safetensors"}, {"y", "b.safetensors"}});
  refuse({"model.safetensors.index.json", "'y'", "missing from shard 'b.safetensors'"});
  index({{"w", "b.safetensors"}, {"x", "a.safetensors"}});
  refuse({"'w'", "'b.safetensors'", "a.safetensors"});
  shard("b.safetensors", {"x", "extra"});
  index(good);
  refuse({"b.safetensors", "'extra'", "not in", "model.safetensors.index.json"});
  shard("b.safetensors", {"x"});
  index({{"w", "a.safetensors"}, {"x", "b.safetensors"}, {"y", "c.safetensors"}});
  refuse({"model.safetensors.index.json", "'c.safetensors'", "'y'", "missing"});
  index(good);
  std::filesystem::resize_file(folder_ / "b.safetensors", 30);
  refuse({"b.safetensors"});
}

TEST_F(ModelFolder, ShardNamesCannotLeaveTheFolder) {
  shard("model-1.safetensors", {"w"});
  std::filesystem::create_directory(folder_ / "sub");
  for (const std::string name : {"../model-1.safetensors", "/etc/passwd", "sub/model-1.safetensors", "..",
                                 ".", "", "./model-1.safetensors", "..\\model-1.safetensors", "sub"}) {
    SCOPED_TRACE(name);
    index({{"w", name}});
    refuse({name == "sub" ? "sub: is a directory" : "'w'"});
  }
  index_text("{\"weight_map\":{\"w\":\"model-1.safetensors\\u0000\"}}");
  refuse({"'w'", "\\x00"});
}

TEST_F(ModelFolder, TheIndexIsHostileToo) {
  shard("a.safetensors", {"w"});
  index_text(
      R"({"metadata":{"a":[1,-2,3.5,null,true,"x",{"weight_map":{"w":1}}]},"weight_map":{"w":"a.safetensors"},"more":[[]]})");
  EXPECT_EQ(names(), (Names{"w"}));
  const std::vector<std::pair<std::string, std::string>> bad{
      {"", "empty"},
      {"[]", "does not start"},
      {"{}", "weight_map"},
      {R"({"weight_map":{}})", "weight_map"},
      {R"({"weight_map":[]})", "weight_map is a list"},
      {R"({"weight_map":"a.safetensors"})", "weight_map is the text"},
      {R"({"weight_map":null})", "weight_map is null"},
      {R"({"weight_map":7})", "weight_map is the number 7"},
      {R"({"weight_map":{"w":1}})", "'w'"},
      {R"({"weight_map":{"w":null}})", "'w'"},
      {R"({"weight_map":{"w":["a.safetensors"]}})", "'w'"},
      {R"({"weight_map":{"w":{"file":"a.safetensors"}}})", "'w'"},
      {R"({"weight_map":{"w":"a.safetensors","w":"a.safetensors"}})", "'w' occurs twice"},
      {R"({"weight_map":{"w":"a.safetensors"},"weight_map":{"w":"a.safetensors"}})",
       "weight_map occurs twice"},
      {R"({"weight_map":{"w":"a.safetensors"}} x)", "not valid JSON"},
      {R"({"weight_map":{"w":"a.safetensors"})", "not valid JSON"},
      {"{\"weight_map\":{\"w\xFF\":\"a.safetensors\"}}", "not valid JSON"},
      {"{\"metadata\":" + std::string(1'000'000, '['), "deeper than 64"},
  };
  for (const auto& [text, part] : bad) {
    SCOPED_TRACE(text.substr(0, 100));
    index_text(text);
    refuse({"model.safetensors.index.json", part});
  }
  std::filesystem::remove(folder_ / "model.safetensors.index.json");
  std::filesystem::create_symlink("nowhere", folder_ / "model.safetensors.index.json");
  refuse({"model.safetensors.index.json"});
}

}  // namespace
}  // namespace ponder::formats
