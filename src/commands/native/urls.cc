// URL.NORM, URL.HOST and URL.DEPTH: what a frontier makes of a URL
// (docs/types/frontier/frontier.md). They touch no key.
#include <string>

#include "commands/context.h"
#include "commands/native/families.h"
#include "commands/registry.h"
#include "types/frontier/url.h"

namespace sava::commands {

namespace {

// `url [NORM rule]`; replies the error and returns false when the URL is refused.
bool ReadUrl(Context& context, std::string* room, types::SplitUrl* split) {
  types::UrlNorm norm = types::UrlNorm::kRfc3986;
  if (context.argc() != 2 && (context.argc() != 4 || !context.ArgIs(2, "NORM"))) {
    context.Error(errors::kSyntax);
    return false;
  }
  if (context.argc() == 4 && !types::ParseUrlNorm(context.arg(3), &norm)) {
    context.Error("ERR unknown NORM, use ufmg or rfc3986");
    return false;
  }
  const std::string_view url = context.arg(1);
  if (url.size() > types::kMaxUrlSize) {
    split->fault = types::UrlFault::kTooLong;
  } else {
    room->resize(types::UrlRoom(url.size()));
    *split = types::NormalizeUrl(norm, url, room->data());
  }
  if (split->ok()) return true;
  context.Error("ERR invalid URL: " + std::string(types::UrlFaultText(split->fault)));
  return false;
}

void UrlNormalized(Context& context) {
  std::string room;
  types::SplitUrl split;
  if (!ReadUrl(context, &room, &split)) return;
  std::string url;
  types::AppendUrl(split.host, split.rest, &url);
  context.reply().Bulk(url);
}

void UrlHost(Context& context) {
  std::string room;
  types::SplitUrl split;
  if (ReadUrl(context, &room, &split)) context.reply().Bulk(split.host);
}

void UrlDepth(Context& context) {
  std::string room;
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
