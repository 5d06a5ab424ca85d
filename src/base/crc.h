// CRC64 (Jones, reflected) as RDB files and DUMP payloads carry it; CRC16 (XMODEM) of cluster
// slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sava::base {

uint64_t Crc64(uint64_t crc, std::string_view data);
uint16_t Crc16(std::string_view data);

// The cluster slot of a key: CRC16 of the part between the first { and the next }, if any.
uint16_t KeySlot(std::string_view key);

}  // namespace sava::base
