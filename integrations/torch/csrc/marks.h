// Marks: what torch knows of a collective and its call to the library does not say.
//
// A reduction by BAND is a gather to the library, a 16-bit integer one of 32 bits, a gather an
// all-to-all of which most is empty. Ranks that differ in such things would mix up their numbers,
// so every collective carries a mark that is made of them, and errors tell it in torch's words.
//
// Threads: any. Values; nothing waits or fails.
#pragma once

#include <cstdint>
#include <string>

#include "work.h"

namespace catenary_torch {

// Another number for each kind of call, type, reduction, and of up to 2^14 - 1 roots; never 0.
std::uint32_t mark_of(const Operation& operation);

// The message of the library with every mark in it in torch's words.
std::string with_marks_in_words(const std::string& message);

}  // namespace catenary_torch
