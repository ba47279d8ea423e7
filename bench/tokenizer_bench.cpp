// Bytes a second of encoding and decoding, and the time to load a vocabulary of 151,000 tokens.
//
// The English text is drawn here: words by Zipf's law from a list, with sentences, numbers and paragraphs,
// from a fixed seed, so that figures from different machines are of the same text.
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "../tests/text/gunzip.hpp"
#include "text/tokenizer.hpp"

namespace {

using ponder::text::SpecialTokens;
using ponder::text::Tokenizer;

const std::string& tokenizer_json() {
  static const std::string json = ponder::testing::gunzip_file(PONDER_TEST_DATA "/tokenizer/qwen3.json.gz");
  return json;
}

const Tokenizer& tokenizer() {
  static const Tokenizer t = Tokenizer::parse(tokenizer_json());
  return t;
}

const std::vector<std::string>& words() {
  static const std::vector<std::string> list = {
      "the",      "of",       "and",      "to",        "a",         "in",         "is",         "that",
      "for",      "was",      "it",       "with",      "as",        "on",         "be",         "at",
      "by",       "this",     "had",      "not",       "are",       "but",        "from",       "or",
      "have",     "an",       "they",     "which",     "one",       "you",        "were",       "her",
      "all",      "she",      "there",    "would",     "their",     "we",         "him",        "been",
      "has",      "when",     "who",      "will",      "more",      "no",         "if",         "out",
      "so",       "said",     "what",     "up",        "its",       "about",      "into",       "than",
      "them",     "can",      "only",     "other",     "new",       "some",       "could",      "time",
      "customer", "parcel",   "refund",   "because",   "week",      "delivery",   "charged",    "account",
      "question", "answer",   "probable", "evidence",  "weather",   "mountain",   "railway",    "governor",
      "chapter",  "physics",  "molecule", "harvest",   "violin",    "threshold",  "calibrated", "uncertainty",
      "library",  "argument", "compiler", "scheduler", "bandwidth", "throughput", "recurrence", "eigenvalue",
      "Tuesday",  "Lisbon",   "Margaret", "October",   "Northern",  "Herodotus",  "Copenhagen", "Zimmermann"};
  return list;
}

std::string english(std::size_t bytes) {
  std::mt19937_64 random(20240607);
  std::vector<double> weights;
  for (std::size_t i = 0; i < words().size(); ++i) weights.push_back(1.0 / (static_cast<double>(i) + 2.7));
  std::discrete_distribution<std::size_t> word(weights.begin(), weights.end());
  std::string text;
  bool start = true;
  while (text.size() < bytes) {
    std::string w =
        word(random) == 0 && random() % 16 == 0 ? std::to_string(random() % 10000) : words()[word(random)];
    if (start && w[0] >= 'a') w[0] = static_cast<char>(w[0] - 'a' + 'A');
    if (!start && random() % 40 == 0) w += "'s";
    text += w;
    start = random() % 14 == 0;
    text += start ? (random() % 6 == 0 ? ".\n\n" : ". ") : random() % 12 == 0 ? ", " : " ";
  }
  return text;
}

void encode(benchmark::State& state, const std::string& text) {
  std::size_t tokens = 0;
  for (auto _ : state) tokens = tokenizer().encode(text, SpecialTokens::none).size();
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(text.size()));
  state.counters["bytes_per_token"] = static_cast<double>(text.size()) / static_cast<double>(tokens);
}

void encode_english(benchmark::State& state) {
  encode(state, english(std::size_t{1} << 20));
}
BENCHMARK(encode_english)->Unit(benchmark::kMillisecond);

void encode_short_english(benchmark::State& state) {
  encode(state, english(200));
}
BENCHMARK(encode_short_english)->Unit(benchmark::kMicrosecond);

void encode_one_piece(benchmark::State& state) {
  encode(state, std::string(std::size_t{1} << 20, 'Z'));
}
BENCHMARK(encode_one_piece)->Unit(benchmark::kMillisecond);

void encode_chinese(benchmark::State& state) {
  static const std::vector<std::string> characters = {"你", "好", "世", "界", "的", "一", "是", "不",
                                                      "了", "在", "人", "有", "我", "他", "，", "。"};
  std::mt19937_64 random(7);
  std::string text;
  while (text.size() < (std::size_t{1} << 20)) text += characters[random() % characters.size()];
  encode(state, text);
}
BENCHMARK(encode_chinese)->Unit(benchmark::kMillisecond);

void encode_combining_marks(benchmark::State& state) {
  std::string text;
  while (text.size() < (std::size_t{1} << 20)) text += "\xCC\x81\xCC\xA3";
  encode(state, text);
}
BENCHMARK(encode_combining_marks)->Unit(benchmark::kMillisecond);

void decode_english(benchmark::State& state) {
  const std::string text = english(std::size_t{1} << 20);
  const std::vector<std::int32_t> ids = tokenizer().encode(text, SpecialTokens::none);
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer().decode(ids));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(text.size()));
}
BENCHMARK(decode_english)->Unit(benchmark::kMillisecond);

void load(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(Tokenizer::parse(tokenizer_json()).vocab_size());
}
BENCHMARK(load)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
