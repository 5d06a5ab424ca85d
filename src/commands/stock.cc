#include "commands/stock.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "base/text.h"
#include "types/value/save.h"

namespace sava::commands {

namespace {

// Every command that Redis 7.0.15 has.
constexpr std::string_view kStockCommands =
    "acl append asking auth bgrewriteaof bgsave bitcount bitfield bitfield_ro bitop bitpos "
    "blmove blmpop blpop brpop brpoplpush bzmpop bzpopmax bzpopmin client cluster command "
    "config copy dbsize debug decr decrby del discard dump echo eval eval_ro evalsha evalsha_ro "
    "exec exists expire expireat expiretime failover fcall fcall_ro flushall flushdb function "
    "geoadd geodist geohash geopos georadius georadius_ro georadiusbymember "
    "georadiusbymember_ro geosearch geosearchstore get getbit getdel getex getrange getset hdel "
    "hello hexists hget hgetall hincrby hincrbyfloat hkeys hlen hmget hmset hrandfield hscan "
    "hset hsetnx hstrlen hvals incr incrby incrbyfloat info keys lastsave latency lcs lindex "
    "linsert llen lmove lmpop lolwut lpop lpos lpush lpushx lrange lrem lset ltrim memory mget "
    "migrate module monitor move mset msetnx multi object persist pexpire pexpireat pexpiretime "
    "pfadd pfcount pfdebug pfmerge pfselftest ping psetex psubscribe psync pttl publish pubsub "
    "punsubscribe quit randomkey readonly readwrite rename renamenx replconf replicaof reset "
    "restore restore-asking role rpop rpoplpush rpush rpushx sadd save scan scard script sdiff "
    "sdiffstore select set setbit setex setnx setrange shutdown sinter sintercard sinterstore "
    "sismember slaveof slowlog smembers smismember smove sort sort_ro spop spublish srandmember "
    "srem sscan ssubscribe strlen subscribe substr sunion sunionstore sunsubscribe swapdb sync "
    "time touch ttl type unlink unsubscribe unwatch wait watch xack xadd xautoclaim xclaim xdel "
    "xgroup xinfo xlen xpending xrange xread xreadgroup xrevrange xsetid xtrim zadd zcard "
    "zcount zdiff zdiffstore zincrby zinter zintercard zinterstore zlexcount zmpop zmscore "
    "zpopmax zpopmin zrandmember zrange zrangebylex zrangebyscore zrangestore zrank zrem "
    "zremrangebylex zremrangebyrank zremrangebyscore zrevrange zrevrangebylex zrevrangebyscore "
    "zrevrank zscan zscore zunion zunionstore ";

// What sava.so brings: what its commands' names have before the point.
constexpr std::string_view kModuleFamilies[] = {"afc",    "bf", "cf",      "cl",   "cms", "fr",
                                                "increx", "rl", "simhash", "topk", "url"};

std::unordered_set<std::string_view> StockCommands() {
  std::unordered_set<std::string_view> names;
  std::string_view rest = kStockCommands;
  while (!rest.empty()) {
    const size_t end = rest.find(' ');
    names.insert(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  return names;
}

}  // namespace

bool StockKnows(std::string_view name) {
  static const std::unordered_set<std::string_view> kKnown = StockCommands();
  return kKnown.contains(base::ToLower(name));
}

Reader ReaderOf(std::string_view name) {
  if (StockKnows(name)) return Reader::kStock;
  const std::string family = base::ToLower(name.substr(0, name.find('.')));
  const bool known = std::ranges::find(kModuleFamilies, family) != std::end(kModuleFamilies);
  return known ? Reader::kStockWithModule : Reader::kSava;
}

// The payload says of which type the value is.
bool RestoresNative(Args words) {
  return base::EqualsNoCase(words[0], "restore") && words.size() > 3 && !words[3].empty() &&
         static_cast<uint8_t>(words[3][0]) == types::kRdbModule;
}

std::string ForeignCommand(Args words) {
  if (!StockKnows(words[0])) return base::ToUpper(words[0]);
  return RestoresNative(words) ? "RESTORE of a native value" : "";
}

}  // namespace sava::commands
