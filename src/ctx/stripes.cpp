// SPDX-License-Identifier: MIT
#include "ctx/stripes.hpp"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/error.hpp"
#include "transport/nvme/file_name.hpp"

namespace xio {
namespace {

constexpr std::uint64_t k_stripe = 64 << 10;
constexpr std::uint64_t k_most_stripe = std::uint64_t{1} << 40;
constexpr std::uint64_t k_most_bytes = std::uint64_t{1} << 63;

bool begins_with_scheme(const std::string& text, std::size_t at) {
  for (const char* scheme : {"file:", "block:", "nvme:", "kmod:"})
    if (text.compare(at, std::char_traits<char>::length(scheme), scheme) == 0) return true;
  return false;
}

// The next comma from `at` on that stands in no quoted path. `at`: the beginning of a name, or within one.
std::size_t comma_behind(const std::string& names, std::size_t at) {
  constexpr const char* k_quoted = "file:\"";
  if (names.compare(at, 6, k_quoted) == 0) {
    const std::size_t end = nvme::end_of_quotes(names, at + 5);
    if (end == std::string::npos) return end;
    at = end;
  }
  return names.find(',', at);
}

std::uint64_t stripe_bytes(const xio_storage_attr_t& attr) {
  const std::uint64_t bytes =
      attr.stripe_bytes != 0 ? attr.stripe_bytes : std::max<std::uint64_t>(k_stripe, attr.block_bytes);
  if (!std::has_single_bit(bytes) || bytes < 512 || bytes > k_most_stripe)
    fail(XIO_ERR_CONFIG, "xio_storage_attr_t.stripe_bytes is {}; use a power of two from a block (512 at least) to {}",
         bytes, k_most_stripe);
  return bytes;
}

// Equal for two names of one file. Two links to it are not found out.
std::string identity(const std::string& name) {
  constexpr const char* k_file = "file:";
  if (!name.starts_with(k_file)) return name;
  std::error_code none;
  const std::string path = nvme::parse_file_name(name.substr(5), name).path;
  const auto full = std::filesystem::weakly_canonical(std::filesystem::absolute(path, none), none);
  return k_file + (none ? path : full.string());
}

}  // namespace

std::vector<std::string> member_names(const std::string& names) {
  std::vector<std::string> out;
  std::size_t from = 0;
  for (std::size_t comma = comma_behind(names, 0); comma != std::string::npos; comma = comma_behind(names, comma + 1)) {
    if (!begins_with_scheme(names, comma + 1)) continue;
    out.push_back(names.substr(from, comma - from));
    from = comma + 1;
  }
  out.push_back(names.substr(from));
  if (out.size() > dev::k_max_storage_members)
    fail(XIO_ERR_ARG, "cannot open {}: {} controllers were named and a storage has at most {}", names, out.size(),
         dev::k_max_storage_members);
  if (out.size() == 1) return out;
  std::set<std::string> seen;
  for (const std::string& one : out)
    if (!seen.insert(identity(one)).second)
      fail(XIO_ERR_ARG, "cannot open {}: {} is named twice; name each controller once", names, one);
  return out;
}

xio_storage_attr_t member_attr(const xio_storage_attr_t& attr, std::uint32_t members) {
  xio_storage_attr_t a = attr;
  if (members == 1) return a;
  if (std::max(1u, attr.queues) * members > dev::k_max_storage_queues)
    fail(XIO_ERR_ARG, "{} queues for each of {} controllers were asked for; a storage has at most {}", attr.queues,
         members, dev::k_max_storage_queues);
  const std::uint64_t stripe = stripe_bytes(attr);
  if (attr.bytes != 0) {
    const std::uint64_t stripes = (attr.bytes - 1) / stripe + 1;
    a.bytes = (stripes + members - 1) / members * stripe;
  }
  return a;
}

dev::storage_view stripe(const std::vector<std::string>& names, const std::vector<dev::storage_view>& views,
                         const xio_storage_attr_t& attr) {
  dev::storage_view all = views.front();
  const auto members = static_cast<std::uint32_t>(views.size());
  if (members == 1) return all;
  const std::uint64_t bytes = stripe_bytes(attr);
  bool apart = false;
  for (std::size_t m = 0; m < views.size(); ++m) {
    const dev::storage_view& v = views[m];
    if ((v.space == dev::bus_space::software) != (all.space == dev::bus_space::software))
      fail(
          XIO_ERR_UNSUPPORTED,
          "{} and {} are drives of different kinds, which see memory at different addresses; put stripes over files or "
          "over drives, or open each by itself",
          names[0], names[m]);
    if (v.block_bytes != all.block_bytes || v.page_bytes != all.page_bytes)
      fail(XIO_ERR_ARG, "{} has blocks of {} bytes and {} of {}; stripes need equal blocks", names[m], v.block_bytes,
           names[0], all.block_bytes);
    if (v.block_bytes > bytes)
      fail(XIO_ERR_ARG, "stripes of {} bytes are less than a block of {} ({} bytes); raise stripe_bytes", bytes,
           names[m], v.block_bytes);
    all.bytes = std::min(all.bytes, v.bytes);
    all.transfer_bytes = std::min(all.transfer_bytes, v.transfer_bytes);
    all.member_queues = std::min(all.member_queues, v.queue_count);
    all.features &= v.features;
    apart |= v.space != all.space;
    all.read_only |= v.read_only;
  }
  all.bytes = all.bytes / bytes * bytes;
  if (all.bytes > k_most_bytes / members)
    fail(XIO_ERR_ARG, "cannot put stripes over {} and others: {} bytes of each of {} are more than {}; use fewer",
         names[0], all.bytes, members, k_most_bytes);
  all.bytes *= members;
  if (all.bytes == 0)
    fail(XIO_ERR_ARG,
         "cannot put stripes of {} bytes over {}: the smallest has less than one; choose a smaller stripe_bytes", bytes,
         names[0]);
  if (apart) all.features |= dev::storage_apart;
  all.members = members;
  all.queue_count = all.member_queues * members;
  all.stripe_log2 = static_cast<std::uint32_t>(std::countr_zero(bytes));
  return all;
}

}  // namespace xio
