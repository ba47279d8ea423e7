// From files to a Tokenizer: reading, consistency checks, tables.
#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "base/error.hpp"
#include "text/byte_alphabet.hpp"
#include "text/tokenizer_file.hpp"
#include "text/tokenizer_impl.hpp"
#include "text/utf8.hpp"

namespace ponder::text {

struct TokenizerBuilder {
  using Impl = Tokenizer::Impl;

  std::string where;  // the tokenizer.json, for messages
  TokenizerSpec spec;
  TokenizerConfig config;

  Tokenizer build(std::string chat_template) {
    merge_added();
    Vocabulary vocabulary = make_vocabulary();
    std::vector<std::uint8_t> traits = traits_by_id(vocabulary);
    const std::array<std::int32_t, 256> byte_ids = byte_tokens(vocabulary, traits);
    std::vector<bool> barred;
    MergeTable merges = merge_table(vocabulary, traits, barred);
    auto impl =
        std::make_shared<Impl>(std::move(vocabulary), Bpe(std::move(merges), byte_ids, std::move(barred)));
    impl->traits = std::move(traits);
    impl->ignore_merges = spec.ignore_merges;
    for (const auto& entry : spec.vocab) {
      impl->longest_spelling = std::max<std::size_t>(impl->longest_spelling, entry.token.length);
    }
    impl->form = spec.form;
    add_bytes(*impl);
    add_splitters(*impl);
    add_matchers(*impl);
    add_names(*impl);
    add_templates(*impl, std::move(chat_template));
    impl->added = std::move(spec.added);
    return Tokenizer(std::move(impl));
  }

 private:
  // tokenizer.json decides; tokenizer_config.json may only add tokens that it does not have.
  void merge_added() {
    const auto by_id = [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; };
    std::vector<AddedToken>& added = spec.added;
    std::sort(added.begin(), added.end(), by_id);
    const auto twice = std::adjacent_find(
        added.begin(), added.end(), [](const AddedToken& a, const AddedToken& b) { return a.id == b.id; });
    if (twice != added.end())
      fail(ErrorKind::bad_file, "{}: added token {} is listed twice", where, twice->id);
    const std::size_t own = added.size();
    std::sort(config.added.begin(), config.added.end(), by_id);
    for (AddedToken& token : config.added) {
      const auto end = added.begin() + static_cast<std::ptrdiff_t>(own);
      const auto it = std::lower_bound(added.begin(), end, token, by_id);
      if (it == end || it->id != token.id) {
        added.push_back(std::move(token));
      } else if (it->content != token.content) {
        fail(ErrorKind::bad_file, "{}: token {} is '{}' there and '{}' in the configuration", where, token.id,
             printable(it->content), printable(token.content));
      }
    }
    std::sort(added.begin(), added.end(), by_id);
    for (const AddedToken& token : added) check_added(token);
  }

  void check_added(const AddedToken& token) const {
    if (token.content.empty()) fail(ErrorKind::bad_file, "{}: added token {} has no text", where, token.id);
    if (token.content.size() > AddedMatcher::kMaxLength) {
      fail(ErrorKind::too_large, "{}: added token {} has {} bytes of text; at most {} are handled", where,
           token.id, token.content.size(), AddedMatcher::kMaxLength);
    }
  }

  std::vector<Vocabulary::Entry> entries() {
    std::vector<Vocabulary::Entry> all;
    all.reserve(spec.vocab.size() + spec.added.size());
    for (const auto& entry : spec.vocab) all.push_back({spec.text(entry.token), entry.id});
    if (spec.added.empty()) return all;
    // Added tokens that the model's vocabulary also has, under the same id, are not entered again.
    std::vector<Vocabulary::Entry> shared;
    for (const auto& entry : spec.vocab) {
      const auto it = std::lower_bound(spec.added.begin(), spec.added.end(), entry.id,
                                       [](const AddedToken& a, std::int32_t id) { return a.id < id; });
      if (it != spec.added.end() && it->id == entry.id && it->content == spec.text(entry.token)) {
        shared.push_back({it->content, it->id});
      }
    }
    const auto by_id = [](const Vocabulary::Entry& a, const Vocabulary::Entry& b) { return a.id < b.id; };
    std::sort(shared.begin(), shared.end(), by_id);
    for (const AddedToken& token : spec.added) {
      const Vocabulary::Entry entry{token.content, token.id};
      if (!std::binary_search(shared.begin(), shared.end(), entry, by_id)) all.push_back(entry);
    }
    return all;
  }

  Vocabulary make_vocabulary() {
    try {
      return Vocabulary(entries());
    } catch (const Error& e) {
      fail(e.kind(), "{}: {}", where, e.what());
    }
  }

  std::vector<std::uint8_t> traits_by_id(const Vocabulary& vocabulary) const {
    std::vector<std::uint8_t> traits(static_cast<std::size_t>(vocabulary.size()));
    for (const auto& entry : spec.vocab) traits[static_cast<std::size_t>(entry.id)] |= Impl::kOfModel;
    for (const AddedToken& token : spec.added) {
      traits[static_cast<std::size_t>(token.id)] |= Impl::kAdded;
      if (token.special) traits[static_cast<std::size_t>(token.id)] |= Impl::kSpecial;
    }
    return traits;
  }

  // The model's token with this spelling.
  static std::optional<std::int32_t> of_model(const Vocabulary& vocabulary,
                                              const std::vector<std::uint8_t>& traits,
                                              std::string_view spelling) {
    const std::optional<std::int32_t> id = vocabulary.id(spelling);
    return id && (traits[static_cast<std::size_t>(*id)] & Impl::kOfModel) != 0 ? id : std::nullopt;
  }

  std::array<std::int32_t, 256> byte_tokens(const Vocabulary& vocabulary,
                                            const std::vector<std::uint8_t>& traits) const {
    std::array<std::int32_t, 256> ids{};
    for (std::size_t b = 0; b < 256; ++b) {
      std::string letter;
      append_code_point(letter, letter_of_byte(static_cast<unsigned char>(b)));
      const std::optional<std::int32_t> id = of_model(vocabulary, traits, letter);
      const bool in_utf8 = b < 0xC0 || (b > 0xC1 && b < 0xF5);
      if (!id && in_utf8) {
        fail(ErrorKind::unsupported,
             "{}: model.vocab: no token '{}' for the byte 0x{:02x}; not a byte-level BPE", where, letter, b);
      }
      // Ordinary text could then not be told from the added token.
      if (id && (traits[static_cast<std::size_t>(*id)] & Impl::kAdded) != 0) {
        fail(ErrorKind::unsupported, "{}: added token '{}' is also the token of the byte 0x{:02x}", where,
             letter, b);
      }
      ids[b] = id.value_or(-1);
    }
    return ids;
  }

  MergeTable merge_table(const Vocabulary& vocabulary, const std::vector<std::uint8_t>& traits,
                         std::vector<bool>& barred) const {
    MergeTable table(spec.merges.size());
    std::string joined;
    for (std::size_t rank = 0; rank < spec.merges.size(); ++rank) {
      const std::string_view left = spec.text(spec.merges[rank].left);
      const std::string_view right = spec.text(spec.merges[rank].right);
      joined.assign(left).append(right);
      const auto need = [&](std::string_view token) {
        const std::optional<std::int32_t> id = of_model(vocabulary, traits, token);
        if (!id) {
          fail(ErrorKind::bad_file, "{}: merge {} ('{}' + '{}'): '{}' is not in the vocabulary", where, rank,
               printable(left), printable(right), printable(token));
        }
        return *id;
      };
      const std::int32_t id = need(joined);
      if (!table.insert(need(left), need(right), {static_cast<std::uint32_t>(rank), id})) {
        fail(ErrorKind::bad_file, "{}: merge {} ('{}' + '{}') is there twice", where, rank, printable(left),
             printable(right));
      }
      if ((traits[static_cast<std::size_t>(id)] & Impl::kAdded) != 0) {
        barred.resize(traits.size());
        barred[static_cast<std::size_t>(id)] = true;
      }
    }
    return table;
  }

  static void add_bytes(Impl& impl) {
    impl.bytes_spans.resize(static_cast<std::size_t>(impl.vocabulary.size()));
    for (std::int32_t id = 0; id < impl.vocabulary.size(); ++id) {
      const auto begin = static_cast<std::uint32_t>(impl.bytes_text.size());
      append_spelled_bytes(impl.bytes_text, impl.vocabulary.spelling(id));
      impl.bytes_spans[static_cast<std::size_t>(id)] = {
          begin, static_cast<std::uint32_t>(impl.bytes_text.size()) - begin};
    }
  }

  void add_splitters(Impl& impl) const {
    for (const SplitStep& step : spec.steps) {
      try {
        std::unique_ptr<const Splitter> splitter = step.literal ? nullptr : make_known_splitter(step.pattern);
        if (splitter == nullptr) splitter = make_pattern_splitter(step.pattern, step.literal);
        impl.splitters.push_back(std::move(splitter));
      } catch (const Error& e) {
        fail(e.kind(), "{}: pre_tokenizer: {}", where, e.what());
      }
    }
  }

  void add_matchers(Impl& impl) const {
    std::vector<AddedMatcher::Pattern> raw;
    std::vector<AddedMatcher::Pattern> normalized;
    for (const AddedToken& t : spec.added) {
      AddedMatcher::Pattern pattern{t.content, t.id, t.lstrip, t.rstrip, t.single_word};
      if (t.normalized) {
        pattern.text = normalize(t.content, spec.form);
        normalized.push_back(std::move(pattern));
      } else {
        raw.push_back(std::move(pattern));
      }
    }
    impl.raw_matcher = AddedMatcher(std::move(raw));
    impl.normalized_matcher = AddedMatcher(std::move(normalized));
  }

  void add_names(Impl& impl) const {
    const auto resolve = [&](const std::optional<std::string>& name) {
      return name ? impl.vocabulary.id(*name) : std::nullopt;
    };
    impl.bos = resolve(config.bos);
    impl.eos = resolve(config.eos);
    impl.pad = resolve(config.pad);
    for (const std::vector<std::int32_t>* ids : {&spec.prefix, &spec.suffix}) {
      for (const std::int32_t id : *ids) {
        if (impl.vocabulary.spelling(id).empty()) {
          fail(ErrorKind::bad_file, "{}: post_processor: no token has the id {}", where, id);
        }
      }
    }
    impl.prefix = spec.prefix;
    impl.suffix = spec.suffix;
  }

  void add_templates(Impl& impl, std::string from_file) {
    auto& named = impl.chat_templates;
    named = std::move(config.chat_templates);
    if (!from_file.empty()) {
      std::erase_if(named, [](const auto& t) { return t.first == "default"; });
      named.insert(named.begin(), {"default", std::move(from_file)});
    }
    const auto it =
        std::find_if(named.begin(), named.end(), [](const auto& t) { return t.first == "default"; });
    if (it != named.end()) {
      impl.chat_template = it->second;
    } else if (named.size() == 1) {
      impl.chat_template = named[0].second;
    }
  }
};

namespace {

constexpr std::uintmax_t kMaxFile = std::uintmax_t{256} << 20;

std::optional<std::string> read_optional(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return std::nullopt;
  const std::uintmax_t size = error ? 0 : std::filesystem::file_size(path, error);
  if (error) fail(ErrorKind::bad_file, "{}: {}", printable(path.string(), 400), error.message());
  if (size > kMaxFile) {
    fail(ErrorKind::too_large, "{}: {} bytes; at most {} are read", printable(path.string(), 400), size,
         kMaxFile);
  }
  std::ifstream file(path, std::ios::binary);
  std::string text(static_cast<std::size_t>(size), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file) fail(ErrorKind::bad_file, "{}: cannot be read", printable(path.string(), 400));
  return text;
}

Tokenizer build(std::string_view json, std::string where, const std::optional<std::string_view>& config,
                const std::string& config_where, std::string chat_template) {
  TokenizerBuilder builder;
  builder.spec = parse_tokenizer_json(json, where);
  builder.where = std::move(where);
  if (config) builder.config = parse_tokenizer_config(*config, config_where);
  return builder.build(std::move(chat_template));
}

}  // namespace

Tokenizer Tokenizer::load(const std::filesystem::path& where) {
  std::error_code error;
  const bool is_folder = std::filesystem::is_directory(where, error);
  const std::filesystem::path file = is_folder ? where / "tokenizer.json" : where;
  const std::filesystem::path folder = file.parent_path();
  const std::string name = printable(file.string(), 400);
  const std::optional<std::string> json = read_optional(file);
  if (!json) fail(ErrorKind::bad_file, "{}: there is no such file", name);
  const std::filesystem::path config_file = folder / "tokenizer_config.json";
  const std::optional<std::string> config = read_optional(config_file);
  return build(*json, name, config, printable(config_file.string(), 400),
               read_optional(folder / "chat_template.jinja").value_or(""));
}

Tokenizer Tokenizer::parse(std::string_view tokenizer_json, std::string_view config,
                           std::string_view chat_template) {
  return build(tokenizer_json, "tokenizer.json", config.empty() ? std::nullopt : std::optional(config),
               "tokenizer_config.json", std::string(chat_template));
}

}  // namespace ponder::text
