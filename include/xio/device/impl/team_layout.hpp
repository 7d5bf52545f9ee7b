// SPDX-License-Identifier: MIT
// The symmetric work memory of a team, which host and device share. A channel has a head, two slots, and two places of
// the same size from which engines send. A slot has a message for each member, which that member writes: a header word,
// and words of packets behind it. Slots take turns: a member that sends message e has heard all members in e - 1, so
// all have read e - 2. Behind these lie three areas for what a reduce combines, which take turns too: a part for each
// other member, which that member writes.
#pragma once
#include <cstdint>

#include "xio/team.h"

namespace xio::dev {

// Of a channel, for its own PE.
struct alignas(128) channel_state {
  std::uint64_t epoch;         // of the last exchange
  std::uint64_t failed_epoch;  // of the last that failed,
  std::uint32_t status;        // and how
  std::uint32_t broken;        // a status that stays, or 0
  std::uint64_t team;          // mark_of it, which a team loses when it is destroyed
  // Of a call by many workgroups (src/stream/steps.hpp), all 0 between two.
  std::uint64_t found;       // by the first that came
  std::uint32_t come, left;  // workgroups
  // Over a network (team_network.hpp).
  std::uint64_t cast_epoch;  // after which exchange the last cast was,
  std::uint32_t casts;       // and how many there have been since
  std::uint32_t awaited;     // the member that a tree or round waits for, plus 1; or 0
};

// The token is random, so that memory which was a team's and has other data is not taken for that team's.
XIO_TEAM_FUNCTION constexpr std::uint64_t mark_of(std::uint32_t token, std::uint64_t id) {
  return (std::uint64_t{token} << 32) | (id & 0xffffffff);
}

// Behind it: words of the rounds by which many members synchronise, of two exchanges that take turns. Sizes that go
// with them over a network lie in the upper half.
constexpr std::uint32_t k_team_rounds = 32, k_round_sizes = 16;
constexpr std::uint64_t k_channel_head_bytes = sizeof(channel_state) + 2 * k_team_rounds * sizeof(std::uint64_t);

constexpr std::uint32_t k_most_packet_bytes = 4096;
// Where `wanted` allows as many (XIO_TEAM_PACKETS).
XIO_TEAM_FUNCTION constexpr std::uint32_t team_packet_bytes(std::uint64_t n, std::uint32_t wanted) {
  const std::uint32_t most = n <= 4 ? k_most_packet_bytes : n <= 8 ? 2048 : n <= 32 ? 512 : 128;
  return wanted < most ? wanted : most;
}
XIO_TEAM_FUNCTION constexpr std::uint64_t team_message_bytes(std::uint32_t packet_bytes) {
  return 16 + 2 * std::uint64_t{packet_bytes};
}
XIO_TEAM_FUNCTION constexpr std::uint64_t team_slot_bytes(std::uint64_t n, std::uint32_t packet_bytes) {
  return n * team_message_bytes(packet_bytes);
}
XIO_TEAM_FUNCTION constexpr std::uint64_t team_messages_bytes(std::uint64_t n, std::uint32_t packet_bytes) {
  return (k_channel_head_bytes + 4 * team_slot_bytes(n, packet_bytes) + 127) / 128 * 128;
}
constexpr std::uint32_t k_team_areas = 3;
// Of one area, where XIO_TEAM_AREA asks for `wanted`. A part of it is a multiple of 16 bytes, and 64 at least.
XIO_TEAM_FUNCTION constexpr std::uint64_t team_area_bytes(std::uint64_t n, std::uint64_t wanted) {
  return ((wanted > 64 * n ? wanted : 64 * n) + 127) / 128 * 128;
}
// By 32 bits, which GPUs divide in a quarter of the time: areas are smaller (XIO_TEAM_AREA, src/base/options.def).
XIO_TEAM_FUNCTION constexpr std::uint64_t team_part_bytes(std::uint32_t n, std::uint64_t area_bytes) {
  return static_cast<std::uint32_t>(area_bytes) / (n > 1 ? n - 1 : 1) / 16 * 16;
}
// Behind the areas: what goes down trees over a network, see team_network.hpp. A cast has a place for each round, a
// word and the data behind it: the member 2^r before this one writes to place r.
constexpr std::uint32_t k_casts = 8, k_most_cast_bytes = 256, k_least_cast = 16;  // members
XIO_TEAM_FUNCTION constexpr std::uint32_t team_cast_bytes(std::uint32_t packet_bytes) {
  return packet_bytes < k_most_cast_bytes ? packet_bytes : k_most_cast_bytes;
}
XIO_TEAM_FUNCTION constexpr std::uint32_t team_rounds_of(std::uint64_t n, std::uint32_t from = 0) {
  return std::uint64_t{1} << from >= n ? from : team_rounds_of(n, from + 1);
}
XIO_TEAM_FUNCTION constexpr std::uint64_t team_casts_at(std::uint64_t n, std::uint32_t packet_bytes,
                                                        std::uint64_t area_bytes) {
  return team_messages_bytes(n, packet_bytes) + k_team_areas * area_bytes;
}
XIO_TEAM_FUNCTION constexpr std::uint64_t team_channel_bytes(std::uint64_t n, std::uint32_t packet_bytes,
                                                             std::uint64_t area_bytes) {
  const std::uint64_t casts = k_casts * team_rounds_of(n) * std::uint64_t{16 + team_cast_bytes(packet_bytes)};
  return (team_casts_at(n, packet_bytes, area_bytes) + casts + 127) / 128 * 128;
}
// As the options ask.
struct team_wishes {
  std::uint64_t area;      // XIO_TEAM_AREA
  std::uint32_t packets;   // XIO_TEAM_PACKETS
  std::uint32_t channels;  // XIO_TEAM_CHANNELS
};
XIO_TEAM_FUNCTION constexpr std::uint64_t team_work_bytes(std::uint64_t n, const team_wishes& wanted) {
  return wanted.channels * team_channel_bytes(n, team_packet_bytes(n, wanted.packets), team_area_bytes(n, wanted.area));
}

}  // namespace xio::dev
