// SPDX-License-Identifier: MIT
#include "bootstrap/pairwise.hpp"

#include "bootstrap/bytes.hpp"

namespace xio::bootstrap {

namespace {

// Each rank sends this before its cell. A rank that is at another call sends other bytes, which must not be taken for a
// size.
constexpr std::uint64_t k_size_magic = 0x656c6c6563344f58;
using size_record = std::array<std::byte, 16>;

size_record make_size(std::size_t bytes) {
  size_record out;
  store_le64(out.data(), k_size_magic);
  store_le64(out.data() + 8, bytes);
  return out;
}

}  // namespace

// A channel that has failed stays so.
template <class Exchange>
auto pairwise_channel::guarded(Exchange&& exchange) {
  if (broken_) fail(broken_->status(), "the {} bootstrap of rank {} broke before: {}", word_, rank(), broken_->what());
  check_usable();
  try {
    return exchange();
  } catch (const error& e) {
    broken_ = e;
    throw;
  }
}

std::vector<std::byte> pairwise_channel::allgather(std::span<const std::byte> mine) {
  const auto n = static_cast<std::size_t>(size());
  check_allgather_size(mine.size());
  return guarded([&] {
    ++number_;
    return swap(cells::same(mine, n), std::vector<std::size_t>(n, mine.size())).take_bytes();
  });
}

std::vector<std::size_t> pairwise_channel::swap_sizes(const cells& mine) {
  cells sizes;
  for (std::size_t r = 0; r < mine.count(); ++r) sizes.add(make_size(mine[r].size()));
  ++number_;
  const cells records = swap(std::move(sizes), std::vector<std::size_t>(mine.count(), sizeof(size_record)));
  std::vector<std::size_t> out;
  std::uint64_t all = 0;
  for (std::size_t r = 0; r < records.count(); ++r) {
    if (load_le64(records[r].data()) != k_size_magic)
      fail(XIO_ERR_STATE, "rank {} is at another kind of exchange {}; every rank must make the same collective calls",
           r, number_);
    const std::uint64_t bytes = load_le64(records[r].data() + 8);
    if (bytes > k_data_max || (all += bytes) > k_data_max)
      fail(XIO_ERR_PEER, "rank {} has {} bytes for rank {} in exchange {}, and {} in all is the most", r, bytes, rank(),
           number_, k_data_max);
    out.push_back(bytes);
  }
  return out;
}

cells pairwise_channel::all_to_all(const cells& mine) {
  check_cells(mine);
  return guarded([&] {
    const auto sizes = swap_sizes(mine);
    ++number_;
    return swap(mine, sizes);
  });
}

std::string pairwise_channel::text_of_silent(const std::string& who) const {
  return fmt::format(
      "{} did not take part in exchange {} of rank {} within {} ms; check that every rank runs and makes the same "
      "collective calls, or raise XIO_TIMEOUT_MS",
      who, number_, rank(), timeout_ms_);
}

std::string pairwise_channel::text_of_other_size(std::size_t rank, std::size_t wanted) const {
  return fmt::format(
      "rank {} gave another number of bytes than the {} of exchange {}; every rank must make the same collective calls",
      rank, wanted, number_);
}

}  // namespace xio::bootstrap
