// Where the block-scaled matrix products of Blackwell want the scale of a block: tiles of 128 rows
// by 4 blocks, 512 bytes each, rows 32 apart side by side (cuBLAS, "1D block scaling factors
// layout").
#pragma once

#include <cstdint>

#include "plimsoll/numerics/host_device.h"

namespace plimsoll {

// Bytes of the scales of `rows` rows of `blocks` blocks, both padded to whole tiles.
PLIMSOLL_HD constexpr int64_t swizzled_bytes(int64_t rows, int64_t blocks) {
  return (rows + 127) / 128 * ((blocks + 3) / 4) * 512;
}

// Byte offset of the scale of block `block` of row `row`, of `blocks` blocks a row.
PLIMSOLL_HD constexpr int64_t swizzled_offset(int64_t row, int64_t block, int64_t blocks) {
  const int64_t tile = row / 128 * ((blocks + 3) / 4) + block / 4;
  return tile * 512 + row % 32 * 16 + row % 128 / 32 * 4 + block % 4;
}

}  // namespace plimsoll
