// The wording of error replies, in one place, equal to Redis's wherever Redis has one.
#pragma once

#include <string>
#include <string_view>

namespace sava::commands::errors {

inline constexpr std::string_view kSyntax = "ERR syntax error";
inline constexpr std::string_view kWrongType =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
inline constexpr std::string_view kNotInteger = "ERR value is not an integer or out of range";
inline constexpr std::string_view kNotFloat = "ERR value is not a valid float";
inline constexpr std::string_view kNoSuchKey = "ERR no such key";
inline constexpr std::string_view kOverflow = "ERR increment or decrement would overflow";
inline constexpr std::string_view kOutOfRange = "ERR value is out of range";
inline constexpr std::string_view kMustBePositive = "ERR value is out of range, must be positive";
inline constexpr std::string_view kStringTooLong =
    "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
inline constexpr std::string_view kBitOffset = "ERR bit offset is not an integer or out of range";
inline constexpr std::string_view kBitValue = "ERR bit is not an integer or out of range";
inline constexpr std::string_view kOffsetRange = "ERR offset is out of range";
inline constexpr std::string_view kNaN = "ERR increment would produce NaN or Infinity";
inline constexpr std::string_view kSameObject = "ERR source and destination objects are the same";
inline constexpr std::string_view kDbIndex = "ERR DB index is out of range";
inline constexpr std::string_view kBusyKey = "BUSYKEY Target key name already exists.";
inline constexpr std::string_view kBadPayload = "ERR DUMP payload version or checksum are wrong";
inline constexpr std::string_view kBadData = "ERR Bad data format";
inline constexpr std::string_view kLoading = "LOADING Redis is loading the dataset in memory";
inline constexpr std::string_view kReadOnly =
    "READONLY You can't write against a read only replica.";
inline constexpr std::string_view kNoReplicas = "NOREPLICAS Not enough good replicas to write.";
inline constexpr std::string_view kMasterDown =
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";
inline constexpr std::string_view kOom = "OOM command not allowed when used memory > 'maxmemory'.";
inline constexpr std::string_view kNoMemory = "OOM not enough memory to run the command";
inline constexpr std::string_view kNotBucket = "ERR not a rate limit bucket";
inline constexpr std::string_view kNoAuth = "NOAUTH Authentication required.";
inline constexpr std::string_view kKeyExists = "ERR key already exists";
inline constexpr std::string_view kBadCursor = "ERR invalid cursor";
inline constexpr std::string_view kNumkeys = "ERR numkeys should be greater than 0";
inline constexpr std::string_view kCount = "ERR count should be greater than 0";
inline constexpr std::string_view kCountOption = "ERR COUNT must be > 0";
inline constexpr std::string_view kNegativeLimit = "ERR LIMIT can't be negative";
// For a number whose absolute value must be a number too.
inline constexpr std::string_view kNoAbsolute =
    "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807";
inline constexpr std::string_view kTimeoutNotInteger =
    "ERR timeout is not an integer or out of range";
inline constexpr std::string_view kTimeoutRange = "ERR timeout is out of range";
inline constexpr std::string_view kNegativeTimeout = "ERR timeout is negative";
inline constexpr std::string_view kElementTooLarge = "ERR Element too large";
inline constexpr std::string_view kBadErrorRate = "ERR bad error rate";
inline constexpr std::string_view kUnknownNorm = "ERR unknown NORM, use ufmg or rfc3986";

inline constexpr std::string_view kTooManyKeys =
    "ERR Number of keys can't be greater than number of args";
inline constexpr std::string_view kClientName =
    "ERR Client names cannot contain spaces, newlines or special characters.";
inline constexpr std::string_view kNoLibrary = "ERR Library not found";

inline std::string WrongArity(std::string_view command) {
  return std::string("ERR wrong number of arguments for '").append(command).append("' command");
}
// `container` in capitals.
inline std::string UnknownSubcommand(std::string_view subcommand, std::string_view container) {
  return std::string("ERR unknown subcommand or wrong number of arguments for '")
      .append(subcommand.substr(0, 128))
      .append("'. Try ")
      .append(container)
      .append(" HELP.");
}
inline std::string NoConsumerGroup(std::string_view group, std::string_view key) {
  return std::string("NOGROUP No such consumer group '")
      .append(group)
      .append("' for key name '")
      .append(key)
      .append("'");
}
inline std::string BadExpireTime(std::string_view command) {
  return std::string("ERR invalid expire time in '").append(command).append("' command");
}

}  // namespace sava::commands::errors
