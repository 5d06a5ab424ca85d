// Values of our types to and from the items that a host reads and writes.
//
// Objects write bytes (types::Writer); ItemStream takes those apart again, with no more than one
// item in memory, and gives the host each item, which then writes the same bytes. HostItems is the
// way back for types::Reader.
//
// Neither is thread-safe; ItemStream is used in a forked child and takes no lock.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "module/host_api.h"
#include "types/value/save.h"

namespace sava::module {

class ItemStream {
 public:
  explicit ItemStream(host::Io* io) : io_(io) {}

  // The next bytes of a module value, its id and its end mark included: the host writes these two.
  void Write(std::string_view bytes);

 private:
  // Hands one item on and returns its size; 0 when it has not come completely.
  size_t One(std::string_view bytes);

  host::Io* io_;
  std::string rest_;
  bool has_id_ = false;
};

class HostItems final : public types::ItemSource {
 public:
  explicit HostItems(host::Io* io) : io_(io) {}

  bool Read(int64_t* value) override;
  bool Read(uint64_t* value) override;
  bool Read(float* value) override;
  bool Read(double* value) override;
  bool Read(std::string* value) override;

 private:
  bool good() const { return host::IsIOError(io_) == 0; }

  host::Io* io_;
};

}  // namespace sava::module
