#include "bench/perf/json_writer.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace catenary::perf {

void JsonWriter::separate() {
  if (!after_key_ && !first_) text_ += ',';
  after_key_ = false;
  first_ = false;
}

void JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  first_ = true;
}

void JsonWriter::close(char bracket) {
  text_ += bracket;
  first_ = false;
}

void JsonWriter::key(std::string_view name) {
  separate();
  quote(name);
  text_ += ':';
  after_key_ = true;
}

void JsonWriter::string(std::string_view text) {
  separate();
  quote(text);
}

void JsonWriter::integer(std::int64_t value) {
  separate();
  text_ += std::to_string(value);
}

void JsonWriter::number(double value) {
  if (!std::isfinite(value)) return null();
  separate();
  std::array<char, 40> digits;
  std::snprintf(digits.data(), digits.size(), "%.9g", value);
  text_ += digits.data();
}

void JsonWriter::null() {
  separate();
  text_ += "null";
}

void JsonWriter::quote(std::string_view text) {
  text_ += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> escaped;
      std::snprintf(escaped.data(), escaped.size(), "\\u%04x", static_cast<unsigned char>(c));
      text_ += escaped.data();
    } else {
      text_ += c;
    }
  }
  text_ += '"';
}

}  // namespace catenary::perf
