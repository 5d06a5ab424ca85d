#include "types/frontier/frontier.h"

#include "types/frontier/frontier_core.h"

namespace sava::types {

Frontier::Frontier(const Options& options) : core_(std::make_unique<Core>(options)) {}
Frontier::Frontier(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Frontier::~Frontier() = default;

const Frontier::Options& Frontier::options() const { return core_->options(); }

void Frontier::Add(std::span<const Url> urls, const Attributes& attributes, int64_t now,
                   std::span<Verdict> verdicts) {
  core_->Add(urls, attributes, now, verdicts);
}

Frontier::Verdict Frontier::AddOne(const Url& url, const Attributes& attributes, int64_t now) {
  Verdict verdict = Verdict::kInvalid;
  core_->Add({&url, 1}, attributes, now, {&verdict, 1});
  return verdict;
}

size_t Frontier::Next(const NextRequest& request, int64_t now, const Serve& serve) {
  return core_->Next(request, now, serve);
}

int64_t Frontier::NextWake(int64_t now, std::optional<std::string_view> host) const {
  return core_->NextWake(now, host);
}

size_t Frontier::Ack(std::span<const uint64_t> ids, int64_t refetch_at, int64_t now) {
  return core_->Ack(ids, refetch_at, now);
}

size_t Frontier::Nack(std::span<const uint64_t> ids, int64_t retry_at, int64_t now) {
  return core_->Nack(ids, retry_at, now);
}

size_t Frontier::Extend(std::span<const uint64_t> ids, int64_t until, int64_t now) {
  return core_->Extend(ids, until, now);
}

uint64_t Frontier::host_count() const { return core_->host_count(); }

std::optional<Frontier::HostInfo> Frontier::FindHost(std::string_view host) const {
  return core_->InfoOf(host);
}

bool Frontier::ChangeHost(std::string_view host, const HostChange& change, int64_t now) {
  return core_->ChangeHost(host, change, now);
}

void Frontier::Hosts(uint64_t start, uint64_t count,
                     const std::function<void(const HostInfo& host)>& visit) const {
  for (uint64_t i = start; i < core_->host_count() && i - start < count; ++i) {
    visit(core_->InfoOf(static_cast<uint32_t>(i)));
  }
}

Frontier::Look Frontier::Peek(std::string_view host, uint64_t start, uint64_t count,
                              const Serve& visit) const {
  return core_->Peek(host, start, count, visit);
}

bool Frontier::Seen(const Url& url) const { return core_->Seen(url); }

void Frontier::Dead(uint64_t start, uint64_t count, const Serve& visit) const {
  core_->Dead(start, count, visit);
}

uint64_t Frontier::ForgetDead(int64_t now) { return core_->ForgetDead(now); }

Frontier::Stats Frontier::stats() const { return core_->stats(); }

std::optional<uint64_t> Frontier::Purge(std::string_view host, int64_t now) {
  return core_->Purge(host, now);
}

void Frontier::Clear() { core_->Clear(); }

std::unique_ptr<Frontier> Frontier::Emptied() const {
  auto empty = std::make_unique<Frontier>(core_->options());
  empty->core_->set_next_id(core_->next_id());
  return empty;
}

uint64_t Frontier::Export(uint64_t cursor, uint64_t count,
                          const std::function<void(const Entry& entry)>& visit) const {
  return core_->Export(cursor, count, visit);
}

Frontier::Verdict Frontier::Import(const Entry& entry, int64_t now) {
  return core_->Import(entry, now);
}

void Frontier::set_observer(FrontierObserver* observer) { core_->set_observer(observer); }

// ---- as an object ----

size_t Frontier::size() const { return core_->size(); }

size_t Frontier::MemoryUsage(size_t /*samples*/) const { return sizeof(*this) + core_->bytes(); }

std::unique_ptr<Object> Frontier::Copy() const {
  std::string bytes;
  {
    Writer out(&bytes, false);
    core_->Save(out);
  }
  Reader in(bytes);
  in.Length();
  return Load(kRdbModule, in);
}

void Frontier::Save(Writer& out) const { core_->Save(out); }

void Frontier::Digest(const std::function<void(std::string_view)>& add) const {
  core_->Digest(add);
}

void Frontier::BeginCut(const PieceSink& sink, bool /*refer*/) { core_->BeginCut(sink); }
bool Frontier::SavePieces(size_t budget) { return core_->SavePieces(budget); }
void Frontier::AbortCut() { core_->AbortCut(); }

}  // namespace sava::types
