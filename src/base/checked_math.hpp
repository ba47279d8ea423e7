// Integer arithmetic that says when it does not fit. For sizes and offsets that come from files or requests.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "base/error.hpp"

namespace ponder {

template <class T>
concept CheckedInteger = std::integral<T> && !std::same_as<std::remove_cv_t<T>, bool>;

template <CheckedInteger T>
constexpr std::optional<T> checked_add(T a, std::type_identity_t<T> b) {
  T out{};
  if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
  return out;
}

template <CheckedInteger T>
constexpr std::optional<T> checked_sub(T a, std::type_identity_t<T> b) {
  T out{};
  if (__builtin_sub_overflow(a, b, &out)) return std::nullopt;
  return out;
}

template <CheckedInteger T>
constexpr std::optional<T> checked_mul(T a, std::type_identity_t<T> b) {
  T out{};
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}

// The product of all factors (1 of none). A zero anywhere makes it 0, whatever the others would overflow to,
// so the answer does not depend on the order of the factors.
template <CheckedInteger T>
constexpr std::optional<T> checked_product(std::span<const T> factors) {
  for (const T factor : factors) {
    if (factor == 0) return T{0};
  }
  std::optional<T> product = T{1};
  for (const T factor : factors) {
    product = checked_mul(*product, factor);
    if (!product) return std::nullopt;
  }
  return product;
}

// `value` as a To when To can hold it.
template <CheckedInteger To, CheckedInteger From>
constexpr std::optional<To> checked_cast(From value) {
  if (!std::in_range<To>(value)) return std::nullopt;
  return static_cast<To>(value);
}

// The same for values that are known to fit: a misfit is a broken assumption, ErrorKind::internal.
template <CheckedInteger To, CheckedInteger From>
constexpr To narrow(From value) {
  if (!std::in_range<To>(value)) fail(ErrorKind::internal, "{} does not fit {} bytes", value, sizeof(To));
  return static_cast<To>(value);
}

}  // namespace ponder
