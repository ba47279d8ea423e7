#include "base/system_files.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <fstream>

#include <fmt/format.h>

#include "base/error.hpp"

namespace ponder {
namespace {

constexpr std::size_t kMostBytes = std::size_t{16} << 20;  // a mount table of tens of thousands of lines
constexpr std::uint64_t kMostCpus = 1u << 20;

}  // namespace

std::optional<std::string> read_system_file(const SystemSources& sources, std::string_view path) {
  std::ifstream file(sources.root + std::string(path), std::ios::binary);
  if (!file) return std::nullopt;
  // Such files give no size beforehand.
  std::string text;
  std::vector<char> block(4096);
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > kMostBytes) return std::nullopt;
  }
  if (file.bad()) return std::nullopt;
  return text;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string_view next_field(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  const std::string_view field = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  return field;
}

std::optional<std::uint64_t> parse_decimal(std::string_view text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

std::optional<std::vector<int>> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  std::string_view rest = trimmed(text);
  while (!rest.empty()) {
    const std::string_view item = next_field(rest, ',');
    const std::size_t dash = item.find('-');
    const auto first = parse_decimal(item.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_decimal(item.substr(dash + 1));
    if (!first || !last || *first > *last || *last >= kMostCpus) return std::nullopt;
    // Overlapping ranges must not add up without bound.
    if (cpus.size() + (*last - *first) >= kMostCpus) return std::nullopt;
    for (std::uint64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

void SystemNotes::malformed(std::string_view path, std::string_view text) {
  notes_.push_back(fmt::format("{} holds \"{}\"", printable(path, 200), printable(trimmed(text), 40)));
}

std::string SystemNotes::text() const {
  constexpr std::size_t kMost = 3;
  std::string line;
  for (std::size_t i = 0; i < std::min(notes_.size(), kMost); ++i)
    line += (i == 0 ? "; ignored: " : ", ") + notes_[i];
  if (notes_.size() > kMost) line += fmt::format(" and {} more", notes_.size() - kMost);
  return line;
}

}  // namespace ponder
