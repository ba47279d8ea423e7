#include "text/tokenizer.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "text/byte_alphabet.hpp"
#include "text/tokenizer_impl.hpp"
#include "text/utf8.hpp"

namespace ponder::text {
namespace {

constexpr std::size_t kMaxText = std::size_t{1} << 30;

void check_size(std::size_t bytes) {
  if (bytes > kMaxText)
    fail(ErrorKind::too_large, "text of {} bytes; at most {} are encoded", bytes, kMaxText);
}

using Runs = std::vector<TrustRun>;

void add_run(Runs& runs, std::size_t end, bool trusted) {
  if (end == (runs.empty() ? 0 : runs.back().end)) return;
  if (!runs.empty() && runs.back().trusted == trusted) {
    runs.back().end = end;
  } else {
    runs.push_back({end, trusted});
  }
}

// The part of `runs` over [begin, end), counted from `begin`.
Runs slice(const Runs& runs, std::size_t begin, std::size_t end) {
  Runs out;
  auto it = std::upper_bound(runs.begin(), runs.end(), begin,
                             [](std::size_t at, const TrustRun& run) { return at < run.end; });
  for (; it != runs.end() && begin < end; ++it) {
    add_run(out, std::min(it->end, end) - begin, it->trusted);
    if (it->end >= end) break;
  }
  return out;
}

bool any_untrusted(const Runs& runs) {
  return std::any_of(runs.begin(), runs.end(), [](const TrustRun& run) { return !run.trusted; });
}

// The runs of a text that was normalised: what was rewritten is trusted if all it came from was.
Runs map_runs(const Runs& runs, const std::vector<Rewritten>& rewritten, std::size_t size,
              std::size_t out_size) {
  Runs out;
  std::size_t at = 0;
  std::size_t out_at = 0;
  const auto copied = [&](std::size_t end) {
    for (const TrustRun& run : slice(runs, at, end)) add_run(out, out_at + run.end, run.trusted);
    out_at += end - at;
    at = end;
  };
  for (const Rewritten& r : rewritten) {
    copied(r.begin);
    add_run(out, r.out_end, !any_untrusted(slice(runs, r.begin, r.end)));
    at = r.end;
    out_at = r.out_end;
  }
  copied(size);
  if (out_at != out_size)
    fail(ErrorKind::internal, "normalised text of {} bytes, {} accounted for", out_size, out_at);
  return out;
}

}  // namespace

// One call of encode(): the stages in order, and their working memory.
class EncodeCall {
 public:
  explicit EncodeCall(const Tokenizer::Impl& impl) : impl_(impl) {}

  std::vector<std::int32_t> run(std::string_view text, const Runs& runs) {
    between(impl_.raw_matcher, text, runs,
            [&](std::string_view stretch, const Runs& own) { normalized(stretch, own); });
    return std::move(ids_);
  }

 private:
  template <class Stage>
  void between(const AddedMatcher& matcher, std::string_view text, const Runs& runs, Stage&& stage) {
    std::size_t at = 0;
    const auto stretch = [&](std::size_t end) {
      if (at < end) stage(text.substr(at, end - at), slice(runs, at, end));
    };
    for (const AddedMatch& m : matcher.find(text, runs)) {
      stretch(m.begin);
      ids_.push_back(m.id);
      at = m.end;
    }
    stretch(text.size());
  }

  void normalized(std::string_view stretch, const Runs& runs) {
    if (surely_normalized(stretch, impl_.form)) return ordinary(stretch, runs);
    std::vector<Rewritten> rewritten;
    const std::string text = normalize(stretch, impl_.form, &rewritten);
    check_size(text.size());
    ordinary(text, map_runs(runs, rewritten, stretch.size(), text.size()));
  }

  void ordinary(std::string_view text, const Runs& runs) {
    between(impl_.normalized_matcher, text, runs,
            [&](std::string_view stretch, const Runs& own) { pieces(stretch, any_untrusted(own)); });
  }

  void pieces(std::string_view text, bool guarded) {
    ends_.assign(1, static_cast<std::uint32_t>(text.size()));
    for (const auto& splitter : impl_.splitters) {
      next_ends_.clear();
      std::uint32_t begin = 0;
      for (const std::uint32_t end : ends_) {
        splitter->split(text, begin, end, next_ends_);
        begin = end;
      }
      ends_.swap(next_ends_);
    }
    std::uint32_t begin = 0;
    for (const std::uint32_t end : ends_) {
      piece(text.substr(begin, end - begin), guarded);
      begin = end;
    }
  }

  void piece(std::string_view bytes, bool guarded) {
    if (impl_.ignore_merges && bytes.size() <= impl_.longest_spelling) {
      const std::optional<std::int32_t> id = impl_.vocabulary.id(spell_bytes(bytes));
      if (id && impl_.has(*id, Tokenizer::Impl::kOfModel) &&
          !(guarded && impl_.has(*id, Tokenizer::Impl::kAdded))) {
        ids_.push_back(*id);
        return;
      }
    }
    impl_.bpe.merge(bytes, guarded, ids_, scratch_);
  }

  const Tokenizer::Impl& impl_;
  std::vector<std::int32_t> ids_;
  std::vector<std::uint32_t> ends_;
  std::vector<std::uint32_t> next_ends_;
  MergeScratch scratch_;
};

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, SpecialTokens mode) const {
  const Segment whole{text, mode == SpecialTokens::parse};
  return encode_segments({&whole, 1});
}

std::vector<std::int32_t> Tokenizer::encode_segments(std::span<const Segment> segments) const {
  std::size_t total = 0;
  bool good = segments.size() == 1;
  for (const Segment& s : segments) {
    total += std::min(s.text.size(), kMaxText + 1);
    check_size(total);
    good = good && valid_utf8_prefix(s.text) == s.text.size();
  }
  Runs runs;
  if (good) {  // nothing to put together or repair
    add_run(runs, total, segments[0].trusted);
    return EncodeCall(*impl_).run(segments[0].text, runs);
  }
  std::string text;
  text.reserve(total);
  for (const Segment& s : segments) {
    append_repaired(text, s.text);
    add_run(runs, text.size(), s.trusted);
  }
  check_size(text.size());
  return EncodeCall(*impl_).run(text, runs);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  std::string raw;
  for (const std::int32_t id : ids) {
    if (!skip_special || !is_special(id)) raw += bytes(id);
  }
  return valid_utf8_prefix(raw) == raw.size() ? raw : repair_utf8(raw);
}

std::string_view Tokenizer::bytes(std::int32_t id) const {
  if (id < 0 || id >= vocab_size()) return {};
  const Impl::Span span = impl_->bytes_spans[static_cast<std::size_t>(id)];
  return std::string_view(impl_->bytes_text).substr(span.begin, span.length);
}

std::optional<std::int32_t> Tokenizer::id(std::string_view token) const {
  return impl_->vocabulary.id(token);
}

std::optional<std::string_view> Tokenizer::token(std::int32_t id) const {
  const std::string_view spelling = impl_->vocabulary.spelling(id);
  return spelling.empty() ? std::nullopt : std::optional(spelling);
}

std::int32_t Tokenizer::vocab_size() const {
  return impl_->vocabulary.size();
}
const std::vector<AddedToken>& Tokenizer::added_tokens() const {
  return impl_->added;
}
bool Tokenizer::is_added(std::int32_t id) const {
  return impl_->has(id, Impl::kAdded);
}
bool Tokenizer::is_special(std::int32_t id) const {
  return impl_->has(id, Impl::kSpecial);
}
const std::vector<std::int32_t>& Tokenizer::prefix_ids() const {
  return impl_->prefix;
}
const std::vector<std::int32_t>& Tokenizer::suffix_ids() const {
  return impl_->suffix;
}
std::optional<std::int32_t> Tokenizer::bos_id() const {
  return impl_->bos;
}
std::optional<std::int32_t> Tokenizer::eos_id() const {
  return impl_->eos;
}
std::optional<std::int32_t> Tokenizer::pad_id() const {
  return impl_->pad;
}
const std::string& Tokenizer::chat_template() const {
  return impl_->chat_template;
}
const std::vector<std::pair<std::string, std::string>>& Tokenizer::chat_templates() const {
  return impl_->chat_templates;
}

}  // namespace ponder::text
