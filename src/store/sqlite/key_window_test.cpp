#include "store/sqlite/key_window.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/random.hpp"

namespace latchkey {
namespace {

ShortHash hash_of(std::uint64_t number) {
  SeededRandom random{number};
  ShortHash hash;
  for (auto& byte : hash.bytes) byte = static_cast<unsigned char>(random.next());
  return hash;
}

// The remaining entries of the frozen half, in slices.
std::vector<KeyWindow::Entry> drain(KeyWindow& window, std::size_t most) {
  std::vector<KeyWindow::Entry> all;
  while (window.left() > 0) {
    const auto slice = window.next_slice(most);
    EXPECT_GT(slice.taken, 0u);
    EXPECT_LE(slice.taken, most);
    all.insert(all.end(), slice.entries.begin(), slice.entries.end());
    window.take_slice(slice.taken);
  }
  return all;
}

TEST(KeyWindow, SlicesOfAnySizeHaveAllKeysInOrder) {
  for (const std::size_t most : {1, 7, 100, 5000}) {
    KeyWindow window;
    std::map<ShortHash, Seq> expected;
    for (Seq seq = 1; seq <= 2000; ++seq) {
      window.stage(hash_of(static_cast<std::uint64_t>(seq)), seq);
      expected[hash_of(static_cast<std::uint64_t>(seq))] = seq;
      if (seq % 100 == 0) window.publish();
    }
    window.freeze();
    EXPECT_EQ(drain(window, most), std::vector<KeyWindow::Entry>(expected.begin(), expected.end()));
    EXPECT_EQ(window.find(hash_of(1)), std::nullopt) << "the key is in the file now";
  }
}

TEST(KeyWindow, SliceOfARollbackIsReturnedAgain) {
  KeyWindow window;
  for (Seq seq = 1; seq <= 500; ++seq) window.stage(hash_of(static_cast<std::uint64_t>(seq)), seq);
  window.publish();
  window.freeze();
  const auto slice = window.next_slice(300);
  EXPECT_EQ(window.next_slice(300).entries, slice.entries);
  EXPECT_EQ(drain(window, 100).size(), 500u);
}

TEST(KeyWindow, FreshKeysAreFoundBeforeFrozenOnes) {
  KeyWindow window;
  window.stage(hash_of(1), 10);
  window.stage(hash_of(2), 11);
  window.publish();
  window.freeze();
  window.stage(hash_of(1), 20);
  EXPECT_EQ(window.find(hash_of(1)), 10) << "not durable yet";
  EXPECT_EQ(window.find_staged(hash_of(1)), 20);
  window.publish();
  EXPECT_EQ(window.find(hash_of(1)), 20);
  EXPECT_EQ(window.find(hash_of(2)), 11);
}

TEST(KeyWindow, PurgedKeyIsNotInASlice) {
  KeyWindow window;
  window.stage(hash_of(1), 1);
  window.stage(hash_of(2), 2);
  window.publish();
  window.freeze();
  window.erase(hash_of(1), 9);
  window.erase(hash_of(2), 2);
  EXPECT_EQ(drain(window, 10), (std::vector<KeyWindow::Entry>{{hash_of(1), 1}}));
}

TEST(KeyWindow, KeyReturnedToAnOlderRunStaysWithIt) {
  for (const std::size_t most : {1, 10}) {  // equal entries may be in two slices
    KeyWindow window;
    for (const Seq seq : {5, 7, 5}) {
      window.stage(hash_of(1), seq);
      window.publish();
    }
    window.freeze();
    const auto handed_out = drain(window, most);
    ASSERT_FALSE(handed_out.empty());
    for (const auto& entry : handed_out) EXPECT_EQ(entry, KeyWindow::Entry(hash_of(1), 5));
  }
}

}  // namespace
}  // namespace latchkey
