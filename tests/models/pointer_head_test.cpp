#include "models/hybrid/pointer_head.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/torch_pickle.hpp"
#include "models/golden_model.hpp"

namespace ponder::test {
namespace {

using testing::HasSubstr;

// A state dict in memory.
class Tensors {
 public:
  void add(const std::string& name, std::vector<std::int64_t> shape, std::vector<float> values) {
    values_.push_back(std::move(values));
    formats::TensorView view;
    view.name = name;
    view.shape = std::move(shape);
    view.bytes = std::as_bytes(std::span<const float>(values_.back()));
    views_.push_back(view);
  }
  formats::Checkpoint checkpoint() const {
    formats::CheckpointPart part;
    part.file.path = "head.pt";
    part.tensors = views_;
    return formats::Checkpoint({part});
  }

 private:
  std::vector<std::vector<float>> values_;
  std::vector<formats::TensorView> views_;
};

std::vector<float> flat(const nlohmann::ordered_json& v) {
  std::vector<float> out;
  for (const auto& x : v) {
    if (x.is_array()) {
      for (const auto& y : x) out.push_back(y);
    } else {
      out.push_back(x);
    }
  }
  return out;
}

TEST(PointerHead, GoldenCase) {
  const auto g = read_json(golden_folder("cases-ops.json"))["pointer_head"];
  const auto rows = static_cast<std::int64_t>(g["q.weight"].size());
  const auto hidden = static_cast<std::int64_t>(g["q.weight"][0].size());
  Tensors t;
  for (const char* name : {"q.weight", "k.weight"}) t.add(name, {rows, hidden}, flat(g[name]));
  for (const char* name : {"q.bias", "k.bias"}) t.add(name, {rows}, flat(g[name]));
  const hybrid::PointerHead head(t.checkpoint(), static_cast<int>(hidden), g["temperature"]);
  EXPECT_EQ(head.head_dim(), rows);
  const std::vector<float> options = flat(g["options"]);
  const std::vector<float> decide = flat(g["decide"]);
  const auto probs =
      head.probabilities({options.data(), hidden}, static_cast<int>(g["options"].size()), decide.data());
  ASSERT_EQ(probs.size(), g["probs"].size());
  for (std::size_t i = 0; i < probs.size(); ++i) EXPECT_NEAR(probs[i], g["probs"][i].get<double>(), 1e-6);
}

Tensors small_head() {
  Tensors t;
  t.add("q.weight", {2, 3}, {1, 0, 0, 0, 1, 0});
  t.add("q.bias", {2}, {0, 0});
  t.add("k.weight", {2, 3}, {1, 0, 0, 0, 1, 0});
  t.add("k.bias", {2}, {0, 0});
  return t;
}

TEST(PointerHead, OneOptionIsCertain) {
  const hybrid::PointerHead head(small_head().checkpoint(), 3, 1.0);
  const float h[3] = {5, -2, 1};
  EXPECT_EQ(head.probabilities({h, 3}, 1, h), std::vector<double>{1.0});
}

TEST(PointerHead, HugeScoresDoNotOverflow) {
  const hybrid::PointerHead head(small_head().checkpoint(), 3, 1e-3);
  const float options[6] = {1e15F, 0, 0, -1e15F, 0, 0};
  const float decide[3] = {1e15F, 0, 0};
  EXPECT_EQ(head.probabilities({options, 3}, 2, decide), (std::vector<double>{1.0, 0.0}));
}

TEST(PointerHead, Complaint55_TemperaturesThatAreNone) {
  for (const double t : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), HUGE_VAL}) {
    EXPECT_THROW(hybrid::PointerHead(small_head().checkpoint(), 3, t), Error) << t;
  }
  // Tiny but positive is a sharp choice, not a division by zero; an exact tie stays even.
  const hybrid::PointerHead head(small_head().checkpoint(), 3, 1e-10);
  const float options[9] = {1, 0, 0, 1, 0, 0, 0, 0, 0};
  const float decide[3] = {1, 0, 0};
  EXPECT_EQ(head.probabilities({options, 3}, 3, decide), (std::vector<double>{0.5, 0.5, 0.0}));
}

TEST(PointerHead, AScoreThatIsNoNumberIsAnError) {
  const hybrid::PointerHead head(small_head().checkpoint(), 3, 1.0);
  const float options[6] = {1, 0, 0, std::nanf(""), 0, 0};
  const float decide[3] = {1, 0, 0};
  try {
    head.probabilities({options, 3}, 2, decide);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("option 1"));
  }
}

TEST(PointerHead, TensorsThatDoNotFitAreNamed) {
  const auto refusal = [](const Tensors& t, int hidden) -> std::string {
    try {
      hybrid::PointerHead(t.checkpoint(), hidden, 1.0);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal(small_head(), 4), HasSubstr("q.weight has shape [2, 3], expected [2, 4]"));
  Tensors missing;
  missing.add("q.weight", {2, 3}, std::vector<float>(6));
  EXPECT_THAT(refusal(missing, 3), HasSubstr("q.bias"));
  Tensors extra = small_head();
  extra.add("v.weight", {1}, {0});
  EXPECT_THAT(refusal(extra, 3), HasSubstr("v.weight"));
  Tensors flat_q;
  flat_q.add("q.weight", {6}, std::vector<float>(6));
  EXPECT_THAT(refusal(flat_q, 3), HasSubstr("[6]"));
}

TEST(PointerHead, RealHeadsLoad) {
  for (const char* checkpoint : {"tiny-a", "tiny-b", "tiny-c", "tiny-d"}) {
    const auto meta = read_json(golden_folder(checkpoint) / "export.json");
    const auto config = hybrid::Config::parse(read_text(golden_folder(checkpoint) / "config.json"));
    const hybrid::PointerHead head(formats::load_torch_state_dict(golden_folder(checkpoint) / "head.pt"),
                                   config.hidden_size, meta["temperature"]);
    EXPECT_EQ(head.head_dim(), meta["head_dim"]) << checkpoint;
  }
}

}  // namespace
}  // namespace ponder::test
