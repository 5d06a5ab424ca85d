// Streams (docs/types/streams.md): entries are added, read, deleted and trimmed here. The log gets
// the id that an entry was given and the length or the id that a stream was trimmed to, never what
// was left open.
#include "commands/redis/streams.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "commands/redis/families.h"
#include "commands/registry.h"

namespace sava::commands {

using types::Stream;
using types::StreamEntry;
using types::StreamId;

// ---- shared by the family ----

namespace {

constexpr size_t kLongestId = 127;

// As Redis reads the numbers of an id: leading zeros, spaces and a plus are let pass.
bool ParseIdNumber(const std::string& text, uint64_t* out) {
  int64_t number = 0;
  if (base::ParseInt(text, &number)) {
    *out = static_cast<uint64_t>(number);
    return number >= 0;
  }
  char* end = nullptr;
  errno = 0;
  *out = std::strtoull(text.c_str(), &end, 10);
  return errno == 0 && !text.empty() && *end == '\0';
}

bool IntervalArg(Context& context, size_t i, uint64_t missing_seq, StreamId* id, bool* exclusive) {
  std::string_view text = context.arg(i);
  *exclusive = text.size() > 1 && text[0] == '(';
  if (*exclusive) text.remove_prefix(1);
  if (ParseStreamId(text, missing_seq, !*exclusive, id)) return true;
  context.Error(kBadStreamId);
  return false;
}

}  // namespace

bool ParseStreamId(std::string_view text, uint64_t missing_seq, bool special, StreamId* id,
                   bool* seq_given) {
  if (text.size() > kLongestId) return false;
  const std::string whole(text.substr(0, text.find('\0')));
  if (whole == "-" || whole == "+") {
    *id = whole == "-" ? types::kLeastStreamId : types::kGreatestStreamId;
    return special;
  }
  if (seq_given != nullptr) *seq_given = true;
  const size_t dash = whole.find('-');
  StreamId read{0, missing_seq};
  if (!ParseIdNumber(whole.substr(0, dash), &read.ms)) return false;
  if (dash != std::string::npos) {
    const std::string seq = whole.substr(dash + 1);
    if (seq_given != nullptr && seq == "*") {
      read.seq = 0;
      *seq_given = false;
    } else if (!ParseIdNumber(seq, &read.seq)) {
      return false;
    }
  }
  *id = read;
  return true;
}

bool StreamIdArg(Context& context, size_t i, StreamId* id) {
  if (ParseStreamId(context.arg(i), 0, false, id)) return true;
  context.Error(kBadStreamId);
  return false;
}

bool IntervalStartArg(Context& context, size_t i, StreamId* id) {
  bool exclusive = false;
  if (!IntervalArg(context, i, 0, id, &exclusive)) return false;
  if (!exclusive || id->Increment()) return true;
  context.Error("ERR invalid start ID for the interval");
  return false;
}

bool IntervalEndArg(Context& context, size_t i, StreamId* id) {
  bool exclusive = false;
  if (!IntervalArg(context, i, UINT64_MAX, id, &exclusive)) return false;
  if (!exclusive || id->Decrement()) return true;
  context.Error("ERR invalid end ID for the interval");
  return false;
}

void ReplyEntry(Context& context, const StreamEntry& entry) {
  protocol::Reply& reply = context.reply();
  reply.Array(2);
  reply.Bulk(entry.id.Text());
  reply.Array(static_cast<int64_t>(entry.fields * 2));
  entry.ForEachField([&reply](std::string_view field, std::string_view value) {
    reply.Bulk(field);
    reply.Bulk(value);
  });
}

bool ReplyEntryAt(Context& context, const Stream& stream, const StreamId& id) {
  bool found = false;
  stream.Range(id, id, [&](const StreamEntry& entry) {
    ReplyEntry(context, entry);
    found = true;
    return false;
  });
  return found;
}

namespace {

// ---- trimming ----

struct Trim {
  enum class By : uint8_t { kNothing, kLength, kId } by = By::kNothing;
  bool approximate = false;
  int64_t length = 0;
  StreamId id;
  int64_t limit = 0;
  size_t value_arg = 0;  // where length or id stands
  size_t limit_arg = 0;  // 0: not given
};

struct AddOptions {
  Trim trim;
  bool make = true;
  bool id_given = false;
  bool seq_given = true;
  StreamId id;
  size_t id_arg = 0;
};

constexpr int64_t kBlocksPerTrim = 100;
constexpr int64_t kDefaultTrim = 10'000;
constexpr int64_t kMostTrim = 1'000'000;

// The value behind MAXLEN or MINID at *i, which ends at it. The error is replied.
bool ParseThreshold(Context& context, size_t* i, Trim* trim) {
  const bool by_length = context.ArgIs(*i, "maxlen");
  if (trim->by != Trim::By::kNothing) {
    context.Error("ERR syntax error, MAXLEN and MINID options at the same time are not compatible");
    return false;
  }
  trim->by = by_length ? Trim::By::kLength : Trim::By::kId;
  ++*i;
  const std::string_view sign = context.arg(*i);
  if (*i + 1 < context.argc() && (sign == "~" || sign == "=")) {
    trim->approximate = sign == "~";
    ++*i;
  }
  trim->value_arg = *i;
  if (!by_length) return StreamIdArg(context, *i, &trim->id);
  if (!context.IntArg(*i, &trim->length)) return false;
  if (trim->length >= 0) return true;
  context.Error("ERR The MAXLEN argument must be >= 0.");
  return false;
}

bool ParseLimit(Context& context, size_t i, Trim* trim) {
  if (!context.IntArg(i, &trim->limit)) return false;
  if (trim->limit < 0) {
    context.Error("ERR The LIMIT argument must be >= 0.");
    return false;
  }
  trim->limit_arg = i;
  return true;
}

// What is wrong with the options as a whole is replied; the limit gets its default.
bool CheckTrim(Context& context, bool adds, Trim* trim) {
  if (trim->limit != 0 && trim->by == Trim::By::kNothing) {
    context.Error("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy");
    return false;
  }
  if (!adds && trim->by == Trim::By::kNothing) {
    context.Error("ERR syntax error, XTRIM must be called with a trimming strategy");
    return false;
  }
  // A log says exactly what to trim to, perhaps with the limit that led to it.
  const bool replays = !context.Past(0);
  if (replays) {
    trim->limit = 0;
    return true;
  }
  if (trim->limit_arg != 0 && !trim->approximate) {
    context.Error("ERR syntax error, LIMIT cannot be used without the special ~ option");
    return false;
  }
  if (trim->limit_arg != 0 || !trim->approximate) return true;
  trim->limit = kBlocksPerTrim * context.collection_limits().stream_node_max_entries;
  if (trim->limit <= 0) trim->limit = kDefaultTrim;
  trim->limit = std::min(trim->limit, kMostTrim);
  return true;
}

// The options of XADD, up to its id, or of XTRIM.
bool ParseOptions(Context& context, bool adds, AddOptions* options) {
  size_t i = 2;
  for (; i < context.argc(); ++i) {
    const bool more = i + 1 < context.argc();
    if (adds && context.arg(i) == "*") break;
    if (more && (context.ArgIs(i, "maxlen") || context.ArgIs(i, "minid"))) {
      if (!ParseThreshold(context, &i, &options->trim)) return false;
    } else if (more && context.ArgIs(i, "limit")) {
      if (!ParseLimit(context, ++i, &options->trim)) return false;
    } else if (adds && context.ArgIs(i, "nomkstream")) {
      options->make = false;
    } else if (adds) {
      if (!ParseStreamId(context.arg(i), 0, false, &options->id, &options->seq_given)) {
        context.Error(kBadStreamId);
        return false;
      }
      options->id_given = true;
      break;
    } else {
      context.Error(errors::kSyntax);
      return false;
    }
  }
  options->id_arg = i;
  return CheckTrim(context, adds, &options->trim);
}

uint64_t TrimStream(Stream& stream, const Trim& trim) {
  const auto limit = static_cast<uint64_t>(trim.limit);
  if (trim.by == Trim::By::kLength) {
    return stream.TrimToLength(static_cast<uint64_t>(trim.length), trim.approximate, limit);
  }
  return stream.TrimBefore(trim.id, trim.approximate, limit);
}

// What the stream was trimmed to, for the log.
std::string Threshold(const Stream& stream, const Trim& trim) {
  if (trim.by == Trim::By::kLength) return base::IntText(static_cast<int64_t>(stream.length()));
  return stream.First().value_or(types::kGreatestStreamId).Text();
}

std::string_view ThresholdWord(const Trim& trim) {
  return trim.by == Trim::By::kLength ? "MAXLEN" : "MINID";
}

// ---- adding ----

// The id of the new entry; replies the error and returns nothing when there can be none.
std::optional<StreamId> NewId(Context& context, const Stream& stream, const AddOptions& options) {
  if (stream.last_id() == types::kGreatestStreamId) {
    context.Error("ERR The stream has exhausted the last possible ID, unable to add more items");
    return std::nullopt;
  }
  if (!options.id_given) return stream.NextId(static_cast<uint64_t>(context.now_ms()));
  StreamId id = options.id;
  if (!options.seq_given && id.ms == stream.last_id().ms) {
    id = stream.last_id();
    if (id.seq != UINT64_MAX) ++id.seq;
  }
  if (id > stream.last_id()) return id;
  context.Error("ERR The ID specified in XADD is equal or smaller than the target stream top item");
  return std::nullopt;
}

// The command with what was left open in its place.
void LogAdd(Context& context, const Stream& stream, const StreamId& id, const AddOptions& options) {
  if (!context.wants_effects()) return;
  const std::string id_text = id.Text();
  const std::string threshold =
      options.trim.approximate ? Threshold(stream, options.trim) : std::string();
  std::vector<std::string_view> words;
  words.reserve(context.argc());
  for (size_t i = 0; i < context.argc(); ++i) {
    if (i == options.id_arg) {
      words.push_back(id_text);
    } else if (options.trim.approximate && i + 1 == options.trim.value_arg) {
      words.push_back("=");
    } else if (options.trim.approximate && i == options.trim.value_arg) {
      words.push_back(threshold);
    } else if (options.trim.limit_arg == 0 ||
               (i != options.trim.limit_arg && i + 1 != options.trim.limit_arg)) {
      words.push_back(context.arg(i));
    }
  }
  context.Effect(words);
}

void Xadd(Context& context) {
  AddOptions options;
  if (!ParseOptions(context, true, &options)) return;
  const size_t first = options.id_arg + 1;
  if (context.argc() < first + 2 || (context.argc() - first) % 2 == 1) return context.ArityError();
  if (options.id_given && options.seq_given && options.id.zero()) {
    return context.Error("ERR The ID specified in XADD must be greater than 0-0");
  }
  const std::string_view key = context.arg(1);
  Stream* stream = nullptr;
  if (!FindObject(context, key, Access::kWrite, &stream)) return;
  if (stream == nullptr && !options.make) return context.reply().Null();
  std::unique_ptr<Stream> made;
  if (stream == nullptr) {
    made = std::make_unique<Stream>();
    stream = made.get();
  }
  const std::optional<StreamId> id = NewId(context, *stream, options);
  if (!id) return;
  if (stream->Add(*id, context.args().subspan(first), context.collection_limits()) !=
      Stream::AddResult::kAdded) {
    return context.Error("ERR Elements are too large to be stored");
  }
  const uint64_t trimmed =
      options.trim.by == Trim::By::kNothing ? 0 : TrimStream(*stream, options.trim);
  ReplyStreamId(context, *id);
  if (options.trim.approximate || !options.id_given || !options.seq_given) {
    LogAdd(context, *stream, *id, options);
  }
  if (made != nullptr) {
    context.SetObject(key, std::move(made));
  } else {
    context.Touched(key);
  }
  context.Changed();
  context.Notify(kNotifyStream, "xadd", key);
  if (trimmed > 0) context.Notify(kNotifyStream, "xtrim", key);
}

// ---- removing ----

void Xtrim(Context& context) {
  AddOptions options;
  if (!ParseOptions(context, false, &options)) return;
  const std::string_view key = context.arg(1);
  Stream* stream = nullptr;
  if (!FindObject(context, key, Access::kWrite, &stream)) return;
  if (stream == nullptr) return context.reply().Int(0);
  const uint64_t trimmed = TrimStream(*stream, options.trim);
  if (trimmed > 0) {
    if (options.trim.approximate) {
      context.Effect(
          {"XTRIM", key, ThresholdWord(options.trim), "=", Threshold(*stream, options.trim)});
    }
    context.Touched(key);
    context.Changed(static_cast<int64_t>(trimmed));
    context.Notify(kNotifyStream, "xtrim", key);
  }
  context.reply().Int(static_cast<int64_t>(trimmed));
}

void Xdel(Context& context) {
  const std::string_view key = context.arg(1);
  Stream* stream = nullptr;
  if (!FindObject(context, key, Access::kWrite, &stream)) return;
  if (stream == nullptr) return context.reply().Int(0);
  std::vector<StreamId> ids(context.argc() - 2);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!StreamIdArg(context, i + 2, &ids[i])) return;
  }
  int64_t deleted = 0;
  for (const StreamId& id : ids) deleted += stream->Delete(id) ? 1 : 0;
  if (deleted > 0) {
    context.Touched(key);
    context.Changed(deleted);
    context.Notify(kNotifyStream, "xdel", key);
  }
  context.reply().Int(deleted);
}

// ---- reading ----

void Xlen(Context& context) {
  Stream* stream = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &stream)) return;
  context.reply().Int(stream == nullptr ? 0 : static_cast<int64_t>(stream->length()));
}

void RangeOf(Context& context, bool reverse) {
  StreamId from;
  StreamId to;
  if (!IntervalStartArg(context, reverse ? 3 : 2, &from)) return;
  if (!IntervalEndArg(context, reverse ? 2 : 3, &to)) return;
  int64_t count = -1;
  for (size_t i = 4; i < context.argc(); i += 2) {
    if (!context.ArgIs(i, "count") || i + 1 >= context.argc()) {
      return context.Error(errors::kSyntax);
    }
    if (!context.IntArg(i + 1, &count)) return;
    count = std::max<int64_t>(count, 0);
  }
  Stream* stream = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &stream)) return;
  if (stream == nullptr) return context.reply().Array(0);
  if (count == 0) return context.reply().NullArray();
  const size_t mark = context.reply().Mark();
  int64_t shown = 0;
  const auto show = [&](const StreamEntry& entry) {
    ReplyEntry(context, entry);
    return ++shown != count;
  };
  reverse ? stream->RangeReverse(from, to, show) : stream->Range(from, to, show);
  context.reply().ArrayAt(mark, shown);
}

void Xrange(Context& context) { RangeOf(context, false); }
void Xrevrange(Context& context) { RangeOf(context, true); }

// ---- XSETID ----

void Xsetid(Context& context) {
  StreamId id;
  StreamId max_deleted;
  int64_t added = -1;
  if (!StreamIdArg(context, 2, &id)) return;
  for (size_t i = 3; i < context.argc(); i += 2) {
    const bool more = i + 1 < context.argc();
    if (more && context.ArgIs(i, "entriesadded")) {
      if (!context.IntArg(i + 1, &added)) return;
      if (added < 0) return context.Error("ERR entries_added must be positive");
    } else if (more && context.ArgIs(i, "maxdeletedid")) {
      if (!StreamIdArg(context, i + 1, &max_deleted)) return;
      if (id < max_deleted) {
        return context.Error(
            "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id");
      }
    } else {
      return context.Error(errors::kSyntax);
    }
  }
  const std::string_view key = context.arg(1);
  Stream* stream = nullptr;
  if (!FindObject(context, key, Access::kWrite, &stream)) return;
  if (stream == nullptr) return context.Error(errors::kNoSuchKey);
  if (id < stream->max_deleted_id()) {
    return context.Error(
        "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id");
  }
  if (const auto last = stream->Last()) {
    if (id < *last) {
      return context.Error(
          "ERR The ID specified in XSETID is smaller than the target stream top item");
    }
    if (added != -1 && stream->length() > static_cast<uint64_t>(added)) {
      return context.Error(
          "ERR The entries_added specified in XSETID is smaller than the target stream length");
    }
  }
  stream->SetLastId(id);
  if (added != -1) stream->SetEntriesAdded(static_cast<uint64_t>(added));
  if (!max_deleted.zero()) stream->SetMaxDeletedId(max_deleted);
  context.Changed();
  context.Notify(kNotifyStream, "xsetid", key);
  context.reply().Ok();
}

// ---- rows ----

constexpr std::string_view kIntervalNotes = "O(N) where N is the number of entries returned";

const CommandSpec kStreamRows[] = {
    {.name = "xadd",
     .handler = Xadd,
     .arity = -5,
     .flags = kWrite | kDenyOom | kFast,
     .acl = kAclStream,
     .keys = {{.flags = kKeyRw | kKeyUpdate,
               .first = 1,
               .notes = "UPDATE instead of INSERT because of the optional trimming feature"}},
     .group = "stream",
     .since = "5.0.0",
     .summary = "Appends an entry to a stream, which is made when it is missing.",
     .complexity = "O(1) to add; O(N) to trim, where N is the number of entries that go",
     .arguments = "key [NOMKSTREAM] [(MAXLEN|MINID) [=|~] threshold:string [LIMIT count:integer]] "
                  "id:string (field:string value:string) [(field:string value:string) ...]",
     .reply = "the id of the entry; null with NOMKSTREAM when there is no stream",
     .example = "XADD readings * temperature 21.5",
     .tips = "nondeterministic_output"},
    {.name = "xlen",
     .handler = Xlen,
     .arity = 2,
     .flags = kReadonly | kFast,
     .acl = kAclStream,
     .keys = {KeyAt(1, kKeyRo)},
     .group = "stream",
     .since = "5.0.0",
     .summary = "Counts the entries of a stream.",
     .complexity = "O(1)",
     .arguments = "key",
     .reply = "integer",
     .example = "XLEN readings"},
    {.name = "xrange",
     .handler = Xrange,
     .arity = -4,
     .flags = kReadonly,
     .acl = kAclStream,
     .keys = {KeyAt(1, kKeyRo | kKeyAccess)},
     .group = "stream",
     .since = "5.0.0",
     .summary = "Gets the entries between two ids.",
     .complexity = kIntervalNotes,
     .arguments = "key start:string end:string [COUNT count:integer]",
     .reply = "array of entries, each an id and an array of fields and values",
     .example = "XRANGE readings - + COUNT 10"},
    {.name = "xrevrange",
     .handler = Xrevrange,
     .arity = -4,
     .flags = kReadonly,
     .acl = kAclStream,
     .keys = {KeyAt(1, kKeyRo | kKeyAccess)},
     .group = "stream",
     .since = "5.0.0",
     .summary = "Gets the entries between two ids, the latest first.",
     .complexity = kIntervalNotes,
     .arguments = "key end:string start:string [COUNT count:integer]",
     .reply = "array of entries, each an id and an array of fields and values",
     .example = "XREVRANGE readings + - COUNT 1"},
    {.name = "xdel",
     .handler = Xdel,
     .arity = -3,
     .flags = kWrite | kFast,
     .acl = kAclStream,
     .keys = {KeyAt(1, kKeyRw | kKeyDelete)},
     .group = "stream",
     .since = "5.0.0",
     .summary = "Deletes entries.",
     .complexity = "O(1) for each entry",
     .arguments = "key id:string [id:string ...]",
     .reply = "integer: how many were there",
     .example = "XDEL readings 1526919030474-55"},
    {.name = "xtrim",
     .handler = Xtrim,
     .arity = -4,
     .flags = kWrite,
     .acl = kAclStream,
     .keys = {KeyAt(1, kKeyRw | kKeyDelete)},
     .group = "stream",
     .since = "5.0.0",
     .summary = "Removes entries from the front of a stream.",
     .complexity = "O(N) where N is the number of entries that go",
     .arguments = "key (MAXLEN|MINID) [=|~] threshold:string [LIMIT count:integer]",
     .reply = "integer: how many went",
     .example = "XTRIM readings MAXLEN ~ 1000",
     .tips = "nondeterministic_output"},
    {.name = "xsetid",
     .handler = Xsetid,
     .arity = -3,
     .flags = kWrite | kDenyOom | kFast,
     .acl = kAclStream,
     .keys = {KeyAt(1, kKeyRw | kKeyUpdate)},
     .group = "stream",
     .since = "5.0.0",
     .summary = "Sets what a stream remembers of entries that are gone.",
     .complexity = "O(1)",
     .arguments = "key last-id:string [ENTRIESADDED entries-added:integer] "
                  "[MAXDELETEDID max-deleted-id:string]",
     .reply = "OK",
     .example = "XSETID readings 1526919030474-55"},
};

}  // namespace

std::span<const CommandSpec> StreamCommands() { return kStreamRows; }

}  // namespace sava::commands
