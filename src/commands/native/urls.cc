// URL.NORM, URL.PARSE, URL.HOST and URL.DEPTH: what a frontier makes of a URL
// (docs/types/frontier.md). They touch no key.
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "commands/iri.h"
#include "commands/key_context.h"
#include "commands/native/families.h"
#include "commands/registry.h"
#include "types/frontier/url.h"

namespace sava::commands {

namespace {

// What a split URL points into.
struct Room {
  std::string own;
  std::string ascii;
};

// `url [NORM rule]`; replies the error and returns false when the URL is refused.
bool ReadUrl(KeyContext& context, Room* room, types::SplitUrl* split) {
  types::UrlNorm norm = types::UrlNorm::kRfc3986;
  if (context.argc() != 2 && (context.argc() != 4 || !context.ArgIs(2, "NORM"))) {
    context.Error(errors::kSyntax);
    return false;
  }
  if (context.argc() == 4 && !types::ParseUrlNorm(context.arg(3), &norm)) {
    context.Error(errors::kUnknownNorm);
    return false;
  }
  const std::string_view url = context.arg(1);
  if (url.size() > types::kMaxUrlSize) {
    split->fault = types::UrlFault::kTooLong;
  } else {
    room->own.resize(types::UrlRoom(url.size()));
    *split = NormalizeIri(norm, url, room->own.data(), &room->ascii);
  }
  if (split->ok()) return true;
  context.Error("ERR invalid URL: " + std::string(types::UrlFaultText(split->fault)));
  return false;
}

void UrlNormalized(KeyContext& context) {
  Room room;
  types::SplitUrl split;
  if (!ReadUrl(context, &room, &split)) return;
  std::string url;
  types::AppendUrl(split.host, split.rest, &url);
  context.reply().Bulk(url);
}

void UrlParse(KeyContext& context) {
  Room room;
  types::SplitUrl split;
  if (!ReadUrl(context, &room, &split)) return;
  std::string text;
  types::AppendUrl(split.host, split.rest, &text);
  const std::string_view url = text;
  const size_t colon = url.find(':');
  const std::string_view rest = url.substr(colon + 3 + split.host.size());
  const size_t query = std::min(rest.find('?'), rest.size());
  const std::pair<std::string_view, std::string_view> parts[] = {
      {"protocol", url.substr(0, colon)},
      {"host", split.host},
      {"path", rest.substr(0, query)},
      {"query", rest.substr(std::min(query + 1, rest.size()))},
  };
  protocol::Reply& reply = context.reply();
  reply.Map(static_cast<int64_t>(std::size(parts)) + 1);
  for (const auto& [name, part] : parts) {
    reply.Bulk(name);
    reply.Bulk(part);
  }
  reply.Bulk("depth");
  reply.Int(split.depth);
}

void UrlHost(KeyContext& context) {
  Room room;
  types::SplitUrl split;
  if (ReadUrl(context, &room, &split)) context.reply().Bulk(split.host);
}

void UrlDepth(KeyContext& context) {
  Room room;
  types::SplitUrl split;
  if (ReadUrl(context, &room, &split)) context.reply().Int(split.depth);
}

const CommandSpec kUrlRows[] = {
    {.name = "url.norm",
     .handler = UrlNormalized,
     .arity = -2,
     .flags = kFast,
     .group = "frontier",
     .since = "0.1.0",
     .summary = "Normalises a URL.",
     .complexity = "O(N) where N is the length of the URL",
     .arguments = "url:string [NORM (ufmg | rfc3986)]",
     .reply = "the URL as a frontier would give it back",
     .example = "URL.NORM HTTP://Example.COM:80/a/../b#top"},
    {.name = "url.parse",
     .handler = UrlParse,
     .arity = -2,
     .flags = kFast,
     .group = "frontier",
     .since = "0.1.0",
     .summary = "Takes a URL apart.",
     .complexity = "O(N) where N is the length of the URL",
     .arguments = "url:string [NORM (ufmg | rfc3986)]",
     .reply = "map: protocol, host, path, query, depth; what the URL does not have is empty",
     .example = "URL.PARSE http://example.com:8080/a/b.html?x=1"},
    {.name = "url.host",
     .handler = UrlHost,
     .arity = -2,
     .flags = kFast,
     .group = "frontier",
     .since = "0.1.0",
     .summary = "Gets the host of a URL, as a frontier schedules it.",
     .complexity = "O(N) where N is the length of the URL",
     .arguments = "url:string [NORM (ufmg | rfc3986)]",
     .reply = "the host, with its port when it is not the scheme's own",
     .example = "URL.HOST http://example.com:8080/a"},
    {.name = "url.depth",
     .handler = UrlDepth,
     .arity = -2,
     .flags = kFast,
     .group = "frontier",
     .since = "0.1.0",
     .summary = "Gets the depth of a URL: how many slashes its path has.",
     .complexity = "O(N) where N is the length of the URL",
     .arguments = "url:string [NORM (ufmg | rfc3986)]",
     .reply = "integer",
     .example = "URL.DEPTH http://example.com/a/b.html"},
};

}  // namespace

std::span<const CommandSpec> UrlCommands() { return kUrlRows; }

}  // namespace sava::commands
