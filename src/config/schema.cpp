#include "config/schema.hpp"

#include <utility>
#include <vector>

#include "http/problem.hpp"

namespace latchkey::config {
namespace {

class SchemaWriter final : public Members {
 public:
  void value(Value value) override { add(value.info, value.schema); }

  void object(Object object) override {
    object.begin();
    std::string schema = write_schema(object.describe);
    if (!object.text_schema.empty()) schema = R"({"anyOf":[)" + object.text_schema + "," + schema + "]}";
    add(object.info, schema);
  }

  void collection(Collection collection) override {
    const std::string element = write_schema(collection.add("example"));
    add(collection.info, collection.shape == Collection::Shape::list
                             ? R"({"type":"array","items":)" + element + "}"
                             : R"({"type":["object","null"],"additionalProperties":)" + element + "}");
  }

  std::string finish(std::string_view title) const {
    std::string out = "{";
    if (!title.empty()) {
      out += R"("title":)";
      http::append_json_string(out, title);
      out += ',';
    }
    out += R"("type":"object","additionalProperties":false,"properties":{)" + properties_ + "}";
    if (!required_.empty()) out += R"(,"required":[)" + required_ + "]";
    return out + "}";
  }

 private:
  // The help goes beside the type, so a schema that is not an object with members (true) is wrapped.
  void add(const Info& info, const std::string& schema) {
    if (!properties_.empty()) properties_ += ',';
    http::append_json_string(properties_, info.name);
    properties_ += R"(:{"description":)";
    http::append_json_string(properties_, info.help);
    if (schema.starts_with("{"))
      properties_ += "," + schema.substr(1);
    else
      properties_ += "}";
    if (!info.required) return;
    if (!required_.empty()) required_ += ',';
    http::append_json_string(required_, info.name);
  }

  std::string properties_, required_;
};

}  // namespace

std::string write_schema(const Describe& describe, std::string_view title) {
  SchemaWriter writer;
  describe(writer);
  return writer.finish(title);
}

}  // namespace latchkey::config
