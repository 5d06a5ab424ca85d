#include "base/ip.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

#include "base/text.h"

namespace sava::base {

namespace {

constexpr std::array<uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

int Bits(const IpAddress& address) { return address.v4 ? 32 : 128; }

// The bits of byte i that belong to the prefix.
uint8_t Mask(int prefix, int i) {
  const int bits = std::clamp(prefix - i * 8, 0, 8);
  return static_cast<uint8_t>(0xff00 >> bits);
}

}  // namespace

bool ParseIp(std::string_view text, IpAddress* out) {
  char copy[INET6_ADDRSTRLEN + 1];
  if (text.empty() || text.size() >= sizeof copy || text.find('\0') != std::string_view::npos) {
    return false;
  }
  memcpy(copy, text.data(), text.size());
  copy[text.size()] = 0;
  IpAddress address;
  if (inet_pton(AF_INET, copy, address.bytes.data()) == 1) {
    address.v4 = true;
  } else if (inet_pton(AF_INET6, copy, address.bytes.data()) != 1) {
    return false;
  } else if (std::equal(kMapped.begin(), kMapped.end(), address.bytes.begin())) {
    address.v4 = true;
    std::copy(address.bytes.begin() + 12, address.bytes.end(), address.bytes.begin());
    std::fill(address.bytes.begin() + 4, address.bytes.end(), uint8_t{0});
  }
  *out = address;
  return true;
}

bool ParsePeer(std::string_view text, IpAddress* out) {
  if (ParseIp(text, out)) return true;
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  text = text.substr(0, colon);
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  return ParseIp(text, out);
}

bool ParseNetwork(std::string_view text, IpNetwork* out) {
  const size_t slash = text.find('/');
  IpNetwork network;
  if (!ParseIp(text.substr(0, slash), &network.address)) return false;
  int64_t prefix = Bits(network.address);
  if (slash != std::string_view::npos) {
    const bool mapped = network.address.v4 && text.substr(0, slash).find(':') != text.npos;
    if (!ParseInt(text.substr(slash + 1), &prefix)) return false;
    if (mapped) prefix -= 96;
    if (prefix < 0 || prefix > Bits(network.address)) return false;
  }
  network.prefix = static_cast<int>(prefix);
  for (int i = 0; i < 16; ++i) {
    uint8_t& byte = network.address.bytes[static_cast<size_t>(i)];
    byte = static_cast<uint8_t>(byte & Mask(network.prefix, i));
  }
  *out = network;
  return true;
}

bool IpNetwork::Contains(const IpAddress& other) const {
  if (other.v4 != address.v4) return false;
  for (int i = 0; i * 8 < prefix; ++i) {
    const auto at = static_cast<size_t>(i);
    if ((other.bytes[at] & Mask(prefix, i)) != address.bytes[at]) return false;
  }
  return true;
}

std::string IpText(const IpAddress& address) {
  char text[INET6_ADDRSTRLEN];
  inet_ntop(address.v4 ? AF_INET : AF_INET6, address.bytes.data(), text, sizeof text);
  return text;
}

std::string NetworkText(const IpNetwork& network) {
  return IpText(network.address) + "/" + IntText(network.prefix);
}

}  // namespace sava::base
