// Colours that people with any colour vision tell apart as far as that goes: eight are apart
// whatever the order (Okabe and Ito's); more are a rainbow whose neighbours are close, so numbers
// stand beside it and the order helps.
//
// Values; any thread; nothing fails.
#pragma once

#include <string>

namespace catenary::picture {

struct Colour {
  int red = 0;
  int green = 0;
  int blue = 0;
};

// The index-th of so many.
Colour colour_of(int index, int count);

// Nearer to white: 0 is the colour itself, 1 is white.
Colour tint(Colour colour, double share);

// Nearer to black.
Colour shade(Colour colour, double share);

// "#1a2b3c"
std::string text_of(Colour colour);

// What is read better on the colour: black or white.
Colour ink_on(Colour colour);

}  // namespace catenary::picture
