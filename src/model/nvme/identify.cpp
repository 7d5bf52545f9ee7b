// SPDX-License-Identifier: MIT
// What the drive says of itself (NVMe base 2.0, 5.17) and the features that it has (5.27).
#include <bit>

#include "model/nvme/controller.hpp"

namespace xio::model::nvme {

namespace w = wire::nvme;

namespace {

template <class T>
void put(std::byte* page, std::uint32_t offset, T value) {
  std::memcpy(page + offset, &value, sizeof value);
}

void put_text(std::byte* page, std::uint32_t offset, std::size_t width, const char* text) {
  std::memset(page + offset, ' ', width);
  std::memcpy(page + offset, text, std::min(width, std::strlen(text)));
}

// Features of any value, which the drive keeps and does nothing about.
bool is_kept_only(w::feature f) {
  return f == w::feature::arbitration || f == w::feature::temperature_threshold || f == w::feature::error_recovery ||
         f == w::feature::interrupt_coalescing || f == w::feature::write_atomicity ||
         f == w::feature::async_event_configuration;
}

}  // namespace

std::uint32_t controller::identify(const sqe& command) {
  std::byte page[w::k_identify_bytes] = {};
  const std::uint32_t nsid = w::nsid_of(command);
  switch (static_cast<w::cns>(command.dw[10] & 0xff)) {
    case w::cns::controller: describe_controller(page); break;
    case w::cns::name_space:
      if (nsid == 0 || nsid > shape_.namespaces) return w::k_invalid_namespace;
      describe_namespace(page);
      break;
    case w::cns::active_namespaces: {
      if (nsid >= 0xfffffffe) return w::k_invalid_namespace;
      std::uint32_t at = 0;
      for (std::uint32_t n = nsid + 1; n <= shape_.namespaces && at < w::k_identify_bytes; ++n, at += 4)
        put<std::uint32_t>(page, at, n);
      break;
    }
    case w::cns::namespace_descriptors:
      if (nsid == 0 || nsid > shape_.namespaces) return w::k_invalid_namespace;
      put<std::uint8_t>(page, 0, 1);  // an EUI64
      put<std::uint8_t>(page, 1, 8);
      put<std::uint32_t>(page, 8, nsid);
      break;
    default: return w::k_invalid_field;
  }
  return to_memory(command, page, sizeof page);
}

void controller::describe_controller(std::byte* page) const {
  put_text(page, w::k_id_sn, 20, "XIO0001");
  put_text(page, w::k_id_mn, 40, "XIO software NVMe drive");
  put_text(page, w::k_id_fr, 8, "2");
  if (shape_.mdts_bytes != 0)
    put<std::uint8_t>(page, w::k_id_mdts, static_cast<std::uint8_t>(std::bit_width(shape_.mdts_bytes / k_page) - 1));
  put<std::uint32_t>(page, w::k_id_ver, regs_.read32(w::k_reg_vs));
  put<std::uint8_t>(page, w::k_id_cntrltype, 1);
  put<std::uint16_t>(page, w::k_id_oacs, shape_.doorbell_buffers ? w::k_oacs_doorbell_buffer_config : 0);
  put<std::uint8_t>(page, w::k_id_acl, 0);
  put<std::uint8_t>(page, w::k_id_aerl, event_desk::k_requests - 1);
  put<std::uint8_t>(page, w::k_id_lpa, w::k_lpa_extended);
  put<std::uint8_t>(page, w::k_id_elpe, event_desk::k_log_entries - 1);
  put<std::uint8_t>(page, w::k_id_sqes, 0x66);
  put<std::uint8_t>(page, w::k_id_cqes, 0x44);
  put<std::uint32_t>(page, w::k_id_nn, shape_.namespaces);
  put<std::uint16_t>(page, w::k_id_oncs,
                     static_cast<std::uint16_t>((shape_.compare ? w::k_oncs_compare : 0) |
                                                (shape_.write_zeroes ? w::k_oncs_write_zeroes : 0)));
  put<std::uint8_t>(page, w::k_id_vwc,
                    static_cast<std::uint8_t>(w::k_vwc_flush_all | (shape_.write_cache ? w::k_vwc_present : 0)));
  put<std::uint32_t>(page, w::k_id_sgls, shape_.sgls);
  const char name[] = "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-0000-0000-000000000001";
  std::memcpy(page + w::k_id_subnqn, name, sizeof name);
}

void controller::describe_namespace(std::byte* page) const {
  put<std::uint64_t>(page, w::k_id_nsze, blocks());
  put<std::uint64_t>(page, w::k_id_ncap, blocks());
  put<std::uint64_t>(page, w::k_id_nuse, blocks());
  put<std::uint8_t>(page, w::k_id_nsattr, file_.read_only() ? 1 : 0);
  const auto lbads = static_cast<std::uint32_t>(std::countr_zero(file_.block_bytes()));
  put<std::uint32_t>(page, w::k_id_lbaf, lbads << 16 | shape_.metadata_bytes);
}

std::uint32_t controller::set_features(const sqe& command, std::uint32_t* result) {
  const std::uint32_t value = command.dw[11];
  const auto f = static_cast<w::feature>(command.dw[10] & 0xff);
  if ((command.dw[10] & w::k_feature_save) != 0) return w::k_feature_not_saveable;
  switch (f) {
    case w::feature::number_of_queues: {
      if (sqs_.size() > 1 || cqs_.size() > 1) return w::k_command_sequence_error;
      if ((value & 0xffff) == 0xffff || value >> 16 == 0xffff) return w::k_invalid_field;
      granted_sqs_ = std::min(w::queue_counts_sqs(value), shape_.max_queues);
      granted_cqs_ = std::min(w::queue_counts_cqs(value), shape_.max_queues);
      *result = w::make_queue_counts(granted_sqs_, granted_cqs_);
      return w::k_ok;
    }
    case w::feature::volatile_write_cache:
      if (!shape_.write_cache || (value & ~1u) != 0) return w::k_invalid_field;
      break;
    case w::feature::power_management:
      if (value != 0) return w::k_invalid_field;  // there is power state 0
      break;
    default:
      if (!is_kept_only(f)) return w::k_invalid_field;
  }
  settings_[command.dw[10] & 0xff] = value;
  return w::k_ok;
}

// Without a cache, or with it switched off, what was written is on the medium when the command completes.
bool controller::write_cache_on() const {
  const auto kept = settings_.find(static_cast<std::uint32_t>(w::feature::volatile_write_cache));
  return shape_.write_cache && (kept == settings_.end() || kept->second != 0);
}

std::uint32_t controller::get_features(const sqe& command, std::uint32_t* result) {
  const auto kept = settings_.find(command.dw[10] & 0xff);
  const auto f = static_cast<w::feature>(command.dw[10] & 0xff);
  switch (f) {
    case w::feature::number_of_queues:
      *result = w::make_queue_counts(std::max(1u, granted_sqs_), std::max(1u, granted_cqs_));
      return w::k_ok;
    case w::feature::volatile_write_cache:
      if (!shape_.write_cache) return w::k_invalid_field;
      *result = kept == settings_.end() ? 1 : kept->second;
      return w::k_ok;
    default:
      if (f != w::feature::power_management && !is_kept_only(f)) return w::k_invalid_field;
      *result = kept == settings_.end() ? 0 : kept->second;
      return w::k_ok;
  }
}

}  // namespace xio::model::nvme
