// A tenant cannot read or change another tenant's runs, and cannot find out that they exist.
#include "conformance/store_test.hpp"

namespace latchkey {
namespace {

class Tenants : public StoreTest {
 protected:
  Won acme = win(a_claim("k", "acme"));
};
LK_CONFORMANCE(Tenants);

TEST_P(Tenants, TheSameKeyInTwoTenantsHasNoContact) {
  const Won globex = win(a_claim("k", "globex"));
  EXPECT_NE(globex.run.id(), acme.run.id());
  end(acme, Complete{"acme's", {}});
  EXPECT_TRUE(std::holds_alternative<Busy>(verbs().claim(a_claim("k", "globex"))));
  end(globex, Complete{"globex's", {}});
  EXPECT_EQ(std::get<Replay>(verbs().claim(a_claim("k", "globex"))).run.as<Completed>()->result, "globex's");
  ClaimRequest other = a_claim("k", "third");
  other.fingerprint = kOther;
  win(other);
}

TEST_P(Tenants, ForeignIdsAreUnknownInEveryVerb) {
  const RunId id = acme.run.id();
  EXPECT_EQ(code_of(verbs().extend({"globex", id, acme.fence, {}})), Code::NOT_FOUND);
  EXPECT_EQ(code_of(verbs().settle({"globex", id, acme.fence, Complete{}})), Code::NOT_FOUND);
  EXPECT_EQ(code_of(verbs().move({"globex", id, CancelByHand{}})), Code::NOT_FOUND);
  EXPECT_FALSE(store().find("globex", id).value());
  EXPECT_TRUE(store().list({.tenant = "globex"}).value().runs.empty());
  EXPECT_FALSE(store().find_latest({"globex", "f", "k", hash_key("globex", "f", "k")}).value());
  EnqueueRequest after = a_job("j", "globex");
  after.after = {id};
  EXPECT_EQ(code_of(verbs().enqueue(after)), Code::PREDECESSOR_UNKNOWN);
  EXPECT_TRUE(same_run(acme.run, find(id)));

  // The same message as for an id that does not exist.
  const auto foreign = std::get<Error>(verbs().settle({"globex", id, acme.fence, Complete{}}));
  EXPECT_EQ(foreign, std::get<Error>(verbs().settle({"globex", id_of(999), acme.fence, Complete{}})));
  EXPECT_EQ(std::get<Error>(verbs().extend({"globex", id, acme.fence, {}})),
            std::get<Error>(verbs().extend({"globex", id_of(999), acme.fence, {}})));
  EXPECT_EQ(std::get<Error>(verbs().move({"globex", id, CancelByHand{}})),
            std::get<Error>(verbs().move({"globex", id_of(999), CancelByHand{}})));
}

TEST_P(Tenants, TheOwnTenantAndNoTenantSeeIt) {
  EXPECT_TRUE(store().find("acme", acme.run.id()).value());
  EXPECT_TRUE(store().find({}, acme.run.id()).value());
  EXPECT_EQ(std::get<Settled>(verbs().settle({"acme", acme.run.id(), acme.fence, Complete{}})).run.status(),
            Status::completed);
}

TEST_P(Tenants, JobsAreTakenByTheirTenantOnly) {
  add(a_job("j", "acme"));
  EXPECT_TRUE(verbs().take({.tenant = "globex", .functions = {"f"}, .limit = 10}).empty());
  EXPECT_EQ(verbs().take({.tenant = "acme", .functions = {"f"}, .limit = 10}).size(), 1u);
}

TEST_P(Tenants, DeadLettersStayInTheirTenant) {
  end(acme, permanent());
  const auto dead_letters = store().list_dead_letters({.tenant = "acme"}).value().entries;
  ASSERT_EQ(dead_letters.size(), 1u);
  EXPECT_TRUE(store().list_dead_letters({.tenant = "globex"}).value().entries.empty());
  EXPECT_FALSE(store().find_dead_letter("globex", dead_letters[0].id).value());
  EXPECT_FALSE(store().acknowledge("globex", dead_letters[0].id, "mallory").value());
  EXPECT_FALSE(store().find_dead_letter("acme", dead_letters[0].id).value()->acknowledged_at);
  end(win(a_claim("k", "globex")), permanent());
  EXPECT_EQ(store().list_dead_letters({.tenant = "globex"}).value().entries.size(), 1u);
}

}  // namespace
}  // namespace latchkey
