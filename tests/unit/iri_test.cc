// URLs beyond ASCII: what they become, what is refused, that commands and their log see ASCII only,
// and that the short way of plain URLs stays as it is.
#include "commands/iri.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>

#include "commands/idna.h"
#include "commands/registry.h"
#include "fake_context.h"

namespace sava::commands {
namespace {

using types::UrlNorm;

class Iri : public testing::Test {
 protected:
  void SetUp() override { InstallIdna(); }
  void TearDown() override { InstallHostToAscii(nullptr); }

  // The normalised URL, or "!" and why there is none.
  static std::string Norm(const std::string& url, UrlNorm norm = UrlNorm::kRfc3986) {
    const auto room = std::make_unique<char[]>(types::UrlRoom(url.size()));
    std::string ascii;
    const types::SplitUrl split = NormalizeIri(norm, url, room.get(), &ascii);
    if (!split.ok()) return "!" + std::string(types::UrlFaultText(split.fault));
    std::string out;
    types::AppendUrl(split.host, split.rest, &out);
    return out;
  }
};

TEST_F(Iri, HostsGoByIdna) {
  EXPECT_EQ(Norm("http://m\u00fcnchen.de/"), "http://xn--mnchen-3ya.de/");
  EXPECT_EQ(Norm("HTTPS://M\u00dcNCHEN.de:443/a/../b"), "https://xn--mnchen-3ya.de/b");
  EXPECT_EQ(Norm("http://fa\u00df.de:8080/"), "http://xn--fa-hia.de:8080/");
  EXPECT_EQ(Norm("http://\u4f8b\u3048.\u30c6\u30b9\u30c8"), "http://xn--r8jz45g.xn--zckzah/");
  EXPECT_EQ(Norm("http://a\u3002b\uff0ecom/"), "http://a.b.com/");
}

TEST_F(Iri, TheRestIsPercentEncoded) {
  EXPECT_EQ(Norm("http://h/caf\u00e9?q=\u00fc&r=%c3%bc"), "http://h/caf%C3%A9?q=%C3%BC&r=%C3%BC");
  EXPECT_EQ(Norm("http://\u00fc.de/\u65e5/../\u672c#\u8a9e"), "http://xn--tda.de/%E6%9C%AC");
  EXPECT_EQ(Norm("http://h/caf\xe9"), "http://h/caf%E9");
  EXPECT_EQ(Norm("http://h/a#\u00e9"), "http://h/a");
}

TEST_F(Iri, WhatIsRefused) {
  for (const std::string url :
       {"http://\xff.de/", "http://h\uff0fpath/", "http://user\uff20h/", "http://\u00fc%41.de/",
        "http://\u00fc:x/", "h\u00fc/", "http://\u00ad/", "http://\u00fc .de/"}) {
    EXPECT_EQ(Norm(url), "!not a URL") << url;
  }
  EXPECT_EQ(Norm(std::string("http://\u00fc\0.de/", 14)), "!not a URL");
  EXPECT_EQ(Norm("http://u\u00fc@h/"), "!user information is not supported");
  EXPECT_EQ(Norm("ftp://\u00fc.de/"), "!scheme not supported");
  EXPECT_EQ(Norm("http://h/" + std::string(40000, '\xe9')), "!URL too long");
}

TEST_F(Iri, WithoutALibraryOnlyHostsAreRefused) {
  InstallHostToAscii(nullptr);
  EXPECT_EQ(Norm("http://\u00fc.de/"), "!not a URL");
  EXPECT_EQ(Norm("http://h/\u00fc"), "http://h/%C3%BC");
}

TEST_F(Iri, PlainUrlsAndTheAssignmentsStayAsTheyAre) {
  std::string ascii = "untouched";
  const std::string url = "http://example.com/a";
  char room[32];
  const types::SplitUrl split = NormalizeIri(UrlNorm::kRfc3986, url, room, &ascii);
  EXPECT_EQ(split.host.data(), url.data() + 7);
  EXPECT_EQ(ascii, "untouched");
  EXPECT_EQ(Norm("http://%C3%A9.com/"), "http://%C3%A9.com/");
  EXPECT_EQ(Norm("http://m\u00fcnchen.de/\u00fc", UrlNorm::kUfmg), "http://m\u00fcnchen.de/\u00fc");
}

TEST_F(Iri, HostsAloneAndInUrls) {
  EXPECT_EQ(NormalizeIriHost(UrlNorm::kRfc3986, "M\u00dcNCHEN.de"), "xn--mnchen-3ya.de");
  EXPECT_EQ(NormalizeIriHost(UrlNorm::kRfc3986, "\u00fc.de:8080"), "xn--tda.de:8080");
  EXPECT_EQ(NormalizeIriHost(UrlNorm::kRfc3986, "http://\u00fc.de/\u00fc"), "xn--tda.de");
  EXPECT_EQ(NormalizeIriHost(UrlNorm::kRfc3986, "\u00fc.de/x"), "");
  EXPECT_EQ(NormalizeIriHost(UrlNorm::kRfc3986, "h.de"), "h.de");
  EXPECT_EQ(NormalizeIriHost(UrlNorm::kUfmg, "\u00fc.de"), "\u00fc.de");
}

TEST_F(Iri, WhatComesOutIsAsciiAndNormalisesToItself) {
  std::mt19937_64 rng(20);
  const std::string pieces[] = {"\u00fc", "\u65e5", "\xff", "a", ".", "/", "?", "%41", "\uff0f",
                                "@",      ":80",    "..",   "%", "#", "-", "_", "xn--"};
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string url = "http://";
    for (uint64_t n = rng() % 10; n > 0; --n) url += pieces[rng() % std::size(pieces)];
    const std::string out = Norm(url);
    if (out[0] == '!') continue;
    ++accepted;
    EXPECT_TRUE(std::all_of(out.begin(), out.end(), [](char c) { return c > ' ' && c < 0x7f; }))
        << url;
    EXPECT_EQ(Norm(out), out) << url;
  }
  EXPECT_GT(accepted, 1000);
}

// ---- commands ----

class IriCommands : public Iri {
 protected:
  FakeContext context_{{FrontierCommands(), UrlCommands()}};
};

TEST_F(IriCommands, UrlCommandsTakeThem) {
  EXPECT_EQ(context_.Run({"URL.HOST", "http://\u00fc.de/"}), "$10\r\nxn--tda.de\r\n");
  EXPECT_EQ(context_.Run({"URL.NORM", "http://h/\u00fc"}), "$15\r\nhttp://h/%C3%BC\r\n");
  EXPECT_EQ(context_.Run({"URL.NORM", "http://\xff/"}), "-ERR invalid URL: not a URL\r\n");
}

TEST_F(IriCommands, AFrontierHoldsAndLogsAscii) {
  EXPECT_EQ(context_.Run({"FR.ADD", "f", "http://a/", "http://\u00fc.de/\u00e9", "http://\xff/"}),
            "*3\r\n:1\r\n:1\r\n:-1\r\n");
  EXPECT_EQ(context_.Run({"FR.ADD", "f", "http://xn--tda.de/%C3%A9"}), "*1\r\n:0\r\n");
  EXPECT_EQ(context_.Run({"FR.SEEN", "f", "http://\u00fc.de/\u00e9"}), "*1\r\n:1\r\n");
  EXPECT_EQ(context_.Run({"FR.HOST", "f", "\u00fc.de", "DELAY", "5"}).substr(0, 1), "*");
  EXPECT_EQ(context_.Run({"FR.NEXT", "f", "1", "HOST", "\u00fc.de"}),
            "*1\r\n$24\r\nhttp://xn--tda.de/%C3%A9\r\n");
  EXPECT_EQ(
      context_.Run({"FR.IMPORT", "f", "http://\u00fc.de/2", "queued", "0", "0", "0", "\u00e9"}),
      "*1\r\n:1\r\n");
  EXPECT_EQ(context_.Run({"FR.PURGE", "f", "\u00fc.de"}), ":1\r\n");
  const std::string now = std::to_string(context_.now_ms());
  EXPECT_EQ(context_.TakeEffects(),
            "FR.ADD f NOW " + now +
                " http://a/ http://xn--tda.de/%C3%A9, FR.HOST f xn--tda.de NOW " + now +
                " DELAY 5, FR.NEXT f 1 HOST xn--tda.de NOW " + now + ", FR.IMPORT f NOW " + now +
                " http://xn--tda.de/2 queued 0 0 0 \u00e9, FR.PURGE f xn--tda.de NOW " + now);
}

}  // namespace
}  // namespace sava::commands
