// IP addresses and networks in CIDR form, of both families. An IPv4 address written as IPv6
// (::ffff:10.0.0.1) is the IPv4 address.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace sava::base {

struct IpAddress {
  bool v4 = false;
  std::array<uint8_t, 16> bytes{};  // the first 4 or all 16, most significant first

  bool operator==(const IpAddress&) const = default;
};

struct IpNetwork {
  IpAddress address;  // zero beyond the prefix
  int prefix = 0;     // bits

  bool operator==(const IpNetwork&) const = default;
  bool Contains(const IpAddress& other) const;
};

// False when the text is no address.
bool ParseIp(std::string_view text, IpAddress* out);
// "10.0.0.1:6379" and "[::1]:6379" as well; the port is left out.
bool ParsePeer(std::string_view text, IpAddress* out);
// "10.0.0.0/8"; without a prefix it is the one address. What lies beyond the prefix is cleared.
bool ParseNetwork(std::string_view text, IpNetwork* out);

std::string IpText(const IpAddress& address);
std::string NetworkText(const IpNetwork& network);

}  // namespace sava::base
