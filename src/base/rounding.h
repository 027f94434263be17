// Division and multiples, rounded up. Values that are not negative, divisors greater than 0, and
// sums of both that their type holds: nothing is checked, nothing fails.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <type_traits>

namespace catenary {

template <std::integral T>
constexpr T divide_up(T value, std::type_identity_t<T> divisor) {
  return (value + divisor - 1) / divisor;
}

template <std::integral T>
constexpr T round_up(T value, std::type_identity_t<T> multiple) {
  return divide_up(value, multiple) * multiple;
}

// For hot paths that know the divisor only when they run: element sizes and cuts are mostly powers
// of two, and a shift is ten times cheaper than a division.
constexpr std::size_t divide_down_quickly(std::size_t value, std::size_t divisor) {
  const bool power_of_two = (divisor & (divisor - 1)) == 0;
  return power_of_two ? value >> std::countr_zero(divisor) : value / divisor;
}
constexpr std::size_t divide_up_quickly(std::size_t value, std::size_t divisor) {
  const std::size_t quotient = divide_down_quickly(value, divisor);
  return quotient * divisor == value ? quotient : quotient + 1;
}

}  // namespace catenary
