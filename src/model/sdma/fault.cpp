// SPDX-License-Identifier: MIT
#include "model/sdma/fault.hpp"

namespace xio::model::sdma {

const char* text_of(fault f) {
  switch (f) {
    case fault::none: return "no fault";
    case fault::pointer_backwards: return "the doorbell went backwards";
    case fault::pointer_unaligned: return "the doorbell is no multiple of 4";
    case fault::pointer_beyond_ring: return "more bytes were rung than the ring holds";
    case fault::pointer_not_stored: return "the doorbell is ahead of the write pointer in memory";
    case fault::bad_op: return "the engine has no such op";
    case fault::reserved_bit: return "a bit that must be 0 is set";
    case fault::bad_count: return "the count is beyond the engine's limit";
    case fault::straddle: return "the packet goes over the ring's end";
    case fault::cut_short: return "the doorbell was rung in the middle of the packet";
    case fault::unaligned: return "an address, a pitch or a count is not aligned";
    case fault::not_mapped: return "an address is not mapped";
    case fault::overlap: return "source and destination overlap";
    case fault::poll_gave_up: return "the polled word never got its value";
    case fault::unsupported: return "the packet asks for what the model does not do";
    case fault::bad_pitch: return "a tile's rows or slices run into each other";
  }
  return "unknown fault";
}

}  // namespace xio::model::sdma
