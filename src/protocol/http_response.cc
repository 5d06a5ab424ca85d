#include "protocol/http_response.h"

#include <ctime>

#include "base/text.h"

namespace sava::protocol {

namespace {

// A text that has grown beyond this is given back.
constexpr size_t kKeepText = 256 << 10;

void Empty(std::string* text) {
  if (text->capacity() > kKeepText) {
    *text = std::string();
  } else {
    text->clear();
  }
}

}  // namespace

void HttpResponse::Clear() {
  status = 200;
  content_type = {};
  Empty(&fields);
  Empty(&body);
}

void HttpResponse::AddField(std::string_view name, std::string_view value) {
  fields.append(name).append(": ").append(value).append("\r\n");
}

std::string_view HttpDate::At(int64_t unix_seconds) {
  if (unix_seconds == seconds_) return text_;
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const time_t time = unix_seconds;
  tm parts{};
  gmtime_r(&time, &parts);
  char text[64];
  const size_t n = strftime(text, sizeof text, "???, %d ??? %Y %H:%M:%S GMT", &parts);
  text_.assign(text, n);
  text_.replace(0, 3, kDays[parts.tm_wday]);
  text_.replace(8, 3, kMonths[parts.tm_mon]);
  seconds_ = unix_seconds;
  return text_;
}

std::string_view StatusText(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    case 507:
      return "Insufficient Storage";
    default:
      return "Unknown";
  }
}

void WriteResponse(OutBuffer* out, const HttpResponse& response, const HttpFraming& framing) {
  const bool bare = response.status == 204 || response.status < 200;
  char* const start = out->Reserve(512 + response.fields.size() + response.body.size());
  if (start == nullptr) return;
  char* p = start;
  const auto add = [&p](std::string_view text) {
    memcpy(p, text.data(), text.size());
    p += text.size();
  };
  add("HTTP/1.1 ");
  p += base::FormatInt(response.status, p);
  add(" ");
  add(StatusText(response.status));
  if (!framing.date.empty()) {
    add("\r\nDate: ");
    add(framing.date);
  }
  if (framing.close) {
    add("\r\nConnection: close");
  } else if (framing.keep_alive) {
    add("\r\nConnection: keep-alive");
  }
  if (!response.content_type.empty()) {
    add("\r\nContent-Type: ");
    add(response.content_type);
  }
  if (!bare) {
    add("\r\nContent-Length: ");
    p += base::FormatUint(response.body.size(), p);
  }
  add("\r\n");
  add(response.fields);
  add("\r\n");
  if (!bare && !framing.head_only) add(response.body);
  out->Advance(static_cast<size_t>(p - start));
}

}  // namespace sava::protocol
