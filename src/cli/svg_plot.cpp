#include "cli/svg_plot.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <utf8proc.h>

namespace ponder::cli {
namespace {

constexpr double kWidth = 520, kHeight = 360;
constexpr double kLeft = 62, kRight = 16, kTop = 34, kBottom = 48;
constexpr const char* kFont = "font-family=\"sans-serif\" fill=\"#222\"";

// Opens a picture on white ground, with its title also for those who do not see it.
std::string opened(double width, double height, const std::string& title) {
  const std::string name = escape_markup(title);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"{0}\" viewBox=\"0 0 {1:.0f} "
      "{2:.0f}\" "
      "width=\"{1:.0f}\" height=\"{2:.0f}\"><title>{0}</title><rect width=\"100%\" height=\"100%\" "
      "fill=\"#fff\"/><text x=\"{3:.0f}\" y=\"20\" font-size=\"14\" font-weight=\"bold\" {4}>{0}</text>",
      name, width, height, kLeft, kFont);
}

std::string text_at(double x, double y, std::string_view anchor, double size, const std::string& escaped,
                    std::string_view more = {}) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\" {}{}>{}</text>", x,
                     y, anchor, size, kFont, more, escaped);
}

std::string straight(double x1, double y1, double x2, double y2, std::string_view color) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>", x1, y1,
                     x2, y2, color);
}

}  // namespace

std::string escape_markup(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    utf8proc_int32_t code = 0;
    const auto n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                    static_cast<utf8proc_ssize_t>(text.size()), &code);
    const std::size_t bytes = n > 0 ? static_cast<std::size_t>(n) : 1;
    const bool control = code < 0x20 || code == 0x7F || code == 0xFFFE || code == 0xFFFF;
    if (n <= 0 || control) {
      out += "\uFFFD";
    } else if (code == '&') {
      out += "&amp;";
    } else if (code == '<') {
      out += "&lt;";
    } else if (code == '>') {
      out += "&gt;";
    } else if (code == '"') {
      out += "&quot;";
    } else if (code == '\'') {
      out += "&#39;";
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return out;
}

std::string series_color(std::size_t series) {
  constexpr std::array colors = {"#0072b2", "#d55e00", "#009e73", "#cc79a7"};
  return colors[series % colors.size()];
}

std::vector<double> linear_ticks(Range range, int count) {
  const double rough = (range.high - range.low) / count;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = power;
  for (const double nice : {2.0, 2.5, 5.0, 10.0}) {
    if (step < rough * 0.999) step = nice * power;
  }
  std::vector<double> out;
  const double first = std::ceil(range.low / step - 1e-9);
  for (double i = first; i * step <= range.high + step * 1e-9; ++i) out.push_back(i * step + 0.0);  // no -0
  return out;
}

std::vector<double> log_ticks(Range range) {
  const bool wide = std::log10(range.high / range.low) > 3;
  std::vector<double> out;
  const int first = static_cast<int>(std::floor(std::log10(range.low)));
  const int last = static_cast<int>(std::ceil(std::log10(range.high)));
  for (int power = first; power <= last; ++power) {
    for (const double lead : {1.0, 2.0, 5.0}) {
      const double tick = lead * std::pow(10.0, power);
      const bool inside = tick >= range.low * 0.999 && tick <= range.high * 1.001;
      if (inside && (lead == 1 || !wide)) out.push_back(tick);
    }
  }
  return out;
}

Plot::Plot(PlotText text, Range x, Range y, bool log_y)
    : text_(std::move(text)), x_(x), y_(y), log_y_(log_y) {
  axes();
}

double Plot::px(double x) const {
  return kLeft + (x - x_.low) / (x_.high - x_.low) * (kWidth - kLeft - kRight);
}

double Plot::py(double y) const {
  const double share = log_y_ ? std::log(std::max(y, y_.low) / y_.low) / std::log(y_.high / y_.low)
                              : (y - y_.low) / (y_.high - y_.low);
  return kHeight - kBottom - share * (kHeight - kTop - kBottom);
}

void Plot::axes() {
  for (const double tick : linear_ticks(x_)) {
    body_ += straight(px(tick), kTop, px(tick), kHeight - kBottom, "#e6e6e6");
    body_ += text_at(px(tick), kHeight - kBottom + 16, "middle", 11, fmt::format("{:.4g}", tick));
  }
  for (const double tick : log_y_ ? log_ticks(y_) : linear_ticks(y_)) {
    body_ += straight(kLeft, py(tick), kWidth - kRight, py(tick), "#e6e6e6");
    body_ += text_at(kLeft - 6, py(tick) + 4, "end", 11, fmt::format("{:.4g}", tick));
  }
  body_ += straight(kLeft, kHeight - kBottom, kWidth - kRight, kHeight - kBottom, "#444");
  body_ += straight(kLeft, kTop, kLeft, kHeight - kBottom, "#444");
  body_ += text_at((kLeft + kWidth - kRight) / 2, kHeight - 10, "middle", 12, escape_markup(text_.x));
  const double middle = (kTop + kHeight - kBottom) / 2;
  body_ += text_at(14, middle, "middle", 12, escape_markup(text_.y),
                   fmt::format(" transform=\"rotate(-90 14 {:.1f})\"", middle));
}

void Plot::line(const std::vector<std::pair<double, double>>& points, const std::string& color, bool dashed) {
  if (points.empty()) return;
  std::string places;
  for (const auto& [x, y] : points) places += fmt::format("{:.1f},{:.1f} ", px(x), py(y));
  body_ += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>", places,
                       color, dashed ? " stroke-dasharray=\"5 4\"" : "");
}

void Plot::point(double x, double y, const std::string& color, double radius, std::string_view label) {
  body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\" fill-opacity=\"0.75\"/>",
                       px(x), py(y), radius, color);
  if (label.empty()) return;
  const bool at_edge = px(x) > kWidth - kRight - 40;  // there it goes to the left
  body_ += text_at(px(x) + (at_edge ? -radius - 3 : radius + 3), py(y) + 13, at_edge ? "end" : "start", 11,
                   escape_markup(label));
}

void Plot::bar(double x_from, double x_to, double low, double high, const std::string& color) {
  body_ += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" "
      "fill-opacity=\"0.45\"/>",
      px(x_from), py(high), px(x_to) - px(x_from), py(low) - py(high), color);
}

void Plot::legend(std::string_view name, const std::string& color) {
  const double y = kTop + 10 + 16 * legends_++;
  body_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"12\" fill=\"{}\"/>", kLeft + 8,
                       y - 10, color);
  body_ += text_at(kLeft + 25, y, "start", 11, escape_markup(name));
}

std::string Plot::svg() const {
  return opened(kWidth, kHeight, text_.title) + body_ + "</svg>\n";
}

std::string bar_chart(const std::string& title, const std::vector<std::string>& series,
                      const std::vector<BarRow>& rows) {
  constexpr double left = 170, right = 50, thickness = 12, gap = 10, top = 60;
  const double row_height = thickness * static_cast<double>(series.size()) + gap;
  const double height = top + row_height * static_cast<double>(rows.size()) + 24;
  const double span = kWidth - left - right;
  std::string out = opened(kWidth, height, title);
  for (std::size_t s = 0; s < series.size(); ++s) {
    const double x = left + 110 * static_cast<double>(s);
    out += fmt::format("<rect x=\"{:.1f}\" y=\"32\" width=\"12\" height=\"12\" fill=\"{}\"/>", x,
                       series_color(s));
    out += text_at(x + 17, 42, "start", 11, escape_markup(series[s]));
  }
  for (const double tick : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    out += straight(left + tick * span, top - 6, left + tick * span, height - 18, "#e6e6e6");
    out += text_at(left + tick * span, height - 5, "middle", 11, fmt::format("{:.4g}", tick));
  }
  double y = top;
  for (const BarRow& row : rows) {
    out += text_at(left - 6, y + (row_height - gap) / 2 + 4, "end", 11, escape_markup(row.name));
    for (std::size_t s = 0; s < row.values.size(); ++s, y += thickness) {
      if (!std::isfinite(row.values[s])) continue;
      out += fmt::format("<rect x=\"{}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"/>", left, y,
                         row.values[s] * span, thickness - 2, series_color(s));
      out += text_at(left + row.values[s] * span + 4, y + thickness - 3, "start", 10,
                     fmt::format("{:.3f}", row.values[s]));
    }
    y += gap;
  }
  return out + "</svg>\n";
}

}  // namespace ponder::cli
