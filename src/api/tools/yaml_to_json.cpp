// yaml_to_json IN OUT: a YAML file as JSON, written as C++ string literals, at build time. Plain scalars that are JSON
// literals or numbers stay so; everything else is a string.
#include <yaml-cpp/yaml.h>

#include <fstream>
#include <iostream>
#include <regex>
#include <sstream>

namespace {

void write_string(std::ostream& out, const std::string& text) {
  constexpr char kDigits[] = "0123456789abcdef";
  out << '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out << '\\' << c;
    else if (c == '\n')
      out << "\\n";
    else if (byte < 0x20)
      out << "\\u00" << kDigits[byte >> 4] << kDigits[byte & 15];
    else
      out << c;
  }
  out << '"';
}

bool is_literal(const YAML::Node& node) {
  static const std::regex kLiteral(R"(true|false|null|-?(0|[1-9]\d*)(\.\d+)?)");
  return node.Tag() == "?" && std::regex_match(node.Scalar(), kLiteral);
}

void write(std::ostream& out, const YAML::Node& node) {
  const char* separator = "";
  if (node.IsMap()) {
    out << '{';
    for (const auto& member : node) {
      out << separator;
      write_string(out, member.first.Scalar());
      out << ':';
      write(out, member.second);
      separator = ",";
    }
    out << '}';
  } else if (node.IsSequence()) {
    out << '[';
    for (const auto& item : node) {
      out << separator;
      write(out, item);
      separator = ",";
    }
    out << ']';
  } else if (node.IsNull()) {
    out << "null";
  } else if (is_literal(node)) {
    out << node.Scalar();
  } else {
    write_string(out, node.Scalar());
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) return 2;
  const YAML::Node root = YAML::LoadFile(argv[1]);
  std::ostringstream json;
  write(json, root);
  std::ofstream out(argv[2], std::ios::binary);
  // In pieces: compilers need not take longer literals.
  for (std::size_t at = 0; at < json.view().size(); at += 4096)
    out << "R\"json(" << json.view().substr(at, 4096) << ")json\"\n";
  return out.flush() ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << argv[1] << ": " << error.what() << '\n';
  return 1;
}
