#include "commands/iri.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

namespace sava::commands {

namespace {

std::atomic<HostToAscii> host_to_ascii{nullptr};

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (static_cast<uint8_t>(c) & 0x80) == 0; });
}

void AppendEncoded(std::string_view text, std::string* out) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte < 0x80) {
      out->push_back(c);
    } else {
      out->push_back('%');
      out->push_back(kDigits[byte >> 4]);
      out->push_back(kDigits[byte & 15]);
    }
  }
}

// IDNA maps some characters to `/`, `@` and the like: what comes out must be a plain host.
bool IsPlainHost(std::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
  });
}

bool AppendHost(std::string_view host, std::string* out) {
  if (IsAscii(host)) {
    out->append(host);
    return true;
  }
  const HostToAscii convert = host_to_ascii.load(std::memory_order_acquire);
  std::string ascii;
  if (convert == nullptr || !convert(host, &ascii) || !IsPlainHost(ascii)) return false;
  out->append(ascii);
  return true;
}

}  // namespace

void InstallHostToAscii(HostToAscii convert) {
  host_to_ascii.store(convert, std::memory_order_release);
}

bool IriToAscii(types::UrlNorm norm, std::string_view text, std::string* ascii) {
  if (norm != types::UrlNorm::kRfc3986 || text.size() > types::kMaxUrlSize) return false;
  text = text.substr(0, text.find('#'));
  if (IsAscii(text)) return false;
  const size_t scheme = text.find("://");
  const size_t begin = scheme == std::string_view::npos ? 0 : scheme + 3;
  const size_t end = std::min(text.find_first_of("/?", begin), text.size());
  std::string_view host = text.substr(begin, end - begin);
  ascii->clear();
  AppendEncoded(text.substr(0, begin), ascii);
  const size_t user = host.rfind('@');
  if (user != std::string_view::npos) {
    AppendEncoded(host.substr(0, user + 1), ascii);
    host.remove_prefix(user + 1);
  }
  const size_t port = std::min(host.rfind(':'), host.size());
  if (!AppendHost(host.substr(0, port), ascii)) return false;
  AppendEncoded(host.substr(port), ascii);
  AppendEncoded(text.substr(end), ascii);
  return true;
}

types::SplitUrl NormalizeIri(types::UrlNorm norm, std::string_view url, char* room,
                             std::string* ascii) {
  const types::SplitUrl split = types::NormalizeUrl(norm, url, room);
  std::string text;
  if (split.fault != types::UrlFault::kInvalid || !IriToAscii(norm, url, &text)) return split;
  const size_t size = text.size();
  *ascii = std::move(text);
  ascii->resize(size + types::UrlRoom(size));
  return types::NormalizeUrl(norm, {ascii->data(), size}, ascii->data() + size);
}

std::string NormalizeIriHost(types::UrlNorm norm, std::string_view text) {
  if (text.size() > types::kMaxUrlSize) return {};
  std::string room(types::UrlRoom(text.size()), '\0');
  std::string host(types::NormalizeUrlHost(norm, text, room.data()));
  std::string ascii;
  if (!host.empty() || !IriToAscii(norm, text, &ascii)) return host;
  if (ascii.size() > types::kMaxUrlSize) return {};
  room.resize(types::UrlRoom(ascii.size()));
  return std::string(types::NormalizeUrlHost(norm, ascii, room.data()));
}

}  // namespace sava::commands
