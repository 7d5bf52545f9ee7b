// SPDX-License-Identifier: MIT
// DEVX as Linux drivers/infiniband/hw/mlx5/devx.c lets users have it.
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#include <cstdio>

#include "uverbs/firmware/fields.hpp"
#include "uverbs/kernel/context.hpp"

namespace uverbs {
namespace {

namespace fw = firmware;

// The command that ends what a command makes, 0: it makes nothing.
std::uint32_t destroyer_of(std::uint32_t opcode) {
  if (opcode == fw::op_create_cq) return fw::op_destroy_cq;
  return opcode == fw::op_create_qp ? std::uint32_t{fw::op_destroy_qp} : 0;
}

bool is_modification(std::uint32_t opcode) {
  return opcode == fw::op_rst2init_qp || opcode == fw::op_init2rtr_qp || opcode == fw::op_rtr2rts_qp ||
         opcode == fw::op_2err_qp || opcode == fw::op_2rst_qp;
}
bool is_query(std::uint32_t opcode) { return opcode == fw::op_query_cq || opcode == fw::op_query_qp; }

std::uint32_t opcode_of(const unsigned char* in) { return static_cast<std::uint32_t>(fw::get(in, fw::head::opcode)); }

constexpr std::size_t k_least = 16;  // of commands and replies: MLX5_ST_SZ_BYTES(general_obj_in_cmd_hdr)

}  // namespace

int context::on_devx(const call& c) {
  if (!devx_) return EINVAL;
  if (c.method() == MLX5_IB_METHOD_DEVX_QUERY_EQN) {
    if (const int err = c.check({MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC, MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN}); err != 0)
      return err;
    if (static_cast<std::uint32_t>(c.value(MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC)) != 0) return EINVAL;
    const std::uint32_t number = fw::k_event_queue;
    c.write(MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, &number, sizeof number);
    return 0;
  }
  // Only general commands go without an object, and no general command is needed here: capabilities are not known.
  return c.method() == MLX5_IB_METHOD_DEVX_OTHER ? EINVAL : EPROTONOSUPPORT;
}

int context::create_object(const call& c) {
  if (const int err = c.check({MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN,
                               MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT});
      err != 0)
    return err;
  const std::size_t in_bytes = c.room(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN),
                    out_bytes = c.room(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT);
  if (in_bytes < k_least || out_bytes < k_least) return EINVAL;
  std::vector<unsigned char> in(c.input(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN),
                                c.input(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN) + in_bytes);
  const std::uint32_t opcode = opcode_of(in.data());
  if (destroyer_of(opcode) == 0) return EINVAL;
  fw::put(in.data(), fw::head::uid, 1);  // the kernel's mark of this context
  std::vector<unsigned char> out(out_bytes);
  const fw::verdict v = device_.processor().execute(in.data(), in_bytes, out.data(), out_bytes);
  c.write(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, out.data(), out_bytes);
  if (device_.chosen().log && v)
    std::fprintf(stderr, "simulated firmware: command %#x refused, status %#x, syndrome %#x\n", opcode,
                 static_cast<unsigned>(v.what), static_cast<unsigned>(v.why));
  if (v) return EREMOTEIO;
  object o{kind::command};
  o.id = static_cast<std::uint32_t>(fw::get(out.data(), fw::reply::object));
  fw::put(o.destroy.data(), fw::head::opcode, destroyer_of(opcode));
  fw::put(o.destroy.data(), fw::head::uid, 1);
  fw::put(o.destroy.data(), fw::head::object, o.id);
  c.set_handle(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, keep(o));
  return 0;
}

// A command may name no object but the handle's (devx_is_valid_obj_id).
int context::command_on(const call& c, std::uint16_t handle, std::uint16_t in_id, std::uint16_t out_id) {
  if (const int err = c.check({handle, in_id, out_id}); err != 0) return err;
  const object* o = find(c.value(handle), kind::command);
  const std::size_t in_bytes = c.room(in_id), out_bytes = c.room(out_id);
  if (o == nullptr) return ENOENT;
  if (in_bytes < k_least || out_bytes < k_least) return EINVAL;
  std::vector<unsigned char> in(c.input(in_id), c.input(in_id) + in_bytes), out(out_bytes);
  const std::uint32_t opcode = opcode_of(in.data());
  if (handle == MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE && in_id == MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN &&
      c.method() == MLX5_IB_METHOD_DEVX_OBJ_QUERY) {
    if (!is_query(opcode)) return EINVAL;
  } else if (!is_modification(opcode)) {
    return EINVAL;
  }
  if (fw::get(in.data(), fw::head::object) != o->id) return EINVAL;
  fw::put(in.data(), fw::head::uid, 1);
  const fw::verdict v = device_.processor().execute(in.data(), in_bytes, out.data(), out_bytes);
  c.write(out_id, out.data(), out_bytes);
  if (device_.chosen().log && v)
    std::fprintf(stderr, "simulated firmware: command %#x refused, status %#x, syndrome %#x\n", opcode,
                 static_cast<unsigned>(v.what), static_cast<unsigned>(v.why));
  return v ? EREMOTEIO : 0;
}

int context::on_devx_object(const call& c) {
  if (!devx_) return EINVAL;
  switch (c.method()) {
    case MLX5_IB_METHOD_DEVX_OBJ_CREATE: return create_object(c);
    case MLX5_IB_METHOD_DEVX_OBJ_MODIFY:
      return command_on(c, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN,
                        MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT);
    case MLX5_IB_METHOD_DEVX_OBJ_QUERY:
      return command_on(c, MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE, MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN,
                        MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT);
    case MLX5_IB_METHOD_DEVX_OBJ_DESTROY:
      return remove(static_cast<std::uint32_t>(c.value(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE)), kind::command);
    default: return EPROTONOSUPPORT;
  }
}

int context::on_umem(const call& c) {
  if (!devx_) return EINVAL;
  if (c.method() == MLX5_IB_METHOD_DEVX_UMEM_DEREG)
    return remove(static_cast<std::uint32_t>(c.value(MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE)), kind::umem);
  if (c.method() != MLX5_IB_METHOD_DEVX_UMEM_REG) return EPROTONOSUPPORT;
  if (const int err =
          c.check({MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, MLX5_IB_ATTR_DEVX_UMEM_REG_LEN,
                   MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID},
                  {MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP, MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD});
      err != 0)
    return err;
  const std::uint64_t at = c.value(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR), bytes = c.value(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN);
  const std::uint32_t access = static_cast<std::uint32_t>(c.value(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS));
  if ((access & ~(IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE | IB_UVERBS_ACCESS_REMOTE_READ)) != 0)
    return EINVAL;
  auto* memory = reinterpret_cast<unsigned char*>(at);
  if (c.find(MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD) != nullptr) {
    // Then the address is the offset (devx_umem_get).
    memory = map_dmabuf(static_cast<int>(c.value(MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD)), at, bytes);
    if (memory == nullptr) return EINVAL;
  } else if (!is_mapped(at, bytes)) {
    return EFAULT;
  }
  object o{kind::umem};
  o.id = device_.add_umem({memory, bytes});
  c.set_handle(MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, keep(o));
  c.write(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, &o.id, sizeof o.id);
  return 0;
}

// UVERBS_METHOD_DMABUF_ALLOC (Linux 7.2, uverbs_std_types_dmabuf.c): mlx5 alone exports, and pages of its page object.
int context::export_page(const call& c) {
  if (c.method() != 0 || device_.chosen().no_export || device_.chosen().nic != nic_kind::mlx5) return EPROTONOSUPPORT;
  if (const int err = c.check({0, 1}); err != 0) return err;
  const auto is_it = [&](const auto& o) {
    return o.second.what == kind::page && std::uint64_t{o.second.id} << k_shift == c.value(1);
  };
  if (std::none_of(objects_.begin(), objects_.end(), is_it)) return EINVAL;
  c.set_handle(0, static_cast<std::uint64_t>(export_doorbell_page(static_cast<std::uint32_t>(c.value(1) >> k_shift))));
  return 0;
}

int context::on_page(const call& c) {
  if (c.method() == MLX5_IB_METHOD_UAR_OBJ_DESTROY)
    return remove(static_cast<std::uint32_t>(c.value(MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE)), kind::page);
  if (c.method() != MLX5_IB_METHOD_UAR_OBJ_ALLOC) return EPROTONOSUPPORT;
  if (const int err = c.check({MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE,
                               MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH,
                               MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID});
      err != 0)
    return err;
  const auto type = static_cast<std::uint32_t>(c.value(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE));
  device_.count_page(type);
  if (device_.chosen().no_uncached && type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF) return EOPNOTSUPP;
  if (type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF && type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC) return EOPNOTSUPP;
  object o{kind::page};
  o.id = device_.add_page();
  if (o.id == 0) return ENOMEM;
  const std::uint64_t offset = std::uint64_t{o.id} << k_shift;
  const std::uint32_t length = 4096;
  c.set_handle(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, keep(o));
  c.write(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, &offset, sizeof offset);
  c.write(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, &length, sizeof length);
  c.write(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, &o.id, sizeof o.id);
  return 0;
}

}  // namespace uverbs
