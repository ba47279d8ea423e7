// strftime, in the C locale whatever the process has set.
#include <array>

#include "base/error.hpp"
#include "text/template_builtins.hpp"

namespace ponder::text::jinja {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> kMonths = {"January",   "February", "March",    "April",
                                                      "May",       "June",     "July",     "August",
                                                      "September", "October",  "November", "December"};

template <std::size_t N>
std::string_view entry(const std::array<std::string_view, N>& names, int at) {
  if (at < 0 || at >= static_cast<int>(N))
    fail(ErrorKind::usage, "strftime_now: the date given is not a date");
  return names[static_cast<std::size_t>(at)];
}

std::string number(int value, int width, char flag, char fill = '0') {
  if (flag == '-') return std::to_string(value);
  if (flag == '_') fill = ' ';
  return fill == ' ' ? fmt::format("{:{}}", value, width) : fmt::format("{:0{}}", value, width);
}

std::string directive(const std::tm& when, char letter, char flag) {
  const int hour12 = when.tm_hour % 12 == 0 ? 12 : when.tm_hour % 12;
  switch (letter) {
    case 'a':
      return std::string(entry(kDays, when.tm_wday).substr(0, 3));
    case 'A':
      return std::string(entry(kDays, when.tm_wday));
    case 'b':
    case 'h':
      return std::string(entry(kMonths, when.tm_mon).substr(0, 3));
    case 'B':
      return std::string(entry(kMonths, when.tm_mon));
    case 'c':
      return format_time(when, "%a %b %e %H:%M:%S %Y");
    case 'd':
      return number(when.tm_mday, 2, flag);
    case 'D':
    case 'x':
      return format_time(when, "%m/%d/%y");
    case 'e':
      return number(when.tm_mday, 2, flag, ' ');
    case 'F':
      return format_time(when, "%Y-%m-%d");
    case 'H':
      return number(when.tm_hour, 2, flag);
    case 'I':
      return number(hour12, 2, flag);
    case 'j':
      return number(when.tm_yday + 1, 3, flag);
    case 'k':
      return number(when.tm_hour, 2, flag, ' ');
    case 'l':
      return number(hour12, 2, flag, ' ');
    case 'm':
      return number(when.tm_mon + 1, 2, flag);
    case 'M':
      return number(when.tm_min, 2, flag);
    case 'n':
      return "\n";
    case 'p':
      return when.tm_hour < 12 ? "AM" : "PM";
    case 'r':
      return format_time(when, "%I:%M:%S %p");
    case 'R':
      return format_time(when, "%H:%M");
    case 'S':
      return number(when.tm_sec, 2, flag);
    case 't':
      return "\t";
    case 'T':
    case 'X':
      return format_time(when, "%H:%M:%S");
    case 'u':
      return std::to_string(when.tm_wday == 0 ? 7 : when.tm_wday);
    case 'U':
      return number((when.tm_yday + 7 - when.tm_wday) / 7, 2, flag);
    case 'w':
      return std::to_string(when.tm_wday);
    case 'W':
      return number((when.tm_yday + 7 - (when.tm_wday + 6) % 7) / 7, 2, flag);
    case 'y':
      return number((when.tm_year % 100 + 100) % 100, 2, flag);
    case 'Y':
      return std::to_string(1900LL + when.tm_year);
    case 'z':
    case 'Z':
      return "";  // a date without a time zone, as datetime.now() gives
    case '%':
      return "%";
    default:
      fail(ErrorKind::unsupported, "strftime_now: the directive \"%{}\" is not supported",
           printable({&letter, 1}));
  }
}

}  // namespace

std::string format_time(const std::tm& when, std::string_view format) {
  std::string out;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out.push_back(format[i]);
      continue;
    }
    char flag = 0;
    ++i;
    if ((format[i] == '-' || format[i] == '_' || format[i] == '0') && i + 1 < format.size())
      flag = format[i++];
    out += directive(when, format[i], flag);
  }
  return out;
}

}  // namespace ponder::text::jinja
