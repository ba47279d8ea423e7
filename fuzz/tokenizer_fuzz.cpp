// tokenizer.json parsing followed by encoding. Input: the file's text, a zero byte, a text to encode. Without
// text in front of the zero byte the tokenizers are our own, one for each kind of splitter.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "text/byte_alphabet.hpp"
#include "text/normalize.hpp"
#include "text/stream_decoder.hpp"
#include "text/tokenizer.hpp"
#include "text/utf8.hpp"

namespace {

using namespace ponder::text;  // NOLINT: a program of its own
using nlohmann::json;

void check(bool holds) {
  if (!holds) std::abort();
}

bool is_added(const Tokenizer& t, std::int32_t id) {
  return t.is_added(id);
}

void exercise(const Tokenizer& t, std::string_view text, bool nfc) {
  const std::vector<std::int32_t> user = t.encode(text, SpecialTokens::none);
  check(std::none_of(user.begin(), user.end(), [&](std::int32_t id) { return is_added(t, id); }));
  const std::vector<std::int32_t> ours = t.encode(text, SpecialTokens::parse);
  if (nfc) check(t.decode(user) == normalize(repair_utf8(text), NormalForm::nfc));
  std::size_t cut = text.size() / 2;
  while (cut > 0 && cut < text.size() && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
  const std::vector<Segment> segments = {{text.substr(0, cut), true}, {text.substr(cut), true}};
  if (valid_utf8_prefix(text) == text.size()) check(t.encode_segments(segments) == ours);
  StreamDecoder stream(t);
  std::string all;
  for (const std::int32_t id : ours) all += stream.push(id);
  check(all + stream.finish() == t.decode(ours));
}

json split(const std::string& pattern) {
  return {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
}

std::vector<Tokenizer> own_tokenizers() {
  json spec = {{"normalizer", {{"type", "NFC"}}}};
  json& vocab = spec["model"]["vocab"];
  for (int b = 0; b < 256; ++b) vocab[spell_bytes(std::string(1, static_cast<char>(b)))] = b;
  spec["model"]["merges"] = json::array();
  std::int32_t next = 256;
  for (const char* merge : {"a b", "ab a", "ab ab", "Ġ a", "Ġ Ġ", "Ã ©", "Ì ģ", "Ċ Ċ"}) {
    const std::string text(merge);
    spec["model"]["merges"].push_back(text);
    const std::size_t space = text.find(' ');
    vocab[text.substr(0, space) + text.substr(space + 1)] = next++;
  }
  const json flag = {
      {"special", true}, {"normalized", false}, {"lstrip", false}, {"rstrip", false}, {"single_word", false}};
  for (const char* content : {"<x>", "<x", "ab", "\xC3\x85!"}) {
    json token = flag;
    token["content"] = content;
    token["id"] = vocab.contains(content) ? vocab[content].get<std::int32_t>() : next++;
    token["normalized"] = content[0] == '\xC3';
    spec["added_tokens"].push_back(token);
  }
  std::vector<Tokenizer> out;
  const std::string tail = R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  for (const std::string& pattern : {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+)" + tail,
                                     R"([^\r\n\p{L}\p{N}]?+\p{L}++)" + tail}) {
    spec["pre_tokenizer"] = {
        {"type", "Sequence"},
        {"pretokenizers",
         {split(pattern), {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
    out.push_back(Tokenizer::parse(spec.dump()));
  }
  spec["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  out.push_back(Tokenizer::parse(spec.dump()));
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t zero = std::min(input.find('\0'), input.size());
  const std::string_view text =
      zero < input.size() ? input.substr(zero + 1) : std::string_view("The ab <x> 12\n");
  if (zero == 0) {
    static const std::vector<Tokenizer> own = own_tokenizers();
    for (const Tokenizer& t : own) exercise(t, text, true);
    return 0;
  }
  try {
    exercise(Tokenizer::parse(input.substr(0, zero), {}, {}), text, false);
  } catch (const ponder::Error& e) {
    check(e.kind() != ponder::ErrorKind::internal);
    check(std::string_view(e.what()).find('\n') == std::string_view::npos);
  }
  return 0;
}
