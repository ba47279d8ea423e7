// Loading a hybrid checkpoint: what is checked, and what stays where it is mapped.
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/golden_model.hpp"

namespace ponder::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// tiny-a's tensors, changed by `edit`, loaded with the reference backend.
std::string load_edited(const std::function<void(std::map<std::string, formats::TensorView>&)>& edit,
                        const std::string& checkpoint = "tiny-a") {
  const auto folder = golden_folder(checkpoint);
  const formats::Checkpoint original = formats::open_model_folder(folder);
  std::map<std::string, formats::TensorView> tensors;
  for (const auto& t : original) tensors[t.name] = t;
  edit(tensors);
  formats::CheckpointPart part;
  part.file.path = "edited.safetensors";
  for (auto& [name, view] : tensors) {
    view.name = name;
    part.tensors.push_back(view);
  }
  const formats::Checkpoint edited({part});
  const hybrid::Config config = hybrid::Config::parse(read_text(folder / "config.json"));
  try {
    const auto backend = ops::make_reference_backend();
    hybrid::load_weights(config, edited, *backend, std::nullopt);
    return "loaded";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("edited.safetensors"));
    return error.what();
  }
}

TEST(Weights, UnchangedTensorsLoad) {
  for (const char* checkpoint : {"tiny-a", "tiny-b", "tiny-c", "tiny-d"}) {
    EXPECT_EQ(load_edited([](auto&) {}, checkpoint), "loaded") << checkpoint;
  }
}

TEST(Weights, EveryMissingTensorIsNamed) {
  std::vector<std::string> names;
  for (const auto& t : formats::open_model_folder(golden_folder("tiny-a"))) names.push_back(t.name);
  ASSERT_GT(names.size(), 40U);
  for (const std::string& name : names) {
    EXPECT_THAT(load_edited([&](auto& t) { t.erase(name); }), AllOf(HasSubstr("missing"), HasSubstr(name)));
  }
}

TEST(Weights, AWrongShapeNamesBothShapes) {
  const std::string name = "model.layers.3.self_attn.q_proj.weight";
  EXPECT_THAT(load_edited([&](auto& t) {
                t[name].shape = {64, 256};
              }),
              AllOf(HasSubstr(name), HasSubstr("[64, 256]"), HasSubstr("[256, 64]")));
  const std::string conv = "model.layers.0.linear_attn.conv1d.weight";
  EXPECT_THAT(load_edited([&](auto& t) {
                t[conv].shape = {128, 4};
              }),
              AllOf(HasSubstr(conv), HasSubstr("[128, 4]"), HasSubstr("[128, 1, 4]")));
  const std::string norm = "model.layers.2.linear_attn.norm.weight";
  EXPECT_THAT(load_edited([&](auto& t) {
                t[norm].shape = {4, 4};
              }),
              AllOf(HasSubstr(norm), HasSubstr("[16]")));
}

TEST(Weights, AnUnknownTensorIsNamed) {
  EXPECT_THAT(load_edited([](auto& t) { t["model.layers.0.extra.weight"] = t["model.norm.weight"]; }),
              AllOf(HasSubstr("model.layers.0.extra.weight"), HasSubstr("[64]")));
  EXPECT_THAT(
      load_edited([](auto& t) { t["model.layers.4.input_layernorm.weight"] = t["model.norm.weight"]; }),
      HasSubstr("model.layers.4.input_layernorm.weight"));
  EXPECT_THAT(
      load_edited([](auto& t) { t["model.layers.3.self_attn.q_proj.bias"] = t["model.norm.weight"]; }),
      HasSubstr("q_proj.bias"));
}

TEST(Weights, TheSamePartTwiceIsNamed) {
  EXPECT_THAT(load_edited([](auto& t) { t["model.language_model.norm.weight"] = t["model.norm.weight"]; }),
              HasSubstr("model.language_model.norm.weight"));
}

TEST(Weights, IntegersAreNoWeights) {
  EXPECT_THAT(load_edited([](auto& t) { t["model.norm.weight"].dtype = DType::i16; }),
              AllOf(HasSubstr("model.norm.weight"), HasSubstr("i16")));
}

TEST(Weights, CodesWithoutScalesAreNamed) {
  const std::string scale = "model.layers.0.mlp.up_proj.weight_scale";
  EXPECT_THAT(load_edited([&](auto& t) { t.erase(scale); }, "tiny-c"), HasSubstr(scale));
  EXPECT_THAT(load_edited(
                  [&](auto& t) {
                    t[scale].shape = {512, 2};
                  },
                  "tiny-c"),
              AllOf(HasSubstr(scale), HasSubstr("[512, 2]"), HasSubstr("[1024]")));
  EXPECT_EQ(load_edited([&](auto& t) { t[scale].shape = {1024, 1}; }, "tiny-c"), "loaded");
  const std::string stray = "model.layers.0.mlp.down_proj.weight_scale";
  EXPECT_THAT(load_edited([&](auto& t) { t[stray] = t[scale]; }, "tiny-c"), HasSubstr(stray));
}

// Tied checkpoints have no lm_head; one that says it is untied must bring it.
TEST(Weights, AnUntiedModelNeedsItsHead) {
  EXPECT_THAT(load_edited([](auto& t) { t.erase("lm_head.weight"); }), HasSubstr("lm_head.weight"));
  const auto folder = golden_folder("tiny-b");
  const auto backend = ops::make_reference_backend();
  const auto weights = hybrid::load_weights(hybrid::Config::parse(read_text(folder / "config.json")),
                                            formats::open_model_folder(folder), *backend, std::nullopt);
  EXPECT_EQ(weights.head, weights.embedding);
}

TEST(Weights, StoredTypesAreUsedWhereTheyAreMapped) {
  Runner runner;
  runner.isa = cpu::InstructionSet::scalar;
  for (const char* checkpoint : {"tiny-a", "tiny-b"}) {
    const auto model = load_model(checkpoint, runner);
    EXPECT_EQ(model->weights().owned_bytes, 0U) << checkpoint;
  }
  const auto f32 = load_model("tiny-a", runner, ops::WeightType::f32);
  EXPECT_GT(f32->weights().owned_bytes, 0U);
}

TEST(Weights, TheEstimateIsWhatLoadingAllocates) {
  Runner runner;
  runner.isa = cpu::InstructionSet::scalar;
  for (const char* checkpoint : {"tiny-a", "tiny-b", "tiny-c", "tiny-d"}) {
    const auto folder = golden_folder(checkpoint);
    const hybrid::Config config = hybrid::Config::parse(read_text(folder / "config.json"));
    const formats::Checkpoint files = formats::open_model_folder(folder);
    const auto stored = hybrid::estimate_memory(config, files, std::nullopt);
    EXPECT_EQ(stored.allocated, 0U) << checkpoint;
    EXPECT_GT(stored.mapped, files.tensor_bytes() / 2) << checkpoint;
    EXPECT_LE(stored.mapped, files.tensor_bytes()) << checkpoint;
    const auto as_f32 = hybrid::estimate_memory(config, files, ops::WeightType::f32);
    const auto model = load_model(checkpoint, runner, ops::WeightType::f32);
    EXPECT_NEAR(static_cast<double>(as_f32.allocated), static_cast<double>(model->weights().owned_bytes),
                0.05 * static_cast<double>(as_f32.allocated))
        << checkpoint;
  }
}

}  // namespace
}  // namespace ponder::test
