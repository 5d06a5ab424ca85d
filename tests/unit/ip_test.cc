// Addresses and networks of both families.
#include "base/ip.h"

#include <gtest/gtest.h>

namespace sava::base {
namespace {

IpAddress Address(std::string_view text) {
  IpAddress address;
  EXPECT_TRUE(ParsePeer(text, &address)) << text;
  return address;
}

IpNetwork Network(std::string_view text) {
  IpNetwork network;
  EXPECT_TRUE(ParseNetwork(text, &network)) << text;
  return network;
}

TEST(Ip, PeersLoseTheirPort) {
  EXPECT_EQ(IpText(Address("10.1.2.3:6379")), "10.1.2.3");
  EXPECT_EQ(IpText(Address("[::1]:6379")), "::1");
  EXPECT_EQ(IpText(Address("::1")), "::1");
  EXPECT_EQ(IpText(Address("::ffff:10.1.2.3")), "10.1.2.3");
  IpAddress address;
  for (const char* bad : {"", "x", "10.1.2", "10.1.2.3.4", "/tmp/socket:0", ":1", "[::1:1"}) {
    EXPECT_FALSE(ParsePeer(bad, &address)) << bad;
  }
}

TEST(Ip, NetworksHoldTheirAddressesOnly) {
  EXPECT_EQ(NetworkText(Network("10.1.2.3/8")), "10.0.0.0/8");
  EXPECT_EQ(NetworkText(Network("10.1.2.3")), "10.1.2.3/32");
  EXPECT_EQ(NetworkText(Network("2001:db8::1/33")), "2001:db8::/33");
  EXPECT_EQ(NetworkText(Network("::ffff:10.0.0.0/104")), "10.0.0.0/8");
  EXPECT_TRUE(Network("10.0.0.0/8").Contains(Address("10.255.0.1")));
  EXPECT_FALSE(Network("10.0.0.0/8").Contains(Address("11.0.0.1")));
  EXPECT_TRUE(Network("10.0.0.128/25").Contains(Address("10.0.0.200")));
  EXPECT_FALSE(Network("10.0.0.128/25").Contains(Address("10.0.0.1")));
  EXPECT_TRUE(Network("0.0.0.0/0").Contains(Address("1.2.3.4")));
  EXPECT_FALSE(Network("::/0").Contains(Address("1.2.3.4"))) << "the families are apart";
  EXPECT_TRUE(Network("::/0").Contains(Address("::1")));
  IpNetwork network;
  for (const char* bad : {"", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "::/129",
                          "10.0.0.0/8/8", "10.0.0.0/08", "::ffff:10.0.0.0/95"}) {
    EXPECT_FALSE(ParseNetwork(bad, &network)) << bad;
  }
}

}  // namespace
}  // namespace sava::base
