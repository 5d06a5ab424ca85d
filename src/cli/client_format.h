// Replies as text: the typed, numbered form for people at a terminal and the bare form for pipes,
// both as redis-cli prints them. Pure functions; JSON is in client_json.h.
#pragma once

#include <string>

#include "cli/client_reply.h"

namespace sava::cli {

enum class OutputMode : uint8_t { kTerminal, kRaw, kJson };

// Every form ends with a line feed.
std::string FormatTerminal(const Reply& reply);
std::string FormatRaw(const Reply& reply);
std::string FormatReply(const Reply& reply, OutputMode mode);

// A text made for reading, such as INFO's: as it is, with the line feed it may lack.
std::string FormatPage(const Reply& reply);

// A message the server sent by itself (RESP3 push, or a message of a subscription).
std::string FormatPush(const Reply& push, OutputMode mode);

}  // namespace sava::cli
