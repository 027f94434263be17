#include "src/picture/palette.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "src/base/error.h"

namespace catenary::picture {
namespace {

constexpr Colour kApart[] = {{0, 114, 178},  {230, 159, 0}, {0, 158, 115},  {204, 121, 167},
                             {86, 180, 233}, {213, 94, 0},  {222, 206, 40}, {102, 102, 102}};

constexpr Colour kRainbow[] = {{120, 40, 120}, {70, 80, 170},  {45, 120, 190}, {90, 165, 215},
                               {40, 160, 150}, {70, 170, 90},  {145, 190, 70}, {215, 195, 50},
                               {240, 165, 50}, {230, 110, 40}, {205, 40, 35},  {110, 30, 25}};

int between(int from, int to, double share) {
  return static_cast<int>(std::lround(from + (to - from) * share));
}

Colour mix(Colour from, Colour to, double share) {
  return {between(from.red, to.red, share), between(from.green, to.green, share),
          between(from.blue, to.blue, share)};
}

}  // namespace

Colour colour_of(int index, int count) {
  if (count <= static_cast<int>(std::size(kApart))) return kApart[std::max(index, 0)];
  const int last = static_cast<int>(std::size(kRainbow)) - 1;
  const double at = static_cast<double>(index) * last / (count - 1);
  const int from = std::clamp(static_cast<int>(at), 0, last - 1);
  return mix(kRainbow[from], kRainbow[from + 1], at - from);
}

Colour tint(Colour colour, double share) { return mix(colour, {255, 255, 255}, share); }

Colour shade(Colour colour, double share) { return mix(colour, {0, 0, 0}, share); }

std::string text_of(Colour colour) {
  return format("#%02x%02x%02x", static_cast<unsigned>(colour.red),
                static_cast<unsigned>(colour.green), static_cast<unsigned>(colour.blue));
}

Colour ink_on(Colour colour) {
  const double light = 0.299 * colour.red + 0.587 * colour.green + 0.114 * colour.blue;
  return light > 140 ? Colour{0, 0, 0} : Colour{255, 255, 255};
}

}  // namespace catenary::picture
