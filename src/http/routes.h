// Routes: which request goes where. Turns requests into commands and their replies into responses;
// knows no sockets. One per event-loop thread, which it belongs to. The routes themselves are the
// table in routes.cc.
#pragma once

#include <memory>

#include "http/call.h"
#include "http/route.h"

namespace sava::http {

class Routes {
 public:
  // Judges a request by its head. False with the answer in *response when it is refused: its body
  // is not wanted.
  static bool Admit(const protocol::HttpRequest& request, const Site& site,
                    protocol::HttpResponse* response);

  // Whether an admitted request has proved whose it is: the others anybody may make.
  static bool Guarded(const protocol::HttpRequest& request);

  // Answers an admitted request. *job holds what a request of several steps has to remember, and is
  // empty at its first.
  Step Handle(Call& call, std::unique_ptr<Job>* job);

 private:
  Services services_;
};

}  // namespace sava::http
