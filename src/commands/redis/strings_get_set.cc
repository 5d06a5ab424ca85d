// Strings read and written whole: GET and SET with their many relatives. GET, MGET, MSET and SET
// without options are the busiest commands there are: they allocate nothing and look at no option.
#include <new>

#include "base/if_memory.h"
#include "commands/options.h"
#include "commands/redis/strings.h"

namespace sava::commands::strings {

namespace {

// Replies the string at the key, or null when there is none. False, after the error, when the key
// holds something else.
bool ReplyStringOrNull(Context& context, const Value& value) {
  if (!value) {
    context.reply().Null();
    return true;
  }
  if (!value.is_string()) {
    context.Error(errors::kWrongType);
    return false;
  }
  context.ReplyString(value);
  return true;
}

// Sets a key with all that goes with it, except the reply and what is logged.
void Store(Context& context, std::string_view key, std::string_view value, int64_t expire_at) {
  context.SetString(key, value, expire_at);
  context.Changed();
  context.Notify(kNotifyString, "set", key);
}

// The same for a key that is to expire; logged with the time at which it will.
void StoreExpiring(Context& context, std::string_view value, int64_t expire_at) {
  const std::string_view key = context.arg(1);
  Store(context, key, value, expire_at);
  context.Notify(kNotifyGeneric, "expire", key);
  NumberText time;
  context.Effect({"SET", key, value, "PXAT", time.Write(expire_at)});
}

void SetWithOptions(Context& context) {
  StringOptions options;
  if (!ParseStringOptions(context, OptionsOf::kSet, 3, &options)) return;
  int64_t expire_at = options.keep_ttl ? kKeepExpiry : kNoExpiry;
  if (options.has_expiry() &&
      !ParseExpireTime(context, options.expire_arg, options.expire_unit, "set", &expire_at)) {
    return;
  }

  const std::string_view key = context.arg(1);
  const std::string_view value = context.arg(2);
  if (options.get || options.nx || options.xx) {
    const Value old = context.Find(key, options.get ? Access::kRead : Access::kWrite);
    const bool found = static_cast<bool>(old);
    if (options.get && !ReplyStringOrNull(context, old)) return;
    if ((options.nx && found) || (options.xx && !found)) {
      if (!options.get) context.reply().Null();
      return;
    }
  }

  if (options.has_expiry()) {
    StoreExpiring(context, value, expire_at);
  } else {
    Store(context, key, value, expire_at);
    if (options.get && options.keep_ttl) {
      context.Effect({"SET", key, value, "KEEPTTL"});
    } else if (options.get) {
      context.Effect({"SET", key, value});
    }
  }
  if (!options.get) context.reply().Ok();
}

void SetFor(Context& context, ExpireUnit unit, std::string_view command) {
  int64_t expire_at = 0;
  if (!ParseExpireTime(context, 2, unit, command, &expire_at)) return;
  StoreExpiring(context, context.arg(3), expire_at);
  context.reply().Ok();
}

// Sets the pairs of MSET and MSETNX.
void StorePairs(Context& context) {
  for (size_t i = 1; i < context.argc(); i += 2) {
    context.SetString(context.arg(i), context.arg(i + 1));
    context.Notify(kNotifyString, "set", context.arg(i));
  }
  context.Changed(static_cast<int64_t>(context.argc() / 2));
}

// Removes the key that was just replied; logged as the deletion it is.
void DeleteReplied(Context& context, std::string_view key) {
  context.Delete(key);
  context.Changed();
  context.Notify(kNotifyGeneric, "del", key);
  context.Effect({"DEL", key});
}

}  // namespace

void Get(Context& context) {
  ReplyStringOrNull(context, context.Find(context.arg(1), Access::kRead));
}

void Getset(Context& context) {
  const std::string_view key = context.arg(1);
  const std::string_view value = context.arg(2);
  if (!ReplyStringOrNull(context, context.Find(key, Access::kRead))) return;
  Store(context, key, value, kNoExpiry);
  context.Effect({"SET", key, value});
}

void Getdel(Context& context) {
  const std::string_view key = context.arg(1);
  const Value value = context.Find(key, Access::kRead);
  const bool found = static_cast<bool>(value);
  if (!ReplyStringOrNull(context, value) || !found) return;
  DeleteReplied(context, key);
}

void Getex(Context& context) {
  StringOptions options;
  if (context.argc() > 2 && !ParseStringOptions(context, OptionsOf::kGetex, 2, &options)) return;
  const std::string_view key = context.arg(1);
  const Value value = context.Find(key, Access::kRead);
  // A missing key or one of another type is told before a bad expiry is.
  if (!value || !value.is_string()) {
    ReplyStringOrNull(context, value);
    return;
  }
  int64_t expire_at = 0;
  if (options.has_expiry() &&
      !ParseExpireTime(context, options.expire_arg, options.expire_unit, "getex", &expire_at)) {
    return;
  }
  const bool had_expiry = value.expire_at != kNoExpiry;
  context.ReplyString(value);

  if (options.has_expiry() && context.Past(expire_at)) {
    DeleteReplied(context, key);
  } else if (options.has_expiry()) {
    context.SetExpiry(key, expire_at);
    context.Changed();
    context.Notify(kNotifyGeneric, "expire", key);
    NumberText time;
    context.Effect({"PEXPIREAT", key, time.Write(expire_at)});
  } else if (options.persist && had_expiry) {
    context.SetExpiry(key, kNoExpiry);
    context.Changed();
    context.Notify(kNotifyGeneric, "persist", key);
    context.Effect({"PERSIST", key});
  }
}

void Mget(Context& context) {
  context.reply().Array(static_cast<int64_t>(context.argc()) - 1);
  for (size_t i = 1; i < context.argc(); ++i) {
    const Value value = context.Find(context.arg(i), Access::kRead);
    if (value.is_string()) {
      context.ReplyString(value);
    } else {
      context.reply().Null();
    }
  }
}

// With GET the old value is looked at, too.
uint16_t SetKeyFlags(Args args) {
  for (size_t i = 3; i < args.size(); ++i) {
    if (base::EqualsNoCase(args[i], "GET")) return kKeyRw | kKeyAccess | kKeyUpdate;
  }
  return kKeyOw | kKeyUpdate;
}

void Set(Context& context) {
  if (context.argc() > 3) {
    SetWithOptions(context);
    return;
  }
  Store(context, context.arg(1), context.arg(2), kNoExpiry);
  context.reply().Ok();
}

void Setnx(Context& context) {
  const std::string_view key = context.arg(1);
  if (context.Find(key, Access::kWrite)) {
    context.reply().Int(0);
    return;
  }
  Store(context, key, context.arg(2), kNoExpiry);
  context.reply().Int(1);
}

void Setex(Context& context) { SetFor(context, ExpireUnit::kSeconds, "setex"); }

void Psetex(Context& context) { SetFor(context, ExpireUnit::kMilliseconds, "psetex"); }

void Mset(Context& context) {
  if (context.argc() % 2 == 0) {
    context.ArityError();
    return;
  }
  StorePairs(context);
  context.reply().Ok();
}

void Msetnx(Context& context) {
  if (context.argc() % 2 == 0) {
    context.ArityError();
    return;
  }
  for (size_t i = 1; i < context.argc(); i += 2) {
    if (context.Find(context.arg(i), Access::kWrite)) {
      context.reply().Int(0);
      return;
    }
  }
  // All or none: without memory those go again that were set.
  if (!base::IfMemory([&] { StorePairs(context); })) {
    for (size_t i = 1; i < context.argc(); i += 2) context.Delete(context.arg(i));
    throw std::bad_alloc();
  }
  context.reply().Int(1);
}

}  // namespace sava::commands::strings
