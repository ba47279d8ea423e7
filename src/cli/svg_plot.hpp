// Plots as SVG text: axes, lines, bars, points. A plot stands alone as a file and inside an HTML page.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ponder::cli {

// Text of unknown origin for SVG or HTML, attribute values included; what is not UTF-8, and control
// characters, which XML has no place for, become U+FFFD.
std::string escape_markup(std::string_view text);

// Distinct also to colour-blind eyes (Okabe and Ito).
std::string series_color(std::size_t series);

struct Range {
  double low = 0, high = 1;
};

// Round numbers that cover `range` with about `count` steps; for a logarithmic axis powers of ten, with 2 and
// 5 of each where they are few.
std::vector<double> linear_ticks(Range range, int count = 5);
std::vector<double> log_ticks(Range range);

struct PlotText {
  std::string title;
  std::string x, y;  // what the axes are
};

class Plot {
 public:
  // `log_y`: the y axis is logarithmic and its range positive.
  Plot(PlotText text, Range x, Range y, bool log_y = false);

  void line(const std::vector<std::pair<double, double>>& points, const std::string& color,
            bool dashed = false);
  void point(double x, double y, const std::string& color, double radius, std::string_view label = {});
  // From y = low to y = high.
  void bar(double x_from, double x_to, double low, double high, const std::string& color);
  void legend(std::string_view name, const std::string& color);

  std::string svg() const;

 private:
  double px(double x) const;
  double py(double y) const;
  void axes();

  PlotText text_;
  Range x_, y_;
  bool log_y_;
  std::string body_;
  int legends_ = 0;
};

// Rows of horizontal bars from 0 to 1, several series a row, with the numbers behind them.
struct BarRow {
  std::string name;
  std::vector<double> values;  // one a series; NaN: none
};
std::string bar_chart(const std::string& title, const std::vector<std::string>& series,
                      const std::vector<BarRow>& rows);

}  // namespace ponder::cli
