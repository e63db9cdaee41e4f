// https://, against a server with a certificate that the test makes.
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>
#include <memory>

#include "http/outgoing_fixture.hpp"
#include "support/folder.hpp"

namespace latchkey::http {
namespace {

template <class T, void (*Free)(T*)>
struct Freer {
  void operator()(T* owned) const { Free(owned); }
};
template <class T, void (*Free)(T*)>
using Owned = std::unique_ptr<T, Freer<T, Free>>;

class OutgoingTls : public OutgoingTest {
 protected:
  OutgoingTls() : key_(EVP_EC_gen("P-256")), certificate_(X509_new()), context_(SSL_CTX_new(TLS_server_method())) {
    X509* const made = certificate_.get();
    X509_set_version(made, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made), 1);
    X509_gmtime_adj(X509_getm_notBefore(made), -3600);
    X509_gmtime_adj(X509_getm_notAfter(made), 3600);
    X509_set_pubkey(made, key_.get());
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
    X509_set_issuer_name(made, X509_get_subject_name(made));
    const Owned<X509_EXTENSION, X509_EXTENSION_free> name(
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1"));
    X509_add_ext(made, name.get(), -1);
    EXPECT_GT(X509_sign(made, key_.get(), EVP_sha256()), 0);
    SSL_CTX_use_certificate(context_.get(), made);
    SSL_CTX_use_PrivateKey(context_.get(), key_.get());
  }

  std::string ca_file() const {
    const std::string path = folder_.file("ca.pem");
    const std::unique_ptr<FILE, decltype(&std::fclose)> file(std::fopen(path.c_str(), "w"), std::fclose);
    PEM_write_X509(file.get(), certificate_.get());
    return path;
  }
  std::string https_url() const { return "https://127.0.0.1:" + std::to_string(listener_.port()) + "/"; }

  using Tls = Owned<SSL, SSL_free>;
  Tls shake_hands(const RawPeer& peer) const {
    Tls tls(SSL_new(context_.get()));
    SSL_set_fd(tls.get(), peer.socket());
    SSL_accept(tls.get());
    return tls;
  }
  static std::string read(const Tls& tls) {
    std::array<char, 4096> bytes{};
    const int count = SSL_read(tls.get(), bytes.data(), bytes.size());
    return {bytes.data(), static_cast<std::size_t>(std::max(count, 0))};
  }
  static void respond(const Tls& tls) {
    const std::string_view response = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    SSL_write(tls.get(), response.data(), static_cast<int>(response.size()));
  }

  const Folder folder_;
  const Owned<EVP_PKEY, EVP_PKEY_free> key_;
  const Owned<X509, X509_free> certificate_;
  const Owned<SSL_CTX, SSL_CTX_free> context_;
  const RawListener listener_;
};

TEST_F(OutgoingTls, CallsServerOfTheCaFile) {
  use({.ca_file = ca_file()});
  auto first = begin({.url = https_url()});
  const RawPeer peer = listener_.accept();
  const Tls tls = shake_hands(peer);
  EXPECT_TRUE(read(tls).starts_with("POST / HTTP/1.1"));
  respond(tls);
  EXPECT_EQ(to_text(first.get()), "200 ok");
  auto second = begin({.url = https_url()});
  EXPECT_TRUE(read(tls).starts_with("POST / HTTP/1.1"));
  respond(tls);
  EXPECT_EQ(to_text(second.get()), "200 ok");
  EXPECT_FALSE(listener_.has_connection());
}

TEST_F(OutgoingTls, UntrustedCertificateIsNotSent) {
  auto result = begin({.url = https_url()});
  const RawPeer peer = listener_.accept();
  const Tls tls = shake_hands(peer);
  EXPECT_EQ(to_kind(result.get()), "NotSent tls");
  EXPECT_EQ(read(tls), "");
}

TEST_F(OutgoingTls, FailedHandshakeIsNotSent) {
  auto result = begin({.url = https_url()});
  RawPeer peer = listener_.accept();
  peer.send("HTTP/1.1 400 Bad Request\r\n\r\n");
  EXPECT_EQ(to_kind(result.get()), "NotSent tls");
}

TEST_F(OutgoingTls, ClosedIdleConnectionIsReplaced) {
  use({.ca_file = ca_file()});
  auto first = begin({.url = https_url()});
  {
    const RawPeer peer = listener_.accept();
    const Tls tls = shake_hands(peer);
    read(tls);
    respond(tls);
    EXPECT_EQ(to_text(first.get()), "200 ok");
    SSL_shutdown(tls.get());
  }
  auto second = begin({.url = https_url()});
  const RawPeer peer = listener_.accept();
  const Tls tls = shake_hands(peer);
  EXPECT_TRUE(read(tls).starts_with("POST / HTTP/1.1"));
  respond(tls);
  EXPECT_EQ(to_text(second.get()), "200 ok");
}

TEST_F(OutgoingTls, CloseBeforeResponseIsUnknown) {
  use({.ca_file = ca_file()});
  auto first = begin({.url = https_url()});
  RawPeer peer = listener_.accept();
  Tls tls = shake_hands(peer);
  read(tls);
  respond(tls);
  EXPECT_EQ(to_text(first.get()), "200 ok");
  auto second = begin({.url = https_url()});
  EXPECT_TRUE(read(tls).starts_with("POST / HTTP/1.1"));
  SSL_shutdown(tls.get());
  peer.close();
  EXPECT_EQ(to_kind(second.get()), "Unknown connection_closed");
  EXPECT_FALSE(listener_.has_connection());
}

}  // namespace
}  // namespace latchkey::http
