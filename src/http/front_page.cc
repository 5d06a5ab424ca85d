#include "http/front_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/text.h"
#include "base/version.h"
#include "http/json.h"
#include "http/problem.h"
#include "http/route.h"

namespace sava::http {

namespace {

constexpr std::string_view kWhat =
    "A Redis-compatible in-memory server with types of its own: association counters, rate limits, "
    "filters, sketches, URL frontiers.";
constexpr std::string_view kDocs = "docs/http.md";

std::string Example(const Route& row, std::string_view host) {
  return fmt::format("curl {}{}'http://{}{}'", row.options, row.options.empty() ? "" : " ", host,
                     row.example);
}

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out.push_back(c);
    }
  }
  return out;
}

// "3 d 4 h", "12 min 5 s".
std::string Duration(int64_t seconds) {
  constexpr std::pair<std::string_view, int64_t> kUnits[] = {
      {"d", 86400}, {"h", 3600}, {"min", 60}, {"s", 1}};
  for (size_t i = 0; i + 1 < std::size(kUnits); ++i) {
    const auto [name, length] = kUnits[i];
    if (seconds < length) continue;
    const auto [next, part] = kUnits[i + 1];
    return fmt::format("{} {} {} {}", seconds / length, name, seconds % length / part, next);
  }
  return fmt::format("{} s", seconds);
}

constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sava</title>
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { margin-bottom: 0; }
.about { opacity: .75; margin-top: 0; }
dt { margin-top: 1.25rem; }
dd { margin: 0; }
code { font: 14px/1.5 ui-monospace, monospace; }
pre { overflow-x: auto; padding: .5rem .75rem; margin: .25rem 0; border-radius: 6px;
      background: rgba(127, 127, 127, .15); }
</style>
</head>
<body>
)";

void WriteHtml(const Call& call, std::string_view host) {
  std::string& body = call.response->body;
  body += kHead;
  body += fmt::format("<h1>Sava</h1>\n<p class=\"about\">Version {} &middot; up for {}</p>\n",
                      base::kVersion, Duration(call.site.uptime_s));
  body += fmt::format("<p>{}</p>\n<h2>What may be asked here</h2>\n<dl>\n", kWhat);
  for (const Route& row : AllRoutes()) {
    if (row.summary.empty()) continue;
    body += fmt::format("<dt><code><b>{}</b> {}</code></dt>\n<dd>{}",
                        protocol::MethodName(row.method), row.pattern, row.summary);
    if (!row.command.empty()) body += fmt::format(" The command <code>{}</code>.", row.command);
    body += fmt::format("<pre><code>{}</code></pre></dd>\n", Escaped(Example(row, host)));
  }
  body += fmt::format(
      "</dl>\n<h2>More</h2>\n<p>Everything about these paths stands in <code>{}</code> of the "
      "source tree, all commands and settings in <code>docs/</code>. Redis clients and "
      "<code>sava cli</code> use the Redis port. Programs that ask for this page get it as "
      "JSON.</p>\n</body>\n</html>\n",
      kDocs);
  call.response->content_type = "text/html; charset=utf-8";
  call.response->AddField("Content-Security-Policy",
                          "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
                          "form-action 'none'; frame-ancestors 'none'");
}

void WriteJson(const Call& call, std::string_view host) {
  std::string& body = call.response->body;
  body += fmt::format(R"({{"name":"sava","version":"{}","uptimeSeconds":{},"description":"{}")",
                      base::kVersion, call.site.uptime_s, kWhat);
  body += fmt::format(R"(,"docs":"{}","routes":[)", kDocs);
  bool first = true;
  for (const Route& row : AllRoutes()) {
    if (row.summary.empty()) continue;
    if (!first) body.push_back(',');
    first = false;
    body += fmt::format(R"({{"method":"{}","path":"{}","command":)",
                        protocol::MethodName(row.method), row.pattern);
    body += row.command.empty() ? "null" : fmt::format("\"{}\"", row.command);
    body += fmt::format(R"(,"summary":"{}","example":)", row.summary);
    AppendJson(&body, Example(row, host));
    body.push_back('}');
  }
  body += "]}";
  call.response->content_type = kJson;
}

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

// The weight an Accept field gives a media type by its name; 0 when it does not name it.
double Weight(std::string_view accept, std::string_view type) {
  while (!accept.empty()) {
    const size_t comma = std::min(accept.find(','), accept.size());
    std::string_view range = accept.substr(0, comma);
    accept.remove_prefix(std::min(comma + 1, accept.size()));
    const size_t semicolon = std::min(range.find(';'), range.size());
    if (!base::EqualsNoCase(Trimmed(range.substr(0, semicolon)), type)) continue;
    double weight = 1;
    for (range.remove_prefix(semicolon); !range.empty();) {
      range.remove_prefix(1);
      const size_t end = std::min(range.find(';'), range.size());
      const std::string_view parameter = Trimmed(range.substr(0, end));
      range.remove_prefix(end);
      if (parameter.size() < 3 || base::LowerChar(parameter[0]) != 'q' || parameter[1] != '=') {
        continue;
      }
      if (!base::ParseDouble(parameter.substr(2), &weight)) weight = 0;
    }
    return weight;
  }
  return 0;
}

}  // namespace

bool PrefersHtml(std::string_view accept) {
  const double html = Weight(accept, "text/html");
  return html > 0 && html >= Weight(accept, kJson);
}

void WriteFrontPage(Call& call) {
  // A request of HTTP/1.0 need not name the host.
  const std::string_view host =
      call.request.host.empty() ? std::string_view("127.0.0.1:7379") : call.request.host;
  if (PrefersHtml(call.request.accept)) {
    WriteHtml(call, host);
  } else {
    WriteJson(call, host);
  }
  call.response->AddField("Vary", "Accept");
  call.response->AddField("Cache-Control", "no-store");
}

}  // namespace sava::http
