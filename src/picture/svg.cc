#include "src/picture/svg.h"

#include "src/base/error.h"

namespace catenary::picture {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string number(double value) {
  std::string text = format("%.1f", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string coordinates(Point point) { return number(point.x) + " " + number(point.y); }

void Svg::rect(const Box& box, std::string_view attributes) {
  body_ += "<rect x=\"" + number(box.x) + "\" y=\"" + number(box.y) + "\" width=\"" +
           number(box.width) + "\" height=\"" + number(box.height) + "\"";
  body_ += attributes;
  body_ += "/>\n";
}

void Svg::line(Point from, Point to, std::string_view attributes) {
  path("M" + coordinates(from) + "L" + coordinates(to), attributes);
}

void Svg::path(std::string_view data, std::string_view attributes) {
  body_ += "<path d=\"";
  body_ += data;
  body_ += "\"";
  body_ += attributes;
  body_ += "/>\n";
}

void Svg::text(Point at, std::string_view attributes, std::string_view text) {
  body_ += "<text x=\"" + number(at.x) + "\" y=\"" + number(at.y) + "\"";
  body_ += attributes;
  body_ += ">" + escaped(text) + "</text>\n";
}

void Svg::open(std::string_view attributes, std::string_view tooltip) {
  body_ += "<g";
  body_ += attributes;
  body_ += ">";
  if (!tooltip.empty()) body_ += "<title>" + escaped(tooltip) + "</title>";
  body_ += "\n";
}

void Svg::close() { body_ += "</g>\n"; }

std::string Svg::finish(double width, double height, std::string_view title,
                        std::string_view description, std::string_view style) const {
  const std::string w = number(width);
  const std::string h = number(height);
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
         "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" +
         w + "\" height=\"" + h + "\" viewBox=\"0 0 " + w + " " + h + "\" role=\"img\">\n<title>" +
         escaped(title) + "</title>\n<desc>" + escaped(description) + "</desc>\n<style>\n" +
         std::string(style) + "</style>\n<rect width=\"" + w + "\" height=\"" + h +
         "\" fill=\"#fff\"/>\n" + body_ + "</svg>\n";
}

}  // namespace catenary::picture
