#include "client/embedded_claims.hpp"

#include "client/remote_claims.hpp"
#include "engine/suppressions.hpp"

namespace latchkey {
namespace {

constexpr std::uint32_t kSlice = 100;

}  // namespace

template <class T, class Locally, class Remotely>
Result<T> EmbeddedClaims::decide(Locally locally, Remotely remotely) {
  Result<T> reply = fail(Code::INTERNAL, "not asked");
  const auto owner = store_.use([&](Store& store) { reply = locally(store); });
  if (!owner) return std::unexpected(owner.error());
  if (!*owner && !reply) return std::unexpected(store_.explain(reply.error()));
  if (!*owner) return reply;
  auto server = RemoteServer::at(**owner, login_, clock_);
  if (!server) return std::unexpected(server.error());
  RemoteClaims claims(*std::move(server));
  return remotely(claims);
}

// Errors are passed over: the next claim tends again.
void EmbeddedClaims::tend(Store& store, const ClaimReply& reply, const std::string& caller) {
  const auto suppressed = counted_ ? std::nullopt : find_suppressed(reply);
  if (suppressed) {
    counted_ = true;
    Suppressions seen;
    seen.note(suppressed->run, suppressed->reason, caller, store.now());
    (void)wait_for<std::monostate>([&](auto done) { store.note_duplicates(seen.drain(), std::move(done)); });
  }
  if (!std::holds_alternative<Won>(reply)) return;
  (void)wait_for<Swept>([&](auto done) { store.sweep(kSlice, std::move(done)); });
  (void)wait_for<Swept>([&](auto done) { store.purge(retention_, kSlice, std::move(done)); });
}

Result<ClaimReply> EmbeddedClaims::claim(const ClaimRequest& request) {
  return decide<ClaimReply>(
      [&](Store& store) {
        auto reply = wait_for<ClaimReply>([&](auto done) { store.claim(request, std::move(done)); });
        if (reply) tend(store, *reply, request.caller);
        return reply;
      },
      [&](RemoteClaims& server) { return server.claim(request); });
}

Result<std::vector<ExtendReply>> EmbeddedClaims::extend(const std::vector<ExtendRequest>& requests) {
  using Replies = std::vector<ExtendReply>;
  return decide<Replies>(
      [&](Store& store) { return wait_for<Replies>([&](auto done) { store.extend(requests, std::move(done)); }); },
      [&](RemoteClaims& server) { return server.extend(requests); });
}

Result<std::vector<SettleReply>> EmbeddedClaims::settle(const std::vector<SettleRequest>& requests) {
  using Replies = std::vector<SettleReply>;
  return decide<Replies>(
      [&](Store& store) { return wait_for<Replies>([&](auto done) { store.settle(requests, std::move(done)); }); },
      [&](RemoteClaims& server) { return server.settle(requests); });
}

}  // namespace latchkey
