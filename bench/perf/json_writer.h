// JsonWriter: builds one JSON text, front to back. The caller keeps to the order key, value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace catenary::perf {

class JsonWriter {
 public:
  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  void key(std::string_view name);

  void string(std::string_view text);
  void integer(std::int64_t value);
  // Infinities and NaN, which JSON does not know, become null.
  void number(double value);
  void null();

  const std::string& text() const { return text_; }

 private:
  void open(char bracket);
  void close(char bracket);
  void separate();
  void quote(std::string_view text);

  std::string text_;
  bool first_ = true;       // nothing yet in the innermost object or array
  bool after_key_ = false;  // what comes now is a key's value
};

}  // namespace catenary::perf
