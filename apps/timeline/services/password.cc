#include "services/password.h"

#include <sodium.h>

#include <cstring>
#include <semaphore>

namespace timeline {
namespace {

constexpr int kAtOnce = 4;
std::counting_semaphore<kAtOnce> turns(kAtOnce);

class Turn {
 public:
  Turn() { turns.acquire(); }
  ~Turn() { turns.release(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
};

std::string Hex(const unsigned char* bytes, std::size_t size) {
  std::string hex(size * 2 + 1, '\0');
  sodium_bin2hex(hex.data(), hex.size(), bytes, size);
  hex.pop_back();
  return hex;
}

}  // namespace

bool PrepareCrypto() { return sodium_init() >= 0; }

std::string HashPassword(const std::string& password) {
  Turn turn;
  char text[crypto_pwhash_STRBYTES];
  if (crypto_pwhash_str_alg(text, password.data(), password.size(),
                            crypto_pwhash_OPSLIMIT_INTERACTIVE, crypto_pwhash_MEMLIMIT_INTERACTIVE,
                            crypto_pwhash_ALG_ARGON2ID13) != 0) {
    return "";
  }
  return text;
}

bool CheckPassword(const std::string& stored, const std::string& password) {
  Turn turn;
  char text[crypto_pwhash_STRBYTES] = {};
  if (stored.size() >= sizeof(text)) return false;
  std::memcpy(text, stored.data(), stored.size());
  return crypto_pwhash_str_verify(text, password.data(), password.size()) == 0;
}

std::string RandomToken() {
  unsigned char bytes[32];
  randombytes_buf(bytes, sizeof(bytes));
  return Hex(bytes, sizeof(bytes));
}

std::string HashToken(const std::string& token) { return KeyedHash("", token); }

std::string KeyedHash(const std::string& secret, const std::string& text) {
  unsigned char hash[32];
  auto size = std::min<std::size_t>(secret.size(), crypto_generichash_KEYBYTES_MAX);
  crypto_generichash(hash, sizeof(hash), reinterpret_cast<const unsigned char*>(text.data()),
                     text.size(), reinterpret_cast<const unsigned char*>(secret.data()), size);
  return Hex(hash, sizeof(hash));
}

bool SameText(const std::string& a, const std::string& b) {
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace timeline
