// How fast a request is fingerprinted: canonical JSON and SHA-256, one thread, median of the rounds.
// Prints one JSON object. The documents: 20 unsorted members per object, depth 3, a third of the values numbers and
// half of those fractions (of which every fourth has a double's full precision), a tenth of the texts not ASCII.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "keying/canonical_json.hpp"

namespace latchkey {
namespace {

constexpr int MEMBERS = 20;

class Documents {
 public:
  // An object of 20 members, of which `children[0]` are objects made from the rest of `children`.
  std::string make_object(std::vector<int> children, std::size_t text_size) {
    std::vector<std::string> members;
    const int nested = children.empty() ? 0 : children.front();
    if (!children.empty()) children.erase(children.begin());
    for (int i = 0; i < MEMBERS; ++i)
      members.push_back(fmt::format("\"{}{}\":{}", make_word(3 + random_.below(6)), i,
                                    i < nested ? make_object(children, text_size) : make_scalar(text_size)));
    for (std::size_t i = members.size(); i > 1; --i) std::swap(members[i - 1], members[random_.below(i)]);
    return fmt::format("{{{}}}", fmt::join(members, ","));
  }

 private:
  std::string make_word(std::size_t size) {
    std::string word;
    while (word.size() < size) word += static_cast<char>('a' + random_.below(26));
    return word;
  }

  std::string make_scalar(std::size_t text_size) {
    if (random_.below(3) == 0) return make_number();
    if (random_.one_in(20)) return random_.one_in(2) ? "true" : "null";
    std::string text = make_word(1 + random_.below(2 * text_size));
    if (random_.one_in(10)) text += "æøå 東京";
    return '"' + text + '"';
  }

  std::string make_number() {
    if (random_.one_in(2)) return fmt::format("{}", random_.below(1'000'000));
    if (random_.one_in(4)) return fmt::format("{}", static_cast<double>(random_.next() >> 11) * 0x1p-53);
    return fmt::format("{:.2f}", static_cast<double>(random_.below(1'000'000)) / 100);
  }

  SeededRandom random_{42};
};

double measure_mb_per_s(const std::vector<std::string>& documents) {
  SystemClock clock;
  constexpr int ROUNDS = 15;
  constexpr Duration ROUND{100};
  std::vector<double> rates;
  for (int round = 0; round < ROUNDS; ++round) {
    std::size_t bytes = 0;
    const Duration start = clock.elapsed();
    Duration spent{};
    for (; spent < ROUND; spent = clock.elapsed() - start)
      for (const std::string& document : documents) {
        LK_ASSERT(compute_fingerprint(document).has_value());
        bytes += document.size();
      }
    rates.push_back(static_cast<double>(bytes) / 1e3 / static_cast<double>(spent.count()));
  }
  std::ranges::nth_element(rates, rates.begin() + ROUNDS / 2);
  return rates[ROUNDS / 2];
}

}  // namespace
}  // namespace latchkey

int main() {
  using namespace latchkey;
  Documents documents;
  std::vector<std::string> small, large;
  // One child per object on the way down: 60 members, 1.1 KB. Then 20 children with 12 each: 106 KB.
  for (int i = 0; i < 1000; ++i) small.push_back(documents.make_object({1, 1}, 4));
  for (int i = 0; i < 10; ++i) large.push_back(documents.make_object({20, 12}, 7));
  fmt::print("{{\"canonical_sha256_1k_mb_s\":{:.1f},\"canonical_sha256_100k_mb_s\":{:.1f}}}\n", measure_mb_per_s(small),
             measure_mb_per_s(large));
}
