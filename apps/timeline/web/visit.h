// One request with what every controller needs of it: who it is from, the form's fields, and
// whether the answer is a page or JSON.
#pragma once

#include <httplib.h>

#include <functional>
#include <optional>
#include <string>

#include "services/application.h"
#include "web/page.h"

namespace timeline {

class Visit {
 public:
  Visit(Application* application, const httplib::Request& request, httplib::Response* response);

  Application& application() { return *application_; }
  const std::optional<Session>& session() const { return session_; }
  Id user() const { return session_ ? session_->user : 0; }
  const std::string& cookie() const { return cookie_; }
  std::string address() const { return request_.remote_addr; }
  std::int64_t now() const { return now_; }

  // A field of a form or of the query; empty when it is not there.
  std::string Field(const std::string& name) const;
  std::optional<std::int64_t> NumberField(const std::string& name) const;
  // The field `page`, from 0; 0 when it is none, and never so large that a product with it
  // overflows.
  std::int64_t PageNumber() const;
  // The number in the n-th group of the route.
  std::optional<Id> PathId(std::size_t group) const;
  bool form_token_fits() const;

  PageFrame Frame(const std::string& title) const;
  void Answer(int status, const PageFrame& frame, const std::string& content,
              const std::string& json);
  // After a change: JSON, or on to another page.
  void Done(const std::string& location, const std::string& json);
  void Refuse(int status, const std::string& message);
  void SetSession(const std::string& token);
  void ClearSession();

 private:
  std::string CookieOf(const std::string& name) const;
  void Send(int status, const std::string& body, const char* type);

  Application* application_;
  const httplib::Request& request_;
  httplib::Response* response_;
  std::int64_t now_;
  bool json_;
  std::string cookie_;  // the session's token, or a visitor's
  std::optional<Session> session_;
};

enum class Access { kAnybody, kSignedIn, kAdministrator };

// Registers a page (GET) or a change (POST; refused without the form's token).
using Action = std::function<void(Visit&)>;
void OnGet(httplib::Server* server, Application* application, const std::string& pattern,
           Access access, Action action);
void OnPost(httplib::Server* server, Application* application, const std::string& pattern,
            Access access, Action action);

int StatusOf(Outcome outcome);

}  // namespace timeline
