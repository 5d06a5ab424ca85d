// TLS over a pair of sockets: handshakes in pieces, records that a socket takes in part, input that
// OpenSSL holds, and peers that hang up or speak something else.
#include "net/tls_transport.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace sava::net {
namespace {

using Outcome = Transfer::Outcome;

// A folder with a certificate that signs itself.
struct Certificate {
  Certificate() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sava-tls-XXXXXX").string();
    folder = mkdtemp(pattern.data());
    EVP_PKEY* const key = EVP_EC_gen("P-256");
    X509* const made = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(made), 1);
    X509_gmtime_adj(X509_getm_notBefore(made), -3600);
    X509_gmtime_adj(X509_getm_notAfter(made), 3600);
    X509_set_pubkey(made, key);
    X509_NAME* const name = X509_get_subject_name(made);
    const auto* const text = reinterpret_cast<const unsigned char*>("test");
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, text, -1, -1, 0);
    X509_set_issuer_name(made, name);
    X509_sign(made, key, EVP_sha256());
    std::FILE* file = std::fopen(path("cert.pem").c_str(), "w");
    PEM_write_X509(file, made);
    std::fclose(file);
    file = std::fopen(path("key.pem").c_str(), "w");
    PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
    X509_free(made);
    EVP_PKEY_free(key);
  }
  ~Certificate() { std::filesystem::remove_all(folder); }
  Certificate(const Certificate&) = delete;
  Certificate& operator=(const Certificate&) = delete;

  std::string path(const std::string& name) const { return folder + "/" + name; }
  TlsOptions Options() const {
    TlsOptions options;
    options.certificate = path("cert.pem");
    options.key = path("key.pem");
    options.ca_file = path("cert.pem");
    return options;
  }

  std::string folder;
};

std::shared_ptr<const TlsContext> Make(TlsRole role, const TlsOptions& options) {
  auto made = TlsContext::Make(role, options);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error());
  return made.ok() ? *made : nullptr;
}

struct Pair {
  explicit Pair(const TlsOptions& options, PeerCheck check = PeerCheck::kNone, int buffer = 0) {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    for (const int fd : fds) {
      if (buffer > 0) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
    }
    server_context = Make(TlsRole::kServer, options);
    client_context = Make(TlsRole::kClient, options);
    server = std::make_unique<TlsTransport>(fds[0], *server_context, check);
    client = std::make_unique<TlsTransport>(fds[1], *client_context, PeerCheck::kRequired);
  }
  void Shake() const {
    char byte;
    for (int i = 0; i < 20 && (server->Opening() || client->Opening()); ++i) {
      client->Read(&byte, 1);
      server->Read(&byte, 1);
    }
    ASSERT_FALSE(server->Opening());
    ASSERT_FALSE(client->Opening());
    client->Read(&byte, 1);  // tickets
  }

  std::shared_ptr<const TlsContext> server_context;
  std::shared_ptr<const TlsContext> client_context;
  std::unique_ptr<TlsTransport> server;
  std::unique_ptr<TlsTransport> client;
};

Transfer Write(TlsTransport& transport, std::string_view text) {
  const iovec vector{const_cast<char*>(text.data()), text.size()};
  return transport.Writev(&vector, 1);
}

std::string ReadAll(TlsTransport& transport) {
  std::string text;
  char bytes[1000];
  while (true) {
    const Transfer read = transport.Read(bytes, sizeof bytes);
    if (!read.done()) return text;
    text.append(bytes, read.bytes);
  }
}

TEST(TlsTransport, NothingIsSaidBeforeTheHandshakeIsDone) {
  const Certificate certificate;
  const Pair pair(certificate.Options());
  EXPECT_TRUE(pair.server->Opening());
  EXPECT_EQ(pair.server->Interest(EPOLLIN | EPOLLOUT), uint32_t{EPOLLIN});
  EXPECT_EQ(pair.client->Interest(EPOLLIN), uint32_t{EPOLLOUT});
  EXPECT_EQ(Write(*pair.client, "early").outcome, Outcome::kAgain);
  EXPECT_EQ(pair.client->Ready(EPOLLOUT), uint32_t{EPOLLIN});
  pair.Shake();
  EXPECT_EQ(pair.server->Interest(EPOLLIN | EPOLLOUT), uint32_t{EPOLLIN | EPOLLOUT});
  EXPECT_TRUE(Write(*pair.client, "hello").done());
  EXPECT_EQ(ReadAll(*pair.server), "hello");
  EXPECT_TRUE(pair.server->Description().starts_with("TLSv1.3 "));
}

TEST(TlsTransport, WhatOpenSslHoldsIsPending) {
  const Certificate certificate;
  const Pair pair(certificate.Options());
  pair.Shake();
  for (const char* word : {"one", "two", "three"}) EXPECT_TRUE(Write(*pair.client, word).done());
  char bytes[4];
  std::string text;
  for (int i = 0; i < 3; ++i) {
    const Transfer read = pair.server->Read(bytes, sizeof bytes);
    ASSERT_TRUE(read.done());
    text.append(bytes, read.bytes);
    EXPECT_EQ(pair.server->Pending(), i < 2);
  }
  EXPECT_EQ(text, "onetwothree");
  EXPECT_EQ(pair.server->Read(bytes, sizeof bytes).outcome, Outcome::kAgain);
  EXPECT_FALSE(pair.server->Pending());
}

TEST(TlsTransport, RecordsThatTheSocketTakesInPartAreOfferedAgain) {
  const Certificate certificate;
  const Pair pair(certificate.Options(), PeerCheck::kNone, 4096);
  pair.Shake();
  std::string text;
  for (int i = 0; i < 300000; ++i) text += static_cast<char>('a' + i % 23);
  std::string got;
  size_t sent = 0;
  size_t refused = 0;
  size_t step = 1;
  while (sent < text.size()) {
    // In pieces of all sizes, and each time with more of them, as output grows.
    std::vector<iovec> vectors;
    size_t offered = 0;
    for (int i = 0; i < 60 && sent + offered < text.size(); ++i) {
      const size_t size = std::min(text.size() - sent - offered, 1 + step * 37 % 5000);
      vectors.push_back({text.data() + sent + offered, size});
      offered += size;
    }
    const Transfer written = pair.server->Writev(vectors.data(), vectors.size());
    if (written.done()) {
      sent += written.bytes;
      ++step;
      continue;
    }
    ASSERT_EQ(written.outcome, Outcome::kAgain);
    ++refused;
    char bytes[777];
    const Transfer read = pair.client->Read(bytes, sizeof bytes);
    if (read.done()) got.append(bytes, read.bytes);
  }
  got += ReadAll(*pair.client);
  EXPECT_EQ(got, text);
  EXPECT_GT(refused, 10U);
}

// Whoever else uses OpenSSL on this thread may leave errors behind.
TEST(TlsTransport, ErrorsOfOthersAreNotItsOwn) {
  const Certificate certificate;
  const Pair pair(certificate.Options());
  char byte;
  for (int i = 0; i < 20 && (pair.server->Opening() || pair.client->Opening()); ++i) {
    for (TlsTransport* const one : {pair.client.get(), pair.server.get()}) {
      ERR_raise(ERR_LIB_USER, 1);
      EXPECT_EQ(one->Read(&byte, 1).outcome, Outcome::kAgain);
    }
  }
  ASSERT_FALSE(pair.server->Opening());
  pair.client->Read(&byte, 1);  // tickets
  ERR_raise(ERR_LIB_USER, 1);
  EXPECT_EQ(pair.client->Read(&byte, 1).outcome, Outcome::kAgain);
  const std::string large(1 << 20, 'x');
  Transfer written;
  do {
    ERR_raise(ERR_LIB_USER, 1);
    written = Write(*pair.server, large);
  } while (written.done());
  EXPECT_EQ(written.outcome, Outcome::kAgain);
}

TEST(TlsTransport, TheEndOfThePeerIsTheEndOfInput) {
  const Certificate certificate;
  for (const bool says_so : {true, false}) {
    const Pair pair(certificate.Options());
    pair.Shake();
    EXPECT_TRUE(Write(*pair.client, "last").done());
    if (says_so) {
      pair.client->Close();
    } else {
      shutdown(pair.client->fd(), SHUT_WR);
    }
    EXPECT_EQ(ReadAll(*pair.server), "last");
    char byte;
    EXPECT_EQ(pair.server->Read(&byte, 1).outcome, Outcome::kEnd);
  }
}

TEST(TlsTransport, HalfClosedConnectionsStillGetAnswers) {
  const Certificate certificate;
  const Pair pair(certificate.Options());
  pair.Shake();
  EXPECT_TRUE(Write(*pair.client, "question").done());
  pair.client->Shutdown();
  EXPECT_EQ(ReadAll(*pair.server), "question");
  EXPECT_TRUE(Write(*pair.server, "answer").done());
  EXPECT_EQ(ReadAll(*pair.client), "answer");
}

TEST(TlsTransport, WhoSpeaksSomethingElseIsToldApart) {
  const Certificate certificate;
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
  const auto context = Make(TlsRole::kServer, certificate.Options());
  TlsTransport server(fds[0], *context, PeerCheck::kNone);
  ASSERT_EQ(send(fds[1], "PING\r\n", 6, 0), 6);
  char byte;
  EXPECT_EQ(server.Read(&byte, 1).outcome, Outcome::kFailed);
  EXPECT_NE(server.failure().find("error:"), std::string_view::npos) << server.failure();
  EXPECT_TRUE(server.Opening());
  close(fds[1]);
}

TEST(TlsTransport, ClientsWithoutACertificateAreRefusedWhereOneIsRequired) {
  const Certificate certificate;
  TlsOptions bare = certificate.Options();
  bare.certificate.clear();
  for (const PeerCheck check : {PeerCheck::kNone, PeerCheck::kIfShown, PeerCheck::kRequired}) {
    Pair pair(certificate.Options(), check);
    pair.client_context = Make(TlsRole::kClient, bare);
    pair.client = std::make_unique<TlsTransport>(dup(pair.client->fd()), *pair.client_context,
                                                 PeerCheck::kRequired);
    char byte;
    Transfer last;
    for (int i = 0; i < 20 && pair.server->Opening(); ++i) {
      pair.client->Read(&byte, 1);
      last = pair.server->Read(&byte, 1);
      if (last.outcome == Outcome::kFailed) break;
    }
    EXPECT_EQ(last.outcome == Outcome::kFailed, check == PeerCheck::kRequired);
  }
}

TEST(TlsContext, SaysWhatItCouldNotUse) {
  const Certificate certificate;
  const auto error = [](const TlsOptions& options) {
    const auto made = TlsContext::Make(TlsRole::kServer, options);
    return made.ok() ? std::string() : made.error();
  };
  TlsOptions options = certificate.Options();
  EXPECT_EQ(error(options), "");
  options.protocols = "TLSv1.2 TLSv9";
  EXPECT_TRUE(error(options).starts_with("Invalid tls-protocols"));
  options = certificate.Options();
  options.certificate = "/nonexistent";
  EXPECT_TRUE(error(options).starts_with("Failed to load certificate: /nonexistent: "));
  options = certificate.Options();
  options.key = certificate.path("cert.pem");
  EXPECT_TRUE(error(options).starts_with("Failed to load private key: "));
  options = certificate.Options();
  options.ciphers = "NOPE";
  EXPECT_TRUE(error(options).starts_with("Failed to configure ciphers: "));
  options = certificate.Options();
  options.dh_params = certificate.path("cert.pem");
  EXPECT_NE(error(options), "");
}

}  // namespace
}  // namespace sava::net
