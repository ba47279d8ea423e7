// ponder bench: what it reports, what it refuses. No speed is asserted.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/process.hpp"

namespace ponder::test {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

std::string config_file(const std::string& name) {
  return std::string(PONDER_TEST_DATA) + "/../../bench/configs/" + name;
}

std::vector<std::string> tiny(std::vector<std::string> more) {
  more.insert(more.begin(), {"bench", "--config", config_file("tiny.json"), "--random"});
  return more;
}

// The tiny shape, written out once more.
constexpr std::int64_t kVocabulary = 512, kHidden = 64, kInner = 160, kDelta = 3, kLayers = 4;
constexpr std::int64_t kHeads = 4, kKvHeads = 2, kDim = 32;
constexpr std::int64_t kKeyHeads = 2, kValueHeads = 4, kState = 32, kKernel = 4;
constexpr std::int64_t kKeys = kKeyHeads * kState, kValues = kValueHeads * kState,
                       kConv = 2 * kKeys + kValues;

// Numbers in the matrices of all layers.
constexpr std::int64_t layer_weights() {
  const std::int64_t delta = (kConv + 2 * kValues + 2 * kValueHeads) * kHidden;
  const std::int64_t attention = (3 * kHeads + 2 * kKvHeads) * kDim * kHidden;
  return kDelta * delta + attention + kLayers * 3 * kInner * kHidden;
}

struct Expected {
  std::int64_t weights, keys_values, states, multiply_adds;
};

// The first step of `rows` sequences behind `context` tokens each, in bf16.
Expected step(std::int64_t rows, std::int64_t context) {
  Expected e{};
  e.weights = 2 * (layer_weights() + kVocabulary * kHidden + rows * kHidden);
  e.weights += 4 * ((2 * kLayers + 1) * kHidden + 2 * kDim + kDelta * (kState + kKernel * kConv));
  const std::int64_t position = 4 * 2 * kKvHeads * kDim;
  e.keys_values = rows * position * (context + 1 + 1);  // read with the new one, which is also written
  const std::int64_t matrix = kValueHeads * kState * kState, row = kKeys + kValues + kValueHeads;
  const bool ends_chunk = (context + 1) % 32 == 0;
  const std::int64_t kept = ends_chunk ? 0 : 1;
  e.states = rows * kDelta * 4 *
             (2 * (kKernel - 1) * kConv + (ends_chunk ? 2 : 1) * matrix + (context % 32 + kept) * row);
  e.multiply_adds = rows * (layer_weights() + kVocabulary * kHidden +
                            kDelta * (kKernel * kConv + 3 * matrix) + (context + 1) * kHeads * 2 * kDim);
  return e;
}

void expect_spread(const Json& s) {
  EXPECT_GT(s["min"].get<double>(), 0);
  EXPECT_LE(s["min"], s["median"]);
  EXPECT_LE(s["median"], s["max"]);
}

void expect_near(double a, double b) {
  EXPECT_NEAR(a, b, 1e-6 * std::abs(b));
}

// What follows from other fields of the same figure.
void expect_consistent(const Json& f, double rows, const Json& best, const char* peak) {
  expect_spread(f["tokens_per_s"]);
  expect_spread(f["seconds"]);
  const double seconds = f["seconds"]["median"];
  expect_near(f["tokens_per_s"]["median"], rows / seconds);
  expect_near(f["tokens_per_s"]["max"], rows / f["seconds"]["min"].get<double>());
  const Json& b = f["bytes"];
  EXPECT_EQ(b["total"].get<std::int64_t>(), b["weights"].get<std::int64_t>() +
                                                b["keys_values"].get<std::int64_t>() +
                                                b["states"].get<std::int64_t>());
  expect_near(f["share_of_reads"],
              b["total"].get<double>() / seconds / f["yardsticks"]["read_bytes_per_s"].get<double>());
  expect_near(f["share_of_arithmetic"],
              2 * f["multiply_adds"].get<double>() / seconds / f["yardsticks"][peak].get<double>());
  for (const auto& [name, value] : f["yardsticks"].items()) EXPECT_LE(value, best[name]) << name;
}

TEST(BenchVerb, BytesAndProductsAreThoseOfTheShape) {
  for (const int context : {1, 31, 40}) {
    const Output run = ponder(tiny({"--json", "--prompt", "0", "--rows", "1,3", "--repeat", "1", "--context",
                                    std::to_string(context), "--type", "bf16"}));
    ASSERT_EQ(run.status, 0) << run.err;
    const Json report = Json::parse(run.out);
    EXPECT_EQ(report["prompt"].size(), 0U);
    ASSERT_EQ(report["decode"].size(), 2U);
    EXPECT_EQ(report["model"]["parameters"], layer_weights() + kVocabulary * kHidden);
    EXPECT_EQ(report["model"]["matrix_bytes"], 2 * (layer_weights() + kVocabulary * kHidden));
    for (const Json& f : report["decode"]) {
      SCOPED_TRACE(f.dump());
      const Expected e = step(f["rows"].get<int>(), context);
      EXPECT_EQ(f["bytes"]["weights"], e.weights);
      EXPECT_EQ(f["bytes"]["keys_values"], e.keys_values);
      EXPECT_EQ(f["bytes"]["states"], e.states);
      EXPECT_EQ(f["multiply_adds"], e.multiply_adds);
    }
  }
}

TEST(BenchVerb, APromptReadsItsWeightsOnceAChunk) {
  const auto weights = [](const char* step_rows) {
    const Output run = ponder(tiny({"--json", "--prompt", "64", "--rows", "0", "--repeat", "1", "--step-rows",
                                    step_rows, "--type", "bf16"}));
    EXPECT_EQ(run.status, 0) << run.err;
    const Json f = Json::parse(run.out)["prompt"][0];
    EXPECT_EQ(f["tokens"], 64);
    const std::int64_t visible = 64 * 65 / 2;
    const std::int64_t products =
        64 * (layer_weights() + kDelta * (kKernel * kConv + 3 * kValueHeads * kState * kState)) +
        visible * kHeads * 2 * kDim + kVocabulary * kHidden;
    EXPECT_EQ(f["multiply_adds"], products);
    return f["bytes"]["weights"].get<std::int64_t>();
  };
  const std::int64_t once = weights("64"), four_times = weights("16");
  const std::int64_t norms = 4 * (2 * kLayers * kHidden + 2 * kDim + kDelta * (kState + kKernel * kConv));
  EXPECT_EQ(four_times - once, 3 * (2 * layer_weights() + norms + 4 * kHidden));
}

TEST(BenchVerb, KeysAndValuesInHalfThePrecisionAreHalfTheBytes) {
  const auto bytes = [](const char* kv) {
    const Output run = ponder(tiny({"--json", "--prompt", "0", "--rows", "1", "--repeat", "1", "--kv", kv}));
    EXPECT_EQ(run.status, 0) << run.err;
    const Json report = Json::parse(run.out);
    EXPECT_EQ(report["settings"]["kv"], kv);
    return report["decode"][0]["bytes"]["keys_values"].get<std::int64_t>();
  };
  EXPECT_EQ(bytes("f32"), 2 * bytes("bf16"));
}

TEST(BenchVerb, FieldsFollowFromEachOther) {
  const std::pair<const char*, const char*> types[] = {{"f32", "f32"}, {"bf16", "bf16"}, {"q8", "int8"}};
  for (const auto& [type, arithmetic] : types) {
    SCOPED_TRACE(type);
    const Output run = ponder(tiny({"--json", "--ops", "--type", type, "--activations", "native", "--prompt",
                                    "40,8", "--rows", "2,1,2", "--repeat", "3", "--threads", "1"}));
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(run.err, "");
    const Json report = Json::parse(run.out);
    EXPECT_THAT(report["backend"].get<std::string>(), HasSubstr("1 thread"));
    EXPECT_EQ(report["settings"]["threads"], 1);
    EXPECT_EQ(report["settings"]["activations"], "native");
    EXPECT_EQ(report["model"]["arithmetic"], arithmetic);
    const std::string peak = std::string(arithmetic) + "_ops_per_s";
    const Json& best = report["yardsticks"]["best"];
    for (const auto& [name, value] : report["yardsticks"]["lowest"].items())
      EXPECT_LE(value, best[name]) << name;

    ASSERT_EQ(report["prompt"].size(), 2U);
    EXPECT_EQ(report["prompt"][0]["tokens"], 8);
    for (const Json& f : report["prompt"]) expect_consistent(f, f["tokens"], best, peak.c_str());
    ASSERT_EQ(report["decode"].size(), 2U);
    for (const Json& f : report["decode"]) {
      expect_consistent(f, f["rows"], best, peak.c_str());
      expect_near(f["tokens_per_s_per_row"],
                  f["tokens_per_s"]["median"].get<double>() / f["rows"].get<double>());
      expect_near(f["one_row_steps"], f["seconds"]["median"].get<double>() /
                                          report["decode"][0]["seconds"]["median"].get<double>());
    }
    for (const char* part : {"prompt", "decode"}) {
      const Json& ops = report[part].back()["ops"];
      double seconds = ops["between_seconds"];
      double last = 1e9;
      for (const Json& op : ops["list"]) {
        seconds += op["seconds"].get<double>();
        EXPECT_LE(op["seconds"], last);
        last = op["seconds"];
      }
      EXPECT_NEAR(seconds, ops["seconds"].get<double>(), 1e-3 * seconds);
    }
  }
}

TEST(BenchVerb, ActivationsStayFiniteInEveryType) {
  for (const char* type : {"auto", "f32", "bf16", "f16", "fp8", "q8", "q4", "q4tp"}) {
    const Output run =
        ponder(tiny({"--prompt", "100", "--rows", "0", "--repeat", "1", "--type", type, "--seed", "99"}));
    EXPECT_EQ(run.status, 0) << type << run.err;  // logits that are no numbers are an error
    EXPECT_THAT(run.out, HasSubstr("machine"));
  }
}

TEST(BenchVerb, TheFirstLineSaysOnWhatAndWhy_Complaint53) {
  const Output run =
      ponder(tiny({"--prompt", "4", "--rows", "1", "--repeat", "1", "--threads", "1", "--isa", "scalar"}));
  ASSERT_EQ(run.status, 0) << run.err;
  const std::string first = run.out.substr(0, run.out.find('\n'));
  EXPECT_THAT(first, HasSubstr("scalar"));
  EXPECT_THAT(first, HasSubstr("1 thread"));
  EXPECT_THAT(first, HasSubstr("--threads"));
  EXPECT_EQ(run.err, "");
}

TEST(BenchVerb, MeasuresAModelFolder) {
  const Output run = ponder(
      {"bench", "--model", golden("tiny-a"), "--json", "--prompt", "5", "--rows", "1", "--repeat", "1"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(Json::parse(run.out)["model"]["vocab_size"], 576);
}

TEST(BenchVerb, PublicShapesAreThoseOfTheFamily) {
  struct Shape {
    const char* file;
    std::int64_t hidden, layers, q_rows, kv_rows, value_heads, inner;
    bool tied;
  };
  const Shape shapes[] = {
      {"qwen3.5-0.8b.json", 1024, 24, 4096, 512, 16, 3584, true},
      {"qwen3.5-2b.json", 2048, 24, 4096, 512, 16, 6144, true},
      {"qwen3.5-4b.json", 2560, 32, 8192, 1024, 32, 9216, true},
      {"qwen3.5-9b.json", 4096, 32, 8192, 1024, 32, 12288, false},
      {"qwen3.5-27b.json", 5120, 64, 12288, 1024, 48, 17408, false},
  };
  for (const Shape& s : shapes) {
    std::ifstream in(config_file(s.file));
    const Json c = Json::parse(in);
    EXPECT_EQ(c["vocab_size"], 248320) << s.file;
    EXPECT_EQ(c["hidden_size"], s.hidden) << s.file;
    EXPECT_EQ(c["num_hidden_layers"], s.layers) << s.file;
    EXPECT_EQ(2 * c["num_attention_heads"].get<std::int64_t>() * c["head_dim"].get<std::int64_t>(), s.q_rows);
    EXPECT_EQ(c["num_key_value_heads"].get<std::int64_t>() * c["head_dim"].get<std::int64_t>(), s.kv_rows);
    EXPECT_EQ(c["linear_num_key_heads"], 16) << s.file;
    EXPECT_EQ(c["linear_num_value_heads"], s.value_heads) << s.file;
    EXPECT_EQ(c["intermediate_size"], s.inner) << s.file;
    EXPECT_EQ(c["tie_word_embeddings"], s.tied) << s.file;
  }
}

// ---- thinking

// A chain of `tokens` whose guesses are always right or never: cycles, mask rows, candidate rows.
struct Drafted {
  std::int64_t cycles = 0, masks = 0, candidates = 0;
};
Drafted drafted(std::int64_t tokens, std::int64_t block, bool right) {
  Drafted d;
  for (std::int64_t left = tokens, fed = 1; left > 0;) {
    left -= right ? fed : 1;
    ++d.cycles;
    d.candidates += fed;
    const std::int64_t drafts = std::max<std::int64_t>(0, std::min(block, left) - 1);
    d.masks += drafts;
    fed = drafts + 1;
  }
  return d;
}

Json think(std::vector<std::string> more) {
  more.insert(more.begin(), {"--think", "--json", "--blocks", "2,4", "--repeat", "3", "--type", "q8"});
  const Output run = ponder(tiny(more));
  EXPECT_EQ(run.status, 0) << run.err;
  return run.status == 0 ? Json::parse(run.out)["think"] : Json();
}

void expect_thought(const Json& way, std::int64_t tokens) {
  expect_spread(way["seconds"]);
  expect_spread(way["tokens_per_s"]);
  expect_spread(way["of_plain"]);
  expect_near(way["tokens_per_s"]["median"].get<double>() * way["seconds"]["median"].get<double>(),
              static_cast<double>(tokens) / 3);
  EXPECT_EQ(way["tokens"], tokens);
  std::int64_t sum = 0, cycles = 0, j = 0;
  for (const Json& n : way["cycles_by_accepted"]) {
    cycles += n.get<std::int64_t>();
    sum += ++j * n.get<std::int64_t>();
  }
  EXPECT_EQ(sum, tokens);
  EXPECT_EQ(way["cycles"], cycles);
  expect_near(way["accepted_per_cycle"], static_cast<double>(tokens) / static_cast<double>(cycles));
  expect_near(way["candidates_per_cycle"], way["candidate_rows"].get<double>() / static_cast<double>(cycles));
  // Each draft is made by a mask row, and fed: chains end before there are drafts too many.
  EXPECT_EQ(way["candidate_rows"], cycles + way["mask_rows"].get<std::int64_t>());
}

TEST(BenchThinks, CyclesAndRowsAreThoseOfTheGuesses) {
  constexpr std::int64_t tokens = 23, repeat = 3;
  for (const bool right : {false, true}) {
    const Json report =
        think({"--think-tokens", "23", "--questions", "3,1,3", "--accept", right ? "1" : "0"});
    EXPECT_EQ(report["settings"]["tokens"], tokens);
    EXPECT_EQ(report["settings"]["accept"], right ? 1.0 : 0.0);
    ASSERT_EQ(report["figures"].size(), 2U);
    EXPECT_EQ(report["figures"][0]["questions"], 1);
    for (const Json& f : report["figures"]) {
      SCOPED_TRACE(f.dump());
      const auto chains = repeat * f["questions"].get<std::int64_t>();
      ASSERT_EQ(f["ways"].size(), 4U);
      const Json &plain = f["ways"][0], &cost = f["ways"][3];
      EXPECT_EQ(plain["way"], "plain");
      EXPECT_EQ(plain["of_plain"]["min"], 1.0);
      EXPECT_EQ(plain["cycles"], chains * tokens);
      EXPECT_EQ(plain["mask_rows"], 0);
      EXPECT_EQ(cost["way"], "by cost");
      EXPECT_EQ(cost["block"], 4);
      for (const Json& way : f["ways"]) expect_thought(way, chains * tokens);
      for (const std::size_t i : {1U, 2U}) {
        const Json& way = f["ways"][i];
        const std::int64_t block = i == 1 ? 2 : 4;
        EXPECT_EQ(way["way"], "fixed");
        EXPECT_EQ(way["block"], block);
        const Drafted want = drafted(tokens, block, right);
        EXPECT_EQ(way["cycles"], chains * want.cycles);
        EXPECT_EQ(way["mask_rows"], chains * want.masks);
        EXPECT_EQ(way["candidate_rows"], chains * want.candidates);
      }
      expect_spread(f["by_cost_of_best_fixed"]);
      double most = 0;
      std::int64_t best = 0;
      for (const std::size_t i : {0U, 1U, 2U}) {
        const double speed = f["ways"][i]["tokens_per_s"]["median"];
        if (speed > most) best = f["ways"][i]["block"];
        most = std::max(most, speed);
      }
      EXPECT_EQ(f["best_fixed"], best);
    }
  }
}

// 160 positions, three pages: what drafts see is kept from the first token on, or for a window.
TEST(BenchThinks, MemoryIsThatOfTheChains) {
  constexpr std::int64_t page = 64 * 4 * kKvHeads * 2 * kDim;
  constexpr std::int64_t numbers = kDelta * 64 * (kKeys + kValues);
  const auto memory = [](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"--think-tokens", "30", "--context", "130", "--questions", "2"};
    words.insert(words.end(), more.begin(), more.end());
    const Json report = think(words);
    const Json& ways = report["figures"][0]["ways"];
    EXPECT_EQ(ways[0]["memory_bytes"]["draft_pages"], 0);
    for (const Json& way : ways) {
      EXPECT_EQ(way["memory_bytes"]["pages"], 2 * 3 * page);
      EXPECT_EQ(way["memory_bytes"]["states"], ways[0]["memory_bytes"]["states"]);
    }
    EXPECT_EQ(ways[1]["memory_bytes"], ways[3]["memory_bytes"]);
    return ways[1]["memory_bytes"]["draft_pages"].get<std::int64_t>();
  };
  constexpr std::int64_t line = 64;  // before the first layer's
  EXPECT_EQ(memory({"--draft-kv", "f32"}), 2 * 3 * (line + 4 * numbers));
  EXPECT_EQ(memory({"--draft-kv", "q8"}), 2 * 3 * (line + numbers + 4 * numbers / 32));
  // Position 160 and a window of 20 behind it: the last page alone, and the first for its sinks.
  EXPECT_EQ(memory({"--draft-kv", "bf16", "--draft-window", "20", "--draft-sinks", "0"}),
            2 * (line + 2 * numbers));
  EXPECT_EQ(memory({"--draft-kv", "bf16", "--draft-window", "20", "--draft-sinks", "1"}),
            2 * 2 * (line + 2 * numbers));
}

TEST(BenchThinks, WithAModelsOwnDrafter) {
  for (const char* checkpoint : {"tiny-a", "tiny-c"}) {
    const Output run = ponder({"bench", "--think", "--model", golden(checkpoint), "--questions", "2",
                               "--blocks", "1,4", "--think-tokens", "9", "--repeat", "1", "--accept", "0.5"});
    ASSERT_EQ(run.status, 0) << run.err;
    for (const char* part : {"2 questions", "plain", "K = 1", "K = 4", "by cost", "best fixed"})
      EXPECT_THAT(run.out, HasSubstr(part));
    EXPECT_THAT(run.out, testing::Not(HasSubstr("prompt ")));
  }
  expect_error(ponder({"bench", "--think", "--model", golden("tiny-d")}), 1, "no drafter");
  const std::string drafter = golden("tiny-a") + "/drafter_k4.safetensors";
  const Output other = ponder({"bench", "--think", "--model", golden("tiny-b"), "--drafter", drafter});
  expect_error(other, 1, "drafter_k4.safetensors");
}

TEST(BenchThinks, PromptsAndStepsComeOnlyWhereAskedFor) {
  const Output run = ponder(tiny({"--think", "--json", "--questions", "1", "--blocks", "2", "--repeat", "1",
                                  "--think-tokens", "4", "--rows", "2"}));
  ASSERT_EQ(run.status, 0) << run.err;
  const Json report = Json::parse(run.out);
  EXPECT_EQ(report["prompt"].size(), 0U);
  EXPECT_EQ(report["decode"].size(), 1U);
  EXPECT_FALSE(Json::parse(ponder(tiny({"--json", "--prompt", "4", "--rows", "0", "--repeat", "1"})).out)
                   .contains("think"));
}

TEST(BenchRefuses, WrongUsageInOneLine) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--random"}, "--config"},
      {{"--config", config_file("tiny.json")}, "--random"},
      {{"--config", config_file("tiny.json"), "--random", "--model", golden("tiny-a")}, "--model"},
  };
  for (const auto& [more, part] : cases) {
    std::vector<std::string> words = {"bench"};
    words.insert(words.end(), more.begin(), more.end());
    expect_error(ponder(words), 2, part);
  }
  const std::pair<std::vector<std::string>, const char*> options[] = {
      {{"--type", "q3"}, "q3"},          {{"--isa", "mmx"}, "mmx"},
      {{"--threads", "0"}, "thread"},    {{"--activations", "int2"}, "int2"},
      {{"--prompt", "8,0"}, "--prompt"}, {{"--prompt", "-1"}, "--prompt"},
      {{"--rows", "600"}, "512"},        {{"--rows", "x"}, "--rows"},
      {{"--context", "0"}, "--context"}, {{"--repeat", "0"}, "--repeat"},
      {{"--seed", "-1"}, "--seed"},      {{"--thinks"}, "--thinks"},
  };
  for (const auto& [more, part] : options) expect_error(ponder(tiny(more)), 2, part);
  const std::pair<std::vector<std::string>, const char*> thinking[] = {
      {{"--questions", "0"}, "--questions"},
      {{"--questions", "65"}, "64"},
      {{"--blocks", "9"}, "--blocks"},
      {{"--blocks", "0"}, "--blocks"},
      {{"--think-tokens", "0"}, "--think-tokens"},
      {{"--accept", "1.5"}, "--accept"},
      {{"--accept", "nan"}, "--accept"},
      {{"--draft-window", "0"}, "--draft-window"},
      {{"--draft-sinks", "-1"}, "--draft-sinks"},
      {{"--draft-kv", "q3"}, "q3"},
      {{"--drafter", "x.safetensors"}, "--drafter"}};
  for (auto [more, part] : thinking) {
    if (more[0] != "--drafter") expect_error(ponder(tiny({more[0], "1"})), 2, "--think");
    more.insert(more.begin(), "--think");
    expect_error(ponder(tiny(more)), 2, part);
  }
}

TEST(BenchRefuses, FilesThatAreNoConfiguration) {
  expect_error(ponder({"bench", "--random", "--config", "/nonexistent.json"}), 1, "/nonexistent.json");
  expect_error(ponder({"bench", "--random", "--config", golden("tiny-a") + "/head.pt"}), 1, "head.pt");
  expect_error(ponder({"bench", "--model", "/nonexistent"}), 1, "/nonexistent");
}

TEST(BenchRefuses, WhatNoMachineHoldsBeforeAnyWork) {
  const auto file = std::filesystem::temp_directory_path() / "ponder-bench-huge.json";
  const std::pair<const char*, const char*> shapes[] = {
      {R"({"hidden_size": 65536, "intermediate_size": 1048576, "num_hidden_layers": 4096})",
       "ponder-bench-huge"},
      {R"({"hidden_size": 67108864, "intermediate_size": 67108864, "num_hidden_layers": 4096})", "64 bits"},
  };
  for (const auto& [text, part] : shapes) {
    std::ofstream(file) << text;
    for (const char* type : {"auto", "q4"}) {
      expect_error(ponder({"bench", "--random", "--config", file.string(), "--type", type}), 1, part);
    }
  }
  std::filesystem::remove(file);
}

TEST(BenchVerb, HelpNamesEveryOption) {
  const Output help = ponder({"bench", "--help"});
  EXPECT_EQ(help.status, 0);
  for (const char* option :
       {"--model",        "--config",      "--random",    "--seed",        "--type",      "--threads",
        "--isa",          "--activations", "--step-rows", "--prompt",      "--rows",      "--context",
        "--repeat",       "--ops",         "--json",      "--think",       "--questions", "--blocks",
        "--think-tokens", "--accept",      "--drafter",   "--draft-window"}) {
    EXPECT_THAT(help.out, HasSubstr(option));
  }
}

}  // namespace
}  // namespace ponder::test
