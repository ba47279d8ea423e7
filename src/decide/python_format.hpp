// Python's spelling of values. Rendered numbers become tokens of the prompt, rounded ones the reply, and
// error messages are the public server's own: all three follow CPython 3 to the byte.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ponder::decide {

// repr(float): the shortest digits that read back as `x`; an exponent below 1e-4 and from 1e16 on.
std::string python_float(double x);

// repr(str). Past `limit` bytes the text is cut and "..." put behind the closing quote.
// What counts as printable is the Unicode version of the utf8proc library.
std::string python_repr(std::string_view text, std::size_t limit = 400);

// repr(sorted(names)): ['a', 'b']. Past 64 names the list ends in "...".
std::string python_repr_sorted(std::vector<std::string_view> names);

// round(x, decimals): half to even on the exact value of the double; decimals 0..17, x finite.
double python_round(double x, int decimals);

}  // namespace ponder::decide
