// SPDX-License-Identifier: MIT
#include "proxy/device_events.hpp"

#include "base/log.hpp"

namespace xio::proxy {

namespace {

// A device has one list of events for all of its ports; these name one (ibv_get_async_event(3)).
bool names_port(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER: return true;
    default: return false;
  }
}

}  // namespace

bool report_event(const std::string& name, int port, ibv_event_type type, int about) {
  if (names_port(type) && about != port) return false;
  switch (type) {
    case IBV_EVENT_PORT_ERR:
      log::warn(
          "{} port {}: the link is down; ops fail when the device has tried often enough (XIO_RDMA_TIMEOUT, "
          "XIO_RDMA_RETRY). When it is up again, xio_ctx_recover brings contexts back",
          name, port);
      return false;
    case IBV_EVENT_PORT_ACTIVE: log::warn("{} port {}: the link is up", name, port); return false;
    case IBV_EVENT_DEVICE_FATAL:
      log::error(
          "{}: the device has failed and does nothing any more for this process, so all ops on it fail; see the "
          "kernel's log. After its reset xio_ctx_recover opens it again on all PEs, and the heap stays",
          name);
      return true;
    default: log::warn("{} port {}: {}", name, port, ibv_event_type_str(type)); return false;
  }
}

}  // namespace xio::proxy
