#include "config/write_members.hpp"

#include <utility>

#include "http/problem.hpp"

namespace latchkey::config {
namespace {

class Writer final : public Members {
 public:
  explicit Writer(std::string& out) : out_(out) { out_ += '{'; }

  void value(Value value) override {
    if (!value.is_set()) return;
    name(value.info.name);
    value.write(out_);
  }

  void object(Object object) override {
    if (!object.is_set()) return;
    name(object.info.name);
    out_ += write_members(object.describe);
  }

  void collection(Collection collection) override {
    if (!collection.each) return;
    const bool is_list = collection.shape == Collection::Shape::list;
    std::string text;
    bool first = true;
    collection.each([&](const std::string& element, const Describe& describe) {
      if (!std::exchange(first, false)) text += ',';
      if (!is_list) {
        http::append_json_string(text, element);
        text += ':';
      }
      text += write_members(describe);
    });
    if (first) return;
    name(collection.info.name);
    out_ += is_list ? '[' : '{';
    out_ += text;
    out_ += is_list ? ']' : '}';
  }

  void end() { out_ += '}'; }

 private:
  void name(std::string_view name) {
    if (!std::exchange(first_, false)) out_ += ',';
    http::append_json_string(out_, name);
    out_ += ':';
  }

  std::string& out_;
  bool first_ = true;
};

}  // namespace

std::string write_members(const Describe& describe) {
  std::string out;
  Writer writer(out);
  describe(writer);
  writer.end();
  return out;
}

}  // namespace latchkey::config
