#include "engine/tracking.h"

#include <algorithm>
#include <utility>

#include "base/if_memory.h"
#include "engine/client_list.h"
#include "engine/engine.h"
#include "engine/invocation.h"
#include "protocol/reply.h"

namespace sava::engine {

namespace {

constexpr std::string_view kPush = ">2\r\n$10\r\ninvalidate\r\n";
constexpr std::string_view kPublished = "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n";

// A list of readers up to this length is not looked through for those that are gone.
constexpr size_t kFewReaders = 16;

// An array of keys; the same bytes in both protocols.
template <typename Keys>
std::shared_ptr<const Message> MessageOf(Message::Via via, const Keys& keys) {
  auto message = std::make_shared<Message>();
  message->via = via;
  protocol::OutBuffer out;
  protocol::Reply reply(&out, 2);
  reply.Array(static_cast<int64_t>(keys.size()));
  for (const std::string_view key : keys) reply.Bulk(key);
  message->resp2 = std::string(out.Since(0));
  return message;
}

// Appends what a client is told; false when it cannot be told at all.
bool Tell(Client& client, std::string_view value, bool redirected) {
  if (client.resp == 3) {
    client.out.Append(kPush);
  } else if (redirected && client.subscribed()) {
    client.out.Append(kPublished);
  } else {
    return false;
  }
  client.out.Append(value);
  return true;
}

// A key that every new client reads, and nobody changes, would keep all who ever read it: those
// that are gone are looked for whenever the list is full. How many they were.
template <typename Trackers>
int64_t DropGone(std::vector<KeyReader>* readers, const Trackers& trackers) {
  const size_t gone = std::erase_if(
      *readers, [&](const KeyReader& reader) { return !trackers.contains(reader.client); });
  // Not soon again.
  if (readers->size() * 4 > readers->capacity() * 3) readers->reserve(readers->capacity() * 2);
  return static_cast<int64_t>(gone);
}

}  // namespace

// ---- clients that track ----

void Tracking::Enable(Client& client, const TrackingState& wanted) {
  auto state = std::make_unique<TrackingState>(wanted);
  const std::lock_guard lock(mutex_);
  const bool was_on = client.tracking != nullptr;
  trackers_.insert_or_assign(client.id, Tracker{client.lane, wanted.no_loop});
  if (wanted.broadcast) {
    if (state->prefixes.empty()) state->prefixes.emplace();
    if (was_on)
      state->prefixes.insert(client.tracking->prefixes.begin(), client.tracking->prefixes.end());
    for (const std::string& prefix : state->prefixes) {
      if (!was_on || !client.tracking->prefixes.contains(prefix)) CountName(client, prefix);
      std::vector<KeyReader>& listeners = prefixes_[prefix];
      const KeyReader self{client.id, client.lane};
      if (std::ranges::find(listeners, self) == listeners.end()) listeners.push_back(self);
    }
  }
  if (was_on) {
    state->caching = client.tracking->caching;
    state->caching_family = client.tracking->caching_family;
  } else {
    trackers_count_.fetch_add(1);
  }
  const bool broadcast_before = was_on && client.tracking->broadcast;
  if (wanted.broadcast && !broadcast_before) broadcasting_.fetch_add(1);
  client.tracking = std::move(state);
}

void Tracking::Disable(Client& client) {
  if (client.tracking == nullptr) return;
  for (const std::string& prefix : client.tracking->prefixes) UncountName(client, prefix);
  const std::lock_guard lock(mutex_);
  ForgetPrefixes(client);
  trackers_.erase(client.id);
  trackers_count_.fetch_sub(1);
  if (client.tracking->broadcast) broadcasting_.fetch_sub(1);
  client.tracking.reset();
}

void Tracking::ForgetPrefixes(const Client& client) {
  for (const std::string& prefix : client.tracking->prefixes) {
    const auto it = prefixes_.find(prefix);
    if (it == prefixes_.end()) continue;
    std::erase(it->second, KeyReader{client.id, client.lane});
    if (it->second.empty()) prefixes_.erase(it);
  }
}

size_t Tracking::prefixes() const {
  const std::lock_guard lock(mutex_);
  return prefixes_.size();
}

void Tracking::EndCommand(Client& client, const commands::Command* command) {
  TrackingState& state = *client.tracking;
  if (!state.caching || client.has(kClientMulti)) return;
  const bool family =
      command != nullptr && command->parent != nullptr && command->parent == state.caching_family;
  if (!family) state.caching = false;
}

// ---- reads ----

void Tracking::NoteRead(Lane& lane, const Work& work) {
  const Client& client = *work.client;
  if (!Wants(client, *work.command)) return;
  const bool noted = base::IfMemory([&] {
    size_t n = 0;
    commands::ForEachKey(*work.command, work.args, &lane.batch.key_indexes, [&](size_t index) {
      const std::string_view key = work.args[index];
      const bool hashed = n < work.hashes.size();
      const uint64_t hash = hashed ? work.hashes[n] : engine_.keyspace().Hash(key);
      Register(lane, hash, key, {client.id, client.lane});
      ++n;
    });
  });
  if (!noted) lane.stale.lost = true;
}

bool Tracking::Wants(const Client& client, const commands::Command& command) {
  const TrackingState& state = *client.tracking;
  if (state.broadcast || !command.has(commands::kReadonly) || command.is(commands::kRunsScript)) {
    return false;
  }
  return !(state.opt_in && !state.caching) && !(state.opt_out && state.caching);
}

void Tracking::NoteServed(Lane& lane, const Waiter& waiter, const Waiter::Key* key) {
  const bool noted = base::IfMemory([&] {
    for (const Waiter::Key& one : waiter.keys) {
      if (key != nullptr && one.name != key->name) continue;
      Register(lane, engine_.keyspace().Hash(one.name), one.name,
               {waiter.asker.client, waiter.asker.lane});
    }
  });
  if (!noted) lane.stale.lost = true;
}

void Tracking::Register(Lane& lane, uint64_t hash, std::string_view key, KeyReader reader) {
  Table& table = stripes_[keyspace::Keyspace::StripeOf(hash)].table;
  auto it = table.find(NameView{hash, key});
  if (it == table.end()) {
    Readers readers;
    readers.reserve(1);
    it = table.emplace(Name{hash, std::string(key)}, std::move(readers)).first;
    keys_.fetch_add(1, std::memory_order_relaxed);
  }
  Readers& readers = it->second;
  if (readers.size() == readers.capacity() && readers.size() >= kFewReaders) {
    const std::lock_guard lock(mutex_);
    items_.fetch_sub(DropGone(&readers, trackers_), std::memory_order_relaxed);
  }
  // They stand in the order of their ids.
  const auto place = std::ranges::lower_bound(readers, reader.client, {}, &KeyReader::client);
  if (place == readers.end() || place->client != reader.client) {
    readers.insert(place, reader);
    items_.fetch_add(1, std::memory_order_relaxed);
  }
  if (OverLimit()) DropOne(lane, table, it);
}

// ---- changes ----

void Tracking::NoteChange(Lane& lane, size_t stripe, std::string_view key, const Client* changer) {
  const bool broadcasts = broadcasting_.load(std::memory_order_relaxed) > 0;
  Table& table = stripes_[stripe].table;
  if (table.empty() && !broadcasts) return;
  auto it = table.end();
  if (!table.empty()) it = table.find(NameView{engine_.keyspace().Hash(key), key});
  if (it == table.end() && !broadcasts) return;
  const bool noted = base::IfMemory([&] {
    StaleKey stale{std::string(key), changer == nullptr ? 0 : changer->id, {}};
    lane.stale.keys.push_back(std::move(stale));
  });
  if (!noted) {
    lane.stale.lost = true;
    return;
  }
  if (it == table.end()) return;
  Readers& readers = it->second;
  items_.fetch_sub(static_cast<int64_t>(readers.size()), std::memory_order_relaxed);
  keys_.fetch_sub(1, std::memory_order_relaxed);
  lane.stale.keys.back().readers = std::move(readers);
  table.erase(it);
}

void Tracking::Flushed() {
  for (Stripe& stripe : stripes_) stripe.table.clear();
  keys_.store(0, std::memory_order_relaxed);
  items_.store(0, std::memory_order_relaxed);
}

// What it follows from may be the work of several lanes, or of none.
void Tracking::TellAllToForget() {
  const uint64_t ticket = engine_.journal().enabled() ? engine_.journal().next_ticket() : 0;
  const std::lock_guard lock(mutex_);
  auto message = std::make_shared<Message>();
  message->via = Message::Via::kForget;
  for (const auto& [id, tracker] : trackers_) {
    engine_.lanes()[tracker.lane]->mailbox.Post({Mail::Kind::kInvalidate, id, message, 0, ticket});
  }
}

// ---- the limit ----

bool Tracking::OverLimit() const {
  const int64_t most = engine_.settings().tracking_table_max_keys;
  return most > 0 && keys_.load(std::memory_order_relaxed) > most;
}

void Tracking::DropOne(Lane& lane, Table& table, Table::iterator kept) {
  if (table.size() < 2) return;
  const size_t buckets = table.bucket_count();
  size_t bucket = lane.rng.Below(buckets);
  while (true) {
    for (auto local = table.begin(bucket); local != table.end(bucket); ++local) {
      if (kept != table.end() && &*local == &*kept) continue;
      const auto it = table.find(NameView{local->first.hash, local->first.key});
      lane.stale.keys.push_back({it->first.key, 0, it->second});
      keys_.fetch_sub(1, std::memory_order_relaxed);
      items_.fetch_sub(static_cast<int64_t>(it->second.size()), std::memory_order_relaxed);
      table.erase(it);
      return;
    }
    bucket = (bucket + 1) % buckets;
  }
}

bool Tracking::Trim(Lane& lane, size_t stripe) {
  Table& table = stripes_[stripe].table;
  if (table.empty()) return false;
  if (!any()) {  // no client is left that would have to be told
    int64_t readers = 0;
    for (const auto& [name, list] : table) readers += static_cast<int64_t>(list.size());
    items_.fetch_sub(readers, std::memory_order_relaxed);
    keys_.fetch_sub(static_cast<int64_t>(table.size()), std::memory_order_relaxed);
    table.clear();
    return false;
  }
  constexpr int kAtOnce = 100;
  const bool noted = base::IfMemory([&] {
    for (int i = 0; i < kAtOnce && OverLimit() && !table.empty(); ++i) {
      const auto first = table.begin();
      if (table.size() > 1) {
        DropOne(lane, table, table.end());
        continue;
      }
      lane.stale.keys.push_back({first->first.key, 0, first->second});
      keys_.fetch_sub(1, std::memory_order_relaxed);
      items_.fetch_sub(static_cast<int64_t>(first->second.size()), std::memory_order_relaxed);
      table.clear();
    }
  });
  return noted && OverLimit();
}

// ---- telling ----

void Tracking::Post(Lane& lane) {
  const StaleKeys stale = std::exchange(lane.stale, {});
  // What follows from the changes is held back until these are kept.
  const uint64_t ticket = engine_.journal().enabled() ? lane.locks.seen() + 1 : 0;
  const bool told = base::IfMemory([&] {
    PostTable(stale.keys, ticket);
    if (broadcasting_.load(std::memory_order_relaxed) > 0) PostBroadcast(stale.keys, ticket);
    if (stale.lost) TellAllToForget();
  });
  if (!told) lane.stale.lost = true;  // with the next batch
}

void Tracking::PostTable(const std::vector<StaleKey>& stale, uint64_t ticket) {
  std::vector<std::list<Mail>> mail(engine_.lanes().size());
  for (const StaleKey& one : stale) {
    if (one.readers.empty()) continue;
    const std::string_view keys[] = {one.key};
    const auto message = MessageOf(Message::Via::kTable, std::span(keys));
    for (const KeyReader& reader : one.readers) {
      if (reader.client == one.changer && IgnoresItself(reader.client)) continue;
      mail[reader.lane].push_back({Mail::Kind::kInvalidate, reader.client, message, 0, ticket});
    }
  }
  for (size_t i = 0; i < mail.size(); ++i) engine_.lanes()[i]->mailbox.Post(std::move(mail[i]));
}

bool Tracking::IgnoresItself(uint64_t client) const {
  const std::lock_guard lock(mutex_);
  const auto it = trackers_.find(client);
  return it != trackers_.end() && it->second.no_loop;
}

// All keys of a batch that begin with a prefix are one message for the clients that listen to it; a
// client that does not want to hear of its own changes gets a message of its own.
void Tracking::PostBroadcast(const std::vector<StaleKey>& stale, uint64_t ticket) {
  // From a key to the client that changed it; 0: none, or several.
  std::map<std::string_view, uint64_t> changed;
  for (const StaleKey& one : stale) {
    const auto [it, first] = changed.emplace(one.key, one.changer);
    if (!first && it->second != one.changer) it->second = 0;
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [prefix, listeners] : prefixes_) {
    std::vector<std::string_view> all;
    for (auto it = changed.lower_bound(prefix);
         it != changed.end() && it->first.starts_with(prefix); ++it) {
      all.push_back(it->first);
    }
    if (all.empty()) continue;
    const auto for_all = MessageOf(Message::Via::kBroadcast, all);
    for (const KeyReader& listener : listeners) {
      auto message = for_all;
      if (trackers_.at(listener.client).no_loop) {
        std::vector<std::string_view> others;
        for (const std::string_view key : all) {
          if (changed.at(key) != listener.client) others.push_back(key);
        }
        if (others.empty()) continue;
        if (others.size() < all.size()) message = MessageOf(Message::Via::kBroadcast, others);
      }
      engine_.lanes()[listener.lane]->mailbox.Post(
          {Mail::Kind::kInvalidate, listener.client, message, 0, ticket});
    }
  }
}

// ---- delivery ----

bool Tracking::Deliver(Client& client, const Mail& mail) {
  const Message::Via via = mail.message->via;
  if (mail.kind == Mail::Kind::kRedirected) return Tell(client, mail.message->resp2, true);
  TrackingState* const state = client.tracking.get();
  if (state == nullptr) return false;
  if (mail.kind == Mail::Kind::kRedirectLost) {
    if (state->redirect != mail.token) return false;
    state->broken = true;
    if (client.resp < 3) return false;
    protocol::Reply reply(&client.out, client.resp);
    reply.Push(2);
    reply.Bulk("tracking-redir-broken");
    reply.Int(static_cast<int64_t>(mail.token));
    return true;
  }
  // It may have changed its mode meanwhile.
  if (via != Message::Via::kForget && state->broadcast != (via == Message::Via::kBroadcast)) {
    return false;
  }
  const std::string_view null = client.resp == 3 ? "_\r\n" : "$-1\r\n";
  const std::string_view value = via == Message::Via::kForget ? null : mail.message->resp2;
  if (state->redirect != 0) return Forward(client, std::string(value), mail.ticket);
  return Tell(client, value, false);
}

bool Tracking::Forward(Client& client, std::string value, uint64_t ticket) {
  auto message = std::make_shared<Message>();
  message->resp2 = std::move(value);
  const TrackingState& state = *client.tracking;
  engine_.lanes()[state.redirect_lane]->mailbox.Post(
      {Mail::Kind::kRedirected, state.redirect, std::move(message), client.id, ticket});
  return false;
}

void Tracking::NoteMissing(const Mail& mail) {
  if (mail.kind != Mail::Kind::kRedirected) return;
  const std::lock_guard lock(mutex_);
  const auto it = trackers_.find(mail.token);
  if (it == trackers_.end()) return;
  engine_.lanes()[it->second.lane]->mailbox.Post(
      {Mail::Kind::kRedirectLost, mail.token, mail.message, mail.client});
}

}  // namespace sava::engine
