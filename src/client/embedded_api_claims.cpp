#include "client/api_client.hpp"
#include "client/embedded_api.hpp"
#include "engine/suppressions.hpp"

namespace latchkey {
namespace {

constexpr std::uint32_t kSlice = 100;

}  // namespace

template <class T, class OnStore, class OnServer>
Result<T> EmbeddedApi::call_owner(OnStore on_store, OnServer on_server) {
  Result<T> reply = fail(Code::INTERNAL, "the store was not called");
  const auto owner = store_.use([&](Store& store) { reply = on_store(store); });
  if (!owner) return std::unexpected(owner.error());
  if (!*owner && !reply) return std::unexpected(store_.explain(reply.error()));
  if (!*owner) return reply;
  auto server = ApiClient::at(**owner, settings_.login, clock_);
  if (!server) return std::unexpected(server.error());
  return on_server(*server);
}

// Errors are ignored: the next claim repeats the maintenance.
void EmbeddedApi::run_maintenance(Store& store, const ClaimReply& reply, const std::string& caller) {
  const auto suppressed = counted_ ? std::nullopt : find_suppressed(reply);
  if (suppressed) {
    counted_ = true;
    Suppressions seen;
    seen.note(suppressed->run, suppressed->reason, caller, store.now());
    (void)wait_for<std::monostate>([&](auto done) { store.note_duplicates(seen.drain(), std::move(done)); });
  }
  if (!std::holds_alternative<Won>(reply)) return;
  (void)wait_for<Swept>([&](auto done) { store.sweep(kSlice, std::move(done)); });
  (void)wait_for<Swept>([&](auto done) { store.purge(settings_.retention, kSlice, std::move(done)); });
}

Result<ClaimReply> EmbeddedApi::claim(const ClaimRequest& request) {
  return call_owner<ClaimReply>(
      [&](Store& store) {
        auto reply = wait_for<ClaimReply>([&](auto done) { store.claim(request, std::move(done)); });
        if (reply) run_maintenance(store, *reply, request.caller);
        return reply;
      },
      [&](ApiClient& server) { return server.claim(request); });
}

Result<std::vector<ExtendReply>> EmbeddedApi::extend(const std::vector<ExtendRequest>& requests) {
  using Replies = std::vector<ExtendReply>;
  return call_owner<Replies>(
      [&](Store& store) { return wait_for<Replies>([&](auto done) { store.extend(requests, std::move(done)); }); },
      [&](ApiClient& server) { return server.extend(requests); });
}

Result<std::vector<SettleReply>> EmbeddedApi::settle(const std::vector<SettleRequest>& requests) {
  using Replies = std::vector<SettleReply>;
  return call_owner<Replies>(
      [&](Store& store) { return wait_for<Replies>([&](auto done) { store.settle(requests, std::move(done)); }); },
      [&](ApiClient& server) { return server.settle(requests); });
}

}  // namespace latchkey
