// `latchkey serve` as a service: its start, its refusals to start, and its end.
#include <signal.h>
#include <sys/stat.h>

#include "cli/cli_fixture.hpp"
#include "support/raw_client.hpp"

namespace latchkey {
namespace {

using latchkey::testing::RawClient;

class Serve : public CliTest {
 protected:
  // Returns after the server has printed its address, which goes to `url_` and `port_`.
  std::unique_ptr<Process> serve() {
    auto server = start({"serve", "--listen", "127.0.0.1:0"});
    const std::string line = server->read_line();
    url_ = line.substr(line.find("http://"));
    port_ = static_cast<std::uint16_t>(std::stoi(url_.substr(url_.rfind(':') + 1)));
    return server;
  }
  // Sends a request except for its last byte; the server has already read its head.
  void send_halfway(RawClient& client) const {
    client.send("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
    ASSERT_THAT(client.read_response(), HasSubstr("200 OK"));
    std::string token = read("data/admin.key");
    token.pop_back();
    client.send("POST /v1/runs HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nAuthorization: Bearer " +
                token + "\r\nContent-Length: 32\r\nExpect: 100-continue\r\n\r\n");
    ASSERT_THAT(client.read_response(false), HasSubstr("100 Continue")) << "the head was read";
    client.send(R"({"function":"f","key":"stored"})");
  }
  // The server refuses connections, or closes them without a reply.
  bool is_closed() const {
    RawClient client(port_);
    if (!client.is_connected()) return true;
    client.send("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
    return client.read_response().empty();
  }

  std::string url_;
  std::uint16_t port_ = 0;
};

TEST_F(Serve, StopFinishesRequestsInFlight) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    auto server = serve();
    RawClient client(port_);
    send_halfway(client);
    server->signal(signal);
    while (!is_closed()) {
    }
    client.send(" ");
    EXPECT_THAT(client.read_all(), ::testing::AnyOf(HasSubstr("201 Created"), HasSubstr("409 Conflict")));
    client.close();
    EXPECT_EQ(server->finish(), 0) << server->err;
    EXPECT_THAT(server->err, HasSubstr("stopped by signal " + std::to_string(signal)));
  }
  EXPECT_THAT(call({"runs", "list"}).out, HasSubstr(" stored ")) << "an acknowledged claim is in the store";
}

TEST_F(Serve, SecondSignalEndsItAtOnce) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    auto server = serve();
    RawClient client(port_);
    send_halfway(client);
    server->signal(SIGTERM);
    while (!is_closed()) {
    }
    server->signal(signal);
    EXPECT_EQ(server->finish(), 128 + signal);
  }
  EXPECT_EQ(call(run("a", "echo on")).out, "on\n") << "the store is intact, as after any crash";
}

TEST_F(Serve, ServerUnderNohupIgnoresHangup) {
  auto server =
      start_program({"/bin/sh", "-c", "trap '' HUP; exec \"$0\" serve --listen 127.0.0.1:0", LATCHKEY_BINARY});
  const std::string line = server->read_line();
  port_ = static_cast<std::uint16_t>(std::stoi(line.substr(line.rfind(':') + 1)));
  server->signal(SIGHUP);
  RawClient client(port_);
  client.send("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(client.read_response(), HasSubstr("200 OK"));
  server->signal(SIGTERM);
  EXPECT_EQ(server->finish(), 0);
  EXPECT_THAT(server->err, HasSubstr("stopped by signal 15"));
}

TEST_F(Serve, SecondServerOnTheSameFileIsRefused) {
  auto server = serve();
  const Answer second = call({"serve", "--listen", "127.0.0.1:0"});
  EXPECT_EQ(second.exit, 75);
  EXPECT_EQ(second.err, "latchkey: STORE_LOCKED: the server at " + url_ + " owns " + file("data/latchkey.db") + "\n");
  EXPECT_EQ(second.out, "");
}

TEST_F(Serve, RemovedLockFileDoesNotUnlockTheStore) {
  auto server = serve();
  ASSERT_EQ(::unlink(file("data/latchkey.db.lock").c_str()), 0);
  const Answer second = call({"serve", "--listen", "127.0.0.1:0"});
  EXPECT_EQ(second.exit, 75) << second.err;
  EXPECT_THAT(second.err, HasSubstr("STORE_LOCKED: the server at " + url_ + " owns "));
  ASSERT_EQ(::unlink(file("data/latchkey.db.lock").c_str()), 0);
  const Answer beside = call(run("a", "echo through"));
  EXPECT_EQ(beside.out, "through\n") << beside.err;
  EXPECT_EQ(call(run("a", "echo other", {"--server", url_, "--quiet"})).out, "through\n") << "it went to the server";
  server->signal(SIGTERM);
  EXPECT_EQ(server->finish(), 0);
  EXPECT_EQ(call(run("a", "echo other", {"--quiet"})).out, "through\n");
}

TEST_F(Serve, StoreMayBeInAnotherFolder) {
  const std::string elsewhere = file("elsewhere.db");
  auto server = start({"serve", "--listen", "127.0.0.1:0", "--store", "sqlite:" + elsewhere});
  const std::string line = server->read_line();
  EXPECT_THAT(server->read_line(), HasSubstr(elsewhere));
  EXPECT_EQ(call(run("a", "echo hi", {"--server", line.substr(line.find("http://"))})).out, "hi\n");
  server->signal(SIGTERM);
  EXPECT_EQ(server->finish(), 0);
  EXPECT_TRUE(std::ifstream(elsewhere).good());
  EXPECT_FALSE(std::ifstream(file("data/latchkey.db")).good());
  for (const char* store : {"sqlite:", "mysql://localhost/x"}) {
    const Answer refused = call({"serve", "--listen", "127.0.0.1:0", "--store", store});
    EXPECT_EQ(refused.exit, 2) << store;
    EXPECT_THAT(refused.err, HasSubstr("is neither sqlite:FILE nor postgres://"));
  }
  EXPECT_EQ(call({"serve", "--retention", "soon"}).exit, 2);
}

// A mistyped PostgreSQL URL must not become a file name, and its password must not be printed.
TEST_F(Serve, InvalidStoreIsRefusedAndCreatesNothing) {
  for (const char* store : {"", " ", "host=127.0.0.1 dbname=app password=Sesame", " dbname = Sesame", "postgres:Sesame",
                            "PostgreSQL://Sesame/app", "postgresql+psycopg://u:Sesame@h/app", "sqlite:"}) {
    const Answer refused = call({"serve", "--listen", "127.0.0.1:0", "--store", store});
    EXPECT_EQ(refused.exit, 2) << store;
    EXPECT_THAT(refused.err, HasSubstr("latchkey: USAGE: the store '")) << store;
    EXPECT_THAT(refused.err, HasSubstr("--store postgres://USER@HOST/DATABASE")) << store;
    EXPECT_THAT(refused.err, Not(HasSubstr("Sesame")));
  }
  environment_ = {"LATCHKEY_STORE="};
  EXPECT_EQ(call({"serve", "--listen", "127.0.0.1:0"}).exit, 2);
  environment_ = {"LATCHKEY_STORE=host=127.0.0.1"};
  EXPECT_EQ(call({"serve", "--listen", "127.0.0.1:0"}).exit, 2);
  EXPECT_FALSE(std::filesystem::exists(data_dir_));
  for (const std::string& store : {file("a=b.db"), "sqlite:" + file("host=x"), file("it's 7:30.db")}) {
    auto server = start({"serve", "--listen", "127.0.0.1:0", "--store", store});
    EXPECT_THAT(server->read_line(), HasSubstr("http://")) << store;
    server->signal(SIGTERM);
    EXPECT_EQ(server->finish(), 0);
  }
}

TEST_F(Serve, RemovedStoreFileStopsWrites) {
  auto server = serve();
  ASSERT_EQ(call(run("stored", "echo out")).exit, 0);
  const auto readiness = [&] {
    RawClient client(port_);
    client.send("GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n");
    return client.read_response();
  };
  const auto claim = [&] {
    RawClient client(port_);
    std::string token = read("data/admin.key");
    token.pop_back();
    client.send("POST /v1/runs HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nAuthorization: Bearer " +
                token + "\r\nContent-Length: 28\r\n\r\n" + R"({"function":"f","key":"new"})");
    return client.read_response();
  };
  EXPECT_THAT(readiness(), HasSubstr("200 OK"));
  ASSERT_EQ(::rename(file("data/latchkey.db").c_str(), file("moved").c_str()), 0);
  EXPECT_THAT(claim(), ::testing::AllOf(HasSubstr("503 "), HasSubstr("STORE_UNAVAILABLE"), HasSubstr("was removed")));
  EXPECT_THAT(readiness(), ::testing::AllOf(HasSubstr("503 "), HasSubstr("STORE_UNAVAILABLE")));
  ASSERT_EQ(::rename(file("moved").c_str(), file("data/latchkey.db").c_str()), 0);
  while (readiness().find("200 OK") == std::string::npos) {
  }
  EXPECT_THAT(claim(), HasSubstr("201 Created"));
  server->signal(SIGTERM);
  EXPECT_EQ(server->finish(), 0);
  EXPECT_THAT(server->err, HasSubstr("was removed; changes are refused until it is put back"));
  EXPECT_EQ(call(run("stored", "echo other", {"--quiet"})).out, "out\n");
}

TEST_F(Serve, TruncatedStoreIsNotTakenForANewOne) {
  ASSERT_EQ(call(run("stored", "echo out")).exit, 0);
  ASSERT_EQ(::truncate(file("data/latchkey.db").c_str(), 0), 0);
  const Answer refused = call({"serve", "--listen", "127.0.0.1:0"});
  EXPECT_EQ(refused.exit, 69);
  EXPECT_THAT(refused.err, HasSubstr("STORE_FORMAT: " + file("data/latchkey.db") + " was a store and is empty now"));
  EXPECT_EQ(call(run("stored", "echo ran")).exit, 69) << "also by a command";
}

TEST_F(Serve, InvalidOrReadableAdminKeyIsReported) {
  {
    auto server = serve();
    const std::string id = read("data/admin.key").substr(3, 16);
    const Answer revoked = call({"token", "revoke", id});
    EXPECT_EQ(revoked.exit, 0) << revoked.err;
    EXPECT_THAT(revoked.err, HasSubstr("that was the last admin token"));
    server->signal(SIGTERM);
    EXPECT_EQ(server->finish(), 0);
    EXPECT_THAT(server->err, Not(HasSubstr("chmod")));
  }
  ASSERT_EQ(::chmod(file("data/admin.key").c_str(), 0644), 0);
  auto server = serve();
  server->signal(SIGTERM);
  EXPECT_EQ(server->finish(), 0);
  EXPECT_THAT(server->err, HasSubstr("holds a token that is not valid; move it away and start again"));
  EXPECT_THAT(server->err, HasSubstr("admin.key has mode 0644: others can read it"));
  std::ofstream(file("data/admin.key")).flush();
  const Answer empty = call({"serve", "--listen", "127.0.0.1:0"});
  EXPECT_EQ(empty.exit, 69);
  EXPECT_EQ(empty.err, "latchkey: STORE_FORMAT: " + file("data/admin.key") +
                           " holds no token; move it away and a new one is made\n");
}

TEST_F(Serve, PortInUseIsReported) {
  auto server = serve();
  const std::string at = url_.substr(7);
  const Answer second = call({"serve", "--listen", at, "--data-dir", file("other")});
  EXPECT_EQ(second.exit, 69);
  EXPECT_THAT(second.err, HasSubstr("latchkey: LISTEN_FAILED: " + at + ": cannot listen: Address already in use\n"));
}

TEST_F(Serve, FileThatIsNoStoreIsReported) {
  ASSERT_EQ(::mkdir(file("data").c_str(), 0700), 0);
  const std::string garbage(8192, 'x');
  std::ofstream(file("data/latchkey.db")) << garbage;
  const Answer refused = call({"serve", "--listen", "127.0.0.1:0"});
  EXPECT_EQ(refused.exit, 69);
  EXPECT_THAT(refused.err, HasSubstr("latchkey: STORE_FORMAT: "));
  EXPECT_EQ(read("data/latchkey.db"), garbage) << "the file is not changed";
  EXPECT_EQ(call(run("a", "echo ran")).exit, 69);
}

TEST_F(Serve, GarbledAdminKeyIsReportedAndNotChanged) {
  ASSERT_EQ(::mkdir(file("data").c_str(), 0700), 0);
  std::ofstream(file("data/admin.key")) << "garbled\n";
  const Answer refused = call({"serve", "--listen", "127.0.0.1:0"});
  EXPECT_EQ(refused.exit, 69);
  EXPECT_EQ(refused.err, "latchkey: STORE_FORMAT: " + file("data/admin.key") +
                             " holds no token; move it away and a new one is made\n");
  EXPECT_EQ(read("data/admin.key"), "garbled\n");
}

TEST_F(Serve, InvalidAddressIsAUsageError) {
  EXPECT_EQ(call({"serve", "--listen", "somewhere"}).exit, 2);
  const Answer open = call({"serve", "--listen", "0.0.0.0:0"});
  EXPECT_EQ(open.exit, 2);
  EXPECT_THAT(open.err, HasSubstr("--insecure-listen"));
}

TEST_F(Serve, UncreatableDataDirectoryIsReported) {
  std::ofstream(file("data")) << "a file";
  const Answer refused = call({"serve", "--listen", "127.0.0.1:0"});
  EXPECT_EQ(refused.exit, 69);
  EXPECT_THAT(refused.err, HasSubstr("latchkey: STORE_UNAVAILABLE: cannot create the data directory "));
}

}  // namespace
}  // namespace latchkey
