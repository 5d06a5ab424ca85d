#include "http/routes.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "http/front_page.h"
#include "http/problem.h"

namespace sava::http {

namespace {

using Method = protocol::HttpMethod;
using JobSlot = std::unique_ptr<Job>;

constexpr std::string_view kTrouble =
    "Writes are refused: the data cannot be written to the disk. The log of the server tells why.";
constexpr std::string_view kNothingHere = "There is nothing at this path.";

// ---- handlers ----

Step Record(Services& services, Call& call, std::string_view /*name*/, JobSlot* /*job*/) {
  return services.associations.Record(call);
}

Step Top(Services& services, Call& call, std::string_view name, JobSlot* /*job*/) {
  return services.associations.Top(call, name);
}

Step Forget(Services& services, Call& call, std::string_view name, JobSlot* /*job*/) {
  return services.associations.Forget(call, name);
}

Step RecordBatch(Services& /*services*/, Call& call, std::string_view /*name*/, JobSlot* job) {
  *job = Associations::StartBatch(call);
  return (*job)->Go(call);
}

Step TakeFromLimit(Services& services, Call& call, std::string_view name, JobSlot* /*job*/) {
  return services.limits.Take(call, name);
}

Step PeekAtLimit(Services& services, Call& call, std::string_view name, JobSlot* /*job*/) {
  return services.limits.Peek(call, name);
}

Step FrontPage(Services& /*services*/, Call& call, std::string_view /*name*/, JobSlot* /*job*/) {
  WriteFrontPage(call);
  return Step::kDone;
}

Step Health(Services& /*services*/, Call& call, std::string_view /*name*/, JobSlot* /*job*/) {
  if (call.site.refuses_writes) {
    Problem(call.response, 503, kTrouble);
  } else {
    call.response->content_type = kJson;
    call.response->body = R"({"status":"ok"})";
  }
  return Step::kDone;
}

// ---- the table, in the order of the front page ----

constexpr Route kRoutes[] = {
    {.method = Method::kGet, .pattern = "/", .handler = FrontPage},
    {.method = Method::kPost,
     .pattern = "/associations",
     .handler = Record,
     .command = "AFC.ADD",
     .summary = "Records that two keys go together.",
     .options = R"(-H 'Content-Type: application/json' -d '{"key":"u1","associatedKey":"books"}')",
     .example = "/associations"},
    {.method = Method::kGet,
     .pattern = "/associations/{key}",
     .handler = Top,
     .command = "AFC.TOP",
     .summary = "What goes with a key, most frequent first.",
     .example = "/associations/u1?k=5"},
    {.method = Method::kDelete,
     .pattern = "/associations/{key}",
     .handler = Forget,
     .command = "AFC.DROP",
     .summary = "Forgets what goes with a key.",
     .options = "-X DELETE",
     .example = "/associations/u1"},
    {.method = Method::kPost,
     .pattern = "/associations:batch",
     .handler = RecordBatch,
     .body = BodyRule::kDocumentOrLines,
     .command = "AFC.ADD",
     .summary = "Records many.",
     .options =
         R"(-H 'Content-Type: application/json' -d '[{"key":"u1","associatedKey":"books"}]')",
     .example = "/associations:batch"},
    {.method = Method::kPost,
     .pattern = "/v1/limits/{key}",
     .handler = TakeFromLimit,
     .command = "RL.TAKE",
     .summary = "Takes a token from a rate limit.",
     .options = R"(-H 'Content-Type: application/json' -d )"
                R"('{"algorithm":"window","limit":3,"periodMs":60000}')",
     .example = "/v1/limits/u1"},
    {.method = Method::kGet,
     .pattern = "/v1/limits/{key}",
     .handler = PeekAtLimit,
     .command = "RL.PEEK",
     .summary = "Looks at a rate limit without taking.",
     .example = "/v1/limits/u1?algorithm=window&limit=3&periodMs=60000"},
    {.method = Method::kGet,
     .pattern = "/healthz",
     .handler = Health,
     .access = Access::kOpen,
     .summary = "Whether the server is well.",
     .example = "/healthz"},
};

// Whether a request may ask is decided before its method is looked at.
constexpr bool PatternsHaveOneAccess() {
  for (const Route& one : kRoutes) {
    for (const Route& other : kRoutes) {
      if (one.pattern == other.pattern && one.access != other.access) return false;
    }
  }
  return true;
}
static_assert(PatternsHaveOneAccess());

// ---- which row ----

bool Matches(std::string_view pattern, std::string_view path, std::string_view* name) {
  const size_t brace = pattern.find('{');
  if (brace == std::string_view::npos) return path == pattern;
  if (!path.starts_with(pattern.substr(0, brace))) return false;
  *name = path.substr(brace);
  return !name->empty() && name->find('/') == std::string_view::npos;
}

bool Takes(const Route& route, Method method) {
  return route.method == method || (route.method == Method::kGet && method == Method::kHead);
}

struct Target {
  const Route* place = nullptr;  // the first row of the path; nullptr: no such path
  const Route* route = nullptr;  // the row of path and method; nullptr: no such method there
  std::string_view name;         // the path's last segment, as sent
};

Target Find(const protocol::HttpRequest& request) {
  Target target;
  for (const Route& route : kRoutes) {
    std::string_view name;
    if (!Matches(route.pattern, request.path, &name)) continue;
    if (target.place == nullptr) target.place = &route;
    if (!Takes(route, request.method)) continue;
    target.route = &route;
    target.name = name;
    break;
  }
  return target;
}

// The methods of a pattern, as Allow lists them.
std::string Allowed(std::string_view pattern) {
  std::string list;
  for (int i = 0; i <= static_cast<int>(Method::kTrace); ++i) {
    const auto method = static_cast<Method>(i);
    const bool taken = std::ranges::any_of(kRoutes, [&](const Route& route) {
      return route.pattern == pattern && Takes(route, method);
    });
    if (!taken) continue;
    if (!list.empty()) list.append(", ");
    list.append(protocol::MethodName(method));
  }
  return list;
}

bool MayHaveBody(const Route& route, const protocol::HttpRequest& request,
                 protocol::HttpResponse* response) {
  const bool lines = route.body == BodyRule::kDocumentOrLines;
  if (!IsMediaType(request.content_type, kJson) &&
      !(lines && IsMediaType(request.content_type, kJsonLines))) {
    Problem(response, 415, "A body needs Content-Type: application/json.");
    response->AddField("Accept-Post",
                       lines ? "application/json, application/x-ndjson" : "application/json");
    return false;
  }
  if (!request.content_encoding.empty() &&
      !base::EqualsNoCase(request.content_encoding, "identity")) {
    Problem(response, 415, "Compressed bodies are not read here.");
    return false;
  }
  return true;
}

}  // namespace

std::span<const Route> AllRoutes() { return kRoutes; }

bool Routes::Admit(const protocol::HttpRequest& request, const Site& site,
                   protocol::HttpResponse* response) {
  const Target target = Find(request);
  const bool open = target.place != nullptr && target.place->access == Access::kOpen;
  if (!open && !MayEnter(request, site, response)) return false;
  if (target.place == nullptr) {
    Problem(response, 404, kNothingHere);
    return false;
  }
  if (target.route == nullptr) {
    Problem(response, 405, "This path does not take that method.");
    response->AddField("Allow", Allowed(target.place->pattern));
    return false;
  }
  return !request.has_body || MayHaveBody(*target.route, request, response);
}

bool Routes::Guarded(const protocol::HttpRequest& request) {
  const Target target = Find(request);
  return target.place != nullptr && target.place->access == Access::kGuarded;
}

Step Routes::Handle(Call& call, std::unique_ptr<Job>* job) {
  if (*job != nullptr) return (*job)->Go(call);
  const Target target = Find(call.request);
  if (target.route != nullptr) {
    return target.route->handler(services_, call, target.name, job);
  }
  Problem(call.response, 404, kNothingHere);
  return Step::kDone;
}

}  // namespace sava::http
