// URLs: what each way of normalising makes of them, what is refused and why, and what holds for any
// URL (by the property that is fuzzed, on its corpus and on random ones).
#include "types/frontier/url.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "../../fuzz/url_property.h"

namespace sava::types {
namespace {

// The normalised URL, or "!" and why there is none.
std::string Norm(UrlNorm norm, const std::string& url) {
  std::string room(UrlRoom(url.size()), '\0');
  const SplitUrl split = NormalizeUrl(norm, url, room.data());
  if (!split.ok()) return "!" + std::string(UrlFaultText(split.fault));
  std::string out;
  AppendUrl(split.host, split.rest, &out);
  return out;
}

std::string Rfc(const std::string& url) { return Norm(UrlNorm::kRfc3986, url); }
std::string Ufmg(const std::string& url) { return Norm(UrlNorm::kUfmg, url); }

std::string HostOf(UrlNorm norm, const std::string& text) {
  std::string room(UrlRoom(text.size()), '\0');
  return std::string(NormalizeUrlHost(norm, text, room.data()));
}

uint32_t DepthOf(UrlNorm norm, const std::string& url) {
  std::string room(UrlRoom(url.size()), '\0');
  return NormalizeUrl(norm, url, room.data()).depth;
}

// ---- rfc3986 ----

TEST(UrlRfc3986, ANormalUrlStaysAsItIs) {
  for (const char* url :
       {"http://example.com/", "https://example.com/", "http://example.com/a/b.html?x=1&y=/../",
        "https://example.com:8443/%2F%20%C3%A9", "http://127.0.0.1:8080/", "http://h//",
        "http://h/...", "http://h/a./.b/..c", "http://h/?", "http://h:0/", "http://[::1]/",
        "http://h/~!$&'()*+,;=:@"}) {
    EXPECT_EQ(Rfc(url), url);
  }
}

TEST(UrlRfc3986, WhatIsNormalisedPointsIntoTheUrlItself) {
  const std::string url = "http://example.com/a/b?c";
  char untouched[32] = "untouched";
  const SplitUrl split = NormalizeUrl(UrlNorm::kRfc3986, url, untouched);
  EXPECT_EQ(split.host.data(), url.data() + 7);
  EXPECT_EQ(split.rest, "/a/b?c");
  EXPECT_STREQ(untouched, "untouched");
}

TEST(UrlRfc3986, CaseOfSchemeHostAndEscapes) {
  EXPECT_EQ(Rfc("HTTP://Example.COM/Path"), "http://example.com/Path");
  EXPECT_EQ(Rfc("hTTps://h/%c3%a9%2f"), "https://h/%C3%A9%2F");
  EXPECT_EQ(Rfc("http://%C3%a9.COM/"), "http://%C3%A9.com/");
}

TEST(UrlRfc3986, EscapesAreDecodedOnlyWhereTheyAreNotNeeded) {
  EXPECT_EQ(Rfc("http://h/%41%7e%2D%2e%5F%30"), "http://h/A~-._0");
  EXPECT_EQ(Rfc("http://h/a%2Fb%3F%23%25"), "http://h/a%2Fb%3F%23%25");
  EXPECT_EQ(Rfc("http://h/?%41=%26"), "http://h/?A=%26");
  EXPECT_EQ(Rfc("http://EX%41mple.com/"), "http://example.com/");
}

TEST(UrlRfc3986, DotSegments) {
  EXPECT_EQ(Rfc("http://h/a/b/c/./../../g"), "http://h/a/g");  // RFC 3986, 5.2.4
  EXPECT_EQ(Rfc("http://h/../../a"), "http://h/a");
  EXPECT_EQ(Rfc("http://h/a/.."), "http://h/");
  EXPECT_EQ(Rfc("http://h/a/."), "http://h/a/");
  EXPECT_EQ(Rfc("http://h/a//../b"), "http://h/a/b");
  EXPECT_EQ(Rfc("http://h/%2E%2e/%2e/a"), "http://h/a");
  EXPECT_EQ(Rfc("http://h/?a/../b"), "http://h/?a/../b");
}

TEST(UrlRfc3986, PortAndEmptyPath) {
  EXPECT_EQ(Rfc("http://h:80/"), "http://h/");
  EXPECT_EQ(Rfc("https://h:443"), "https://h/");
  EXPECT_EQ(Rfc("http://h:443/"), "http://h:443/");
  EXPECT_EQ(Rfc("http://h:0080/"), "http://h/");
  EXPECT_EQ(Rfc("http://h:/a"), "http://h/a");
  EXPECT_EQ(Rfc("http://h"), "http://h/");
  EXPECT_EQ(Rfc("https://h?x"), "https://h/?x");
  EXPECT_EQ(Rfc("http://[2001:DB8::A]:80"), "http://[2001:db8::a]/");
}

TEST(UrlRfc3986, TheFragmentIsDroppedUnread) {
  EXPECT_EQ(Rfc("http://h/a#top"), "http://h/a");
  EXPECT_EQ(Rfc("http://h/a?b#\x01 %"), "http://h/a?b");
  EXPECT_EQ(Rfc("http://h#/a"), "http://h/");
}

TEST(UrlRfc3986, WhatIsRefused) {
  EXPECT_EQ(Rfc(""), "!not a URL");
  EXPECT_EQ(Rfc("example.com/a"), "!not a URL");
  EXPECT_EQ(Rfc("http:/h/a"), "!not a URL");
  EXPECT_EQ(Rfc("http:///a"), "!not a URL");
  EXPECT_EQ(Rfc("http://h/a b"), "!not a URL");
  EXPECT_EQ(Rfc("http://h/%2"), "!not a URL");
  EXPECT_EQ(Rfc("http://h/%zz"), "!not a URL");
  EXPECT_EQ(Rfc("http://h/\xc3\xa9"), "!not a URL");
  EXPECT_EQ(Rfc("http://h:x/"), "!not a URL");
  EXPECT_EQ(Rfc("http://h:65536/"), "!not a URL");
  EXPECT_EQ(Rfc("http://[::1/"), "!not a URL");
  EXPECT_EQ(Rfc("http://[1::2::3]/"), "!not a URL");
  EXPECT_EQ(Rfc("ftp://h/"), "!scheme not supported");
  EXPECT_EQ(Rfc("mailto:a@b.c"), "!scheme not supported");
  EXPECT_EQ(Rfc("httpx://h/"), "!scheme not supported");
  EXPECT_EQ(Rfc("http://u:p@h/"), "!user information is not supported");
  EXPECT_EQ(Rfc("http://@h/"), "!user information is not supported");
}

// ---- ufmg ----

TEST(UrlUfmg, WwwTrailingSlashesAndFragmentAreIgnored) {
  EXPECT_EQ(Ufmg("http://www.ufmg.br/"), "http://ufmg.br");
  EXPECT_EQ(Ufmg("http://WWW.ufmg.br/a/b/"), "http://ufmg.br/a/b");
  EXPECT_EQ(Ufmg("http://ufmg.br/a#x"), "http://ufmg.br/a");
  EXPECT_EQ(Ufmg("http://ufmg.br/a/?q=/"), "http://ufmg.br/a/?q=/");
  EXPECT_EQ(Ufmg("http://www.www.h.br//"), "http://h.br");
}

TEST(UrlUfmg, WwwStaysWhereNoDotFollows) {
  EXPECT_EQ(Ufmg("http://www.com/x"), "http://www.com/x");
  EXPECT_EQ(Ufmg("http://www.www.com/x"), "http://www.com/x");
  EXPECT_EQ(Ufmg("http://www.com:8080/x"), "http://www.com:8080/x");
  EXPECT_EQ(Ufmg("http://www/x"), "http://www/x");
  EXPECT_EQ(HostOf(UrlNorm::kUfmg, "www.com"), "www.com");
  EXPECT_EQ(HostOf(UrlNorm::kUfmg, "WWW.www.com"), "www.com");
}

TEST(UrlUfmg, SchemeAndHostAreInLowerCase) {
  EXPECT_EQ(Ufmg("HTTP://Ufmg.br/A/../%7e"), "http://ufmg.br/A/../%7e");
  EXPECT_EQ(Ufmg("http://WWW.COM:80/X?Y"), "http://www.com:80/X?Y");
  EXPECT_EQ(HostOf(UrlNorm::kUfmg, "UFMG.br"), "ufmg.br");
  EXPECT_EQ(HostOf(UrlNorm::kUfmg, "Http://UFMG.br/A"), "ufmg.br");
}

TEST(UrlUfmg, ANormalisedUrlNormalisesToItself) {
  const char* const kParts[] = {"www.", "WWW.", "w", "A.", ".", "com", ":80", "/", "?", "x"};
  for (unsigned seed = 0; seed < 20000; ++seed) {
    std::string url = "hTTp://";
    for (unsigned rest = seed; rest != 0; rest /= 10) url += kParts[rest % 10];
    const std::string once = Ufmg(url);
    if (once[0] == '!') continue;
    EXPECT_EQ(Ufmg(once), once) << url;
  }
}

TEST(UrlUfmg, WhatIsRefused) {
  EXPECT_EQ(Ufmg("https://h/"), "!scheme not supported");
  EXPECT_EQ(Ufmg("h/a"), "!not a URL");
  EXPECT_EQ(Ufmg("http://"), "!not a URL");
  EXPECT_EQ(Ufmg("http://www./"), "!not a URL");
  EXPECT_EQ(Ufmg("http://h/a b"), "!not a URL");
  EXPECT_EQ(Ufmg("http://h/a\r"), "!not a URL");
  for (const char* end : {".jpg", ".gif", ".mp3", ".avi", ".doc", ".pdf", ".PDF", ".Jpg/"}) {
    EXPECT_EQ(Ufmg(std::string("http://h/a") + end), "!file type not wanted") << end;
  }
  EXPECT_EQ(Ufmg("http://h/a.pdf?x"), "!file type not wanted");
  EXPECT_EQ(Ufmg("http://h/a?x.pdf"), "http://h/a?x.pdf");
  EXPECT_EQ(Ufmg("http://h.doc/"), "http://h.doc");
  EXPECT_EQ(Ufmg("http://h/a.docx"), "http://h/a.docx");
  EXPECT_EQ(Rfc("http://h/a.pdf"), "http://h/a.pdf");
}

// ---- both ----

TEST(Url, DepthIsTheNumberOfSlashesInThePath) {
  EXPECT_EQ(DepthOf(UrlNorm::kUfmg, "http://h"), 0U);
  EXPECT_EQ(DepthOf(UrlNorm::kUfmg, "http://h/"), 0U);
  EXPECT_EQ(DepthOf(UrlNorm::kUfmg, "http://h/a/b/"), 2U);
  EXPECT_EQ(DepthOf(UrlNorm::kUfmg, "http://h/a?b/c/d"), 1U);
  EXPECT_EQ(DepthOf(UrlNorm::kRfc3986, "http://h"), 1U);
  EXPECT_EQ(DepthOf(UrlNorm::kRfc3986, "http://h/a/../b/c?d/e"), 2U);
  EXPECT_EQ(DepthOf(UrlNorm::kRfc3986, "https://h/a/b/"), 3U);
  EXPECT_EQ(DepthOf(UrlNorm::kRfc3986, "HTTPS://h/a/b/"), 3U);
}

TEST(Url, BothSchemesShareAHost) {
  EXPECT_EQ(HostOf(UrlNorm::kRfc3986, "https://H/a"), "h");
  EXPECT_EQ(HostOf(UrlNorm::kRfc3986, "http://h/b"), "h");
  EXPECT_NE(Rfc("http://h/a"), Rfc("https://h/a"));
}

TEST(Url, AHostMayBeNamedInManyWays) {
  for (const char* name : {"h.com", "H.com", "h.com:80", "http://h.com", "https://H.com/a/b"}) {
    EXPECT_EQ(HostOf(UrlNorm::kRfc3986, name), "h.com") << name;
  }
  EXPECT_EQ(HostOf(UrlNorm::kRfc3986, "h.com:8080"), "h.com:8080");
  EXPECT_EQ(HostOf(UrlNorm::kRfc3986, "[::1]"), "[::1]");
  EXPECT_EQ(HostOf(UrlNorm::kUfmg, "www.h.com"), "h.com");
  EXPECT_EQ(HostOf(UrlNorm::kUfmg, "http://www.h.com/a"), "h.com");
  for (const char* name : {"", "h/a", "h?", "a b", "ftp://h", "u@h"}) {
    EXPECT_EQ(HostOf(UrlNorm::kRfc3986, name), "") << name;
    EXPECT_EQ(HostOf(UrlNorm::kUfmg, name), "") << name;
  }
}

TEST(Url, LengthsHaveLimits) {
  const std::string host(kMaxUrlHostSize, 'h');
  for (const UrlNorm norm : {UrlNorm::kUfmg, UrlNorm::kRfc3986}) {
    const std::string start = "http://" + host + "/";
    const std::string longest = start + std::string(kMaxUrlSize - start.size(), 'a');
    EXPECT_EQ(Norm(norm, longest), longest);
    EXPECT_EQ(Norm(norm, longest + "a"), "!URL too long");
    EXPECT_EQ(Norm(norm, "http://" + host + "h/"), "!URL too long");
    EXPECT_EQ(CheckUrl(norm, longest), "");
  }
  EXPECT_EQ(Rfc("http://" + host + "H/"), "!URL too long");
}

TEST(Url, NamesOfTheRules) {
  UrlNorm norm = UrlNorm::kRfc3986;
  EXPECT_TRUE(ParseUrlNorm("UFMG", &norm));
  EXPECT_EQ(norm, UrlNorm::kUfmg);
  EXPECT_TRUE(ParseUrlNorm(UrlNormName(UrlNorm::kRfc3986), &norm));
  EXPECT_EQ(norm, UrlNorm::kRfc3986);
  EXPECT_FALSE(ParseUrlNorm("whatwg", &norm));
}

TEST(Url, TheFuzzCorpusHoldsItsProperty) {
  const std::filesystem::path corpus = std::filesystem::path(SAVA_SOURCE_DIR) / "fuzz/corpus/url";
  int replayed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)),
                            std::istreambuf_iterator<char>());
    EXPECT_EQ(CheckUrl(bytes), "") << entry.path();
    ++replayed;
  }
  EXPECT_GE(replayed, 20);
}

TEST(Url, RandomOnesHoldTheProperty) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::string bytes = "aAbB..%%//:?#@[]2e2E4f190hw-~&=+ \x80";
  int accepted = 0;
  for (int i = 0; i < 50000; ++i) {
    std::string url = random() % 2 == 0 ? "http://" : "https://";
    for (size_t n = random() % 24; n > 0; --n) url += bytes[random() % bytes.size()];
    ASSERT_EQ(CheckUrl(url), "") << url;
    if (Rfc(url)[0] != '!') ++accepted;
  }
  EXPECT_GT(accepted, 5000);
}

}  // namespace
}  // namespace sava::types
