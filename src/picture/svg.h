// Text of SVG, piece by piece: shapes, lines of text, groups. Nothing here knows what is drawn.
//
// Values; any thread; nothing fails. Numbers have one decimal, so equal pictures are equal bytes.
#pragma once

#include <string>
#include <string_view>

namespace catenary::picture {

struct Point {
  double x = 0;
  double y = 0;
};

struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

// A text with what XML reserves replaced, for content and attributes.
std::string escaped(std::string_view text);

class Svg {
 public:
  // `attributes` are written as they are: ` fill="#fff"`.
  void rect(const Box& box, std::string_view attributes);
  void line(Point from, Point to, std::string_view attributes);
  void path(std::string_view data, std::string_view attributes);
  void text(Point at, std::string_view attributes, std::string_view text);
  // A group, with what a pointer that rests on it is told; empty for nothing.
  void open(std::string_view attributes, std::string_view tooltip = {});
  void close();

  // The whole picture; `style` is CSS.
  std::string finish(double width, double height, std::string_view title,
                     std::string_view description, std::string_view style) const;

 private:
  std::string body_;
};

// As in attributes: "12" or "12.5", "12.5 7".
std::string number(double value);
std::string coordinates(Point point);

}  // namespace catenary::picture
