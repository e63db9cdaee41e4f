#include "keying/lock_key.hpp"

#include <gtest/gtest.h>

namespace latchkey {
namespace {

const LockKeyRequest REQUEST{
    .function = "detect-alerts", .tenant = "acme", .grain = {Grain::Unit::DAY}, .at = from_ms(1'770'372'000'000)};

// The key, or the error as text.
std::string render(std::string_view pattern, const LockKeyRequest& request = REQUEST) {
  const auto parsed = LockKeyTemplate::parse(pattern);
  if (!parsed) return to_string(parsed.error());
  const auto key = parsed->render(request);
  return key ? *key : to_string(key.error());
}

LockKeyRequest with_input(std::string_view input) {
  LockKeyRequest request = REQUEST;
  request.input = input;
  return request;
}

// covers: A1
TEST(LockKey, HasTheDocumentedShape) {
  EXPECT_EQ(compute_lock_key(REQUEST), "detect-alerts:acme:2026-02-06");
  LockKeyRequest request = REQUEST;
  request.grain = {Grain::Unit::HOUR};
  EXPECT_EQ(compute_lock_key(request), "detect-alerts:acme:2026-02-06T10Z");
  request.entities = R"({"sku":"SKU001","rule_id":"r123"})";
  const std::string key = compute_lock_key(request).value();
  request.entities = R"({"rule_id":"r123","sku":"SKU001"})";
  EXPECT_EQ(compute_lock_key(request), key);
  EXPECT_EQ(key.size(), std::string_view("detect-alerts:acme:2026-02-06T10Z:a3f2c9e1b4d7").size());
}

// covers: A1
TEST(LockKey, TemplateMayHaveAnyOrder) {
  EXPECT_EQ(render("gen-decision:{tenant}:{input./alertId}:{day}", with_input(R"({"alertId":"a-7"})")),
            "gen-decision:acme:a-7:2026-02-06");
  EXPECT_EQ(render("{month}/{week}/{hour}/{5min}/{grain} {function}"),
            "2026-02/2026-W06/2026-02-06T10Z/2026-02-06T10:00Z/2026-02-06 detect-alerts");
  EXPECT_EQ(render("{{{tenant}}}"), "{acme}");
}

TEST(LockKey, UsesScalarsOfTheInput) {
  const auto request = with_input(R"({"a":{"b/c~d":[10,1.50,true,"\u00e9",1e20,null,{}]},"":1,"twice":1,"twice":2})");
  EXPECT_EQ(render("{input./a/b~1c~0d/0}|{input./a/b~1c~0d/1}|{input./a/b~1c~0d/2}|{input./a/b~1c~0d/3}|{input./a/"
                   "b~1c~0d/4}|{input./}",
                   request),
            "10|1.5|true|é|100000000000000000000|1");
  for (const char* pattern :
       {"{input./a/b~1c~0d/5}", "{input./a/b~1c~0d/6}", "{input./a/b~1c~0d/7}", "{input./a/b~1c~0d/00}", "{input./a}",
        "{input.}", "{input./missing}", "{input./a/b}", "{input./a/b~1c~0d/0/x}", "{input./twice}"})
    EXPECT_TRUE(render(pattern, request).starts_with("INVALID_ARGUMENT")) << pattern << ' ' << render(pattern, request);
}

TEST(LockKey, EscapesTheSeparatorInValues) {
  const char* pattern = "{input./a}:{input./b}";
  EXPECT_EQ(render(pattern, with_input(R"({"a":"x:y","b":"z"})")), "x%3Ay:z");
  EXPECT_EQ(render(pattern, with_input(R"({"a":"x","b":"y:z"})")), "x:y%3Az");
  EXPECT_EQ(render(pattern, with_input(R"({"a":"x%3Ay","b":"z"})")), "x%253Ay:z");
}

TEST(LockKey, RefusesBadTemplates) {
  for (const char* pattern : {"", "{", "}", "{tenant", "tenant}", "{}", "{nope}", "{7min}", "{tenant}{day}",
                              "{input.a}", "{input./~2}", "a\nb", "a\x7f", "a\xC2\x85", "\xFF"})
    EXPECT_EQ(LockKeyTemplate::parse(pattern).error().code, Code::INVALID_ARGUMENT) << pattern;
}

TEST(LockKey, RefusesBadRequests) {
  const auto code = [](const LockKeyRequest& request) {
    return LockKeyTemplate::parse("{function}:{entity}:{input./a}")->render(request).error().code;
  };
  LockKeyRequest good = with_input(R"({"a":"x"})");
  good.entities = "{}";
  ASSERT_EQ(render("{function}:{entity}:{input./a}", good), "detect-alerts:4f53cda18c2b:x");

  const std::string long_name(129, 'x');
  for (const std::string_view tenant : {std::string_view(""), std::string_view("a b"), std::string_view("a:b"),
                                        std::string_view("é"), std::string_view(long_name)}) {
    LockKeyRequest request = good;
    request.tenant = tenant;
    EXPECT_EQ(code(request), Code::INVALID_ARGUMENT) << tenant;
  }
  for (const std::string_view function :
       {std::string_view(""), std::string_view("a\tb"), std::string_view(long_name)}) {
    LockKeyRequest request = good;
    request.function = function;
    EXPECT_EQ(code(request), Code::INVALID_ARGUMENT) << function;
  }
  LockKeyRequest request = good;
  request.time_zone = "Nowhere";
  EXPECT_EQ(code(request), Code::INVALID_ARGUMENT);
  request = good;
  request.entities.reset();
  EXPECT_EQ(code(request), Code::INVALID_ARGUMENT);
  request = good;
  request.entities = "[]";
  EXPECT_EQ(code(request), Code::INVALID_JSON);
  request = good;
  request.input.reset();
  EXPECT_EQ(code(request), Code::INVALID_ARGUMENT);
  EXPECT_EQ(code(with_input("{")),
            Code::INVALID_ARGUMENT);  // the entities are missing, too; the first fault is reported
  request = good;
  request.input = "{";
  EXPECT_EQ(code(request), Code::INVALID_JSON);
  request.input = R"({"a":"x\ny"})";
  EXPECT_EQ(code(request), Code::INVALID_ARGUMENT);
  const std::string long_input = R"({"a":")" + std::string(500, 'x') + "\"}";
  request.input = long_input;
  EXPECT_EQ(code(request), Code::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace latchkey
