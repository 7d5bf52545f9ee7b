// SPDX-License-Identifier: MIT
// The host's side of relay.
#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "files.hpp"
#include "options.hpp"
#include "output.hpp"
#include "receive.hpp"
#include "report.hpp"
#include "send.hpp"

class relay {
 public:
  relay(xio_world_t* world, const options& o) : world_(world), args_(o), me_(xio_my_pe(world)) {}

  int run() {
    open_files();
    open_engines();
    if (me_ == 0) open_storage();
    exchange_size();
    if (me_ == 1) open_storage();
    const auto start = std::chrono::steady_clock::now();
    transfer();
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return close();
  }

 private:
  // The files are opened first, so that an error in them is reported before any data is moved.
  void open_files() {
    if (me_ == 0)
      in_ = std::make_unique<input>(args_.in);
    else
      out_ = std::make_unique<output>(args_.out);
  }

  void open_engines() {
    xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
    attr.route = XIO_ROUTE_RDMA;
    check(xio_ctx_create(world_, &attr, &job_.rdma), "RDMA context");
    attr.route = XIO_ROUTE_SDMA;
    check(xio_ctx_create(world_, &attr, &job_.sdma), "SDMA context");
    const size_t window = args_.slots * args_.chunk;
    job_.chunk = args_.chunk;
    job_.outbox = allocate(window);
    job_.inbox = allocate(window);
    job_.stage = allocate(window);
    void* mail = nullptr;
    check(xio_calloc(world_, 1, sizeof(mailbox), &mail), "mailbox");
    job_.mail = static_cast<mailbox*>(mail);
    void* status = nullptr;
    check(hipHostMalloc(&status, sizeof(int), 0), "status word");
    job_.status = static_cast<int*>(status);
    *job_.status = XIO_OK;
  }

  unsigned char* allocate(size_t bytes) {
    void* block = nullptr;
    check(xio_malloc(world_, bytes, &block), "buffers (a larger XIO_HEAP_SIZE, or a smaller --chunk or --slots)");
    return static_cast<unsigned char*>(block);
  }

  void exchange_size() {
    hipLaunchKernelGGL(send_size, dim3(1), dim3(1), 0, nullptr, job_.rdma, job_.mail, job_.bytes, job_.status);
    wait("exchange of the size");
    if (me_ == 1)
      check(hipMemcpy(&job_.bytes, &job_.mail->file_bytes, sizeof job_.bytes, hipMemcpyDeviceToHost), "size");
  }

  void open_storage() {
    xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
    const bool drive = me_ == 0 && in_->is_drive();
    if (me_ == 0) job_.bytes = in_->bytes();
    attr.bytes = job_.bytes;
    attr.flags = me_ == 0 ? XIO_STORAGE_READ_ONLY : XIO_STORAGE_TRUNCATE;
    if (job_.bytes == 0 && !drive) return;
    const std::string name = me_ == 0 ? in_->storage() : out_->storage();
    check(xio_storage_open(world_, name.c_str(), &attr, &job_.file), me_ == 0 ? args_.in.c_str() : args_.out.c_str());
    if (drive) check(xio_storage_size(world_, job_.file, &job_.bytes, nullptr), "storage size");
  }

  void transfer() {
    if (me_ == 0)
      hipLaunchKernelGGL(send_file, dim3(1), dim3(args_.slots), 0, nullptr, job_);
    else
      hipLaunchKernelGGL(receive_file, dim3(1), dim3(args_.slots), 0, nullptr, job_);
    check(hipDeviceSynchronize(), "kernel");
    hipLaunchKernelGGL(finish, dim3(1), dim3(1), 0, nullptr, job_, 1 - me_);
    check(hipDeviceSynchronize(), "kernel");
  }

  int close() {
    const int status = *job_.status;
    check(hipHostFree(job_.status), "status word");
    std::string report;
    if (job_.bytes != 0) {
      report = engines(world_, me_, job_);
      check(xio_storage_close(world_, job_.file), "close");
    }
    const bool named = me_ == 0 || (status == XIO_OK && out_->take_name());
    if (status != XIO_OK)
      std::fprintf(stderr, "relay: PE %d: %s; %s was not written\n", me_,
                   xio_status_name(static_cast<xio_status_t>(status)), args_.out.c_str());
    if (status == XIO_OK && me_ == 0)
      std::printf("relay: %llu bytes in %.3f s, %.1f MB/s\n", static_cast<unsigned long long>(job_.bytes), seconds_,
                  static_cast<double>(job_.bytes) / 1e6 / seconds_);
    std::fputs(report.c_str(), stdout);
    std::fflush(stdout);
    return status == XIO_OK && named ? 0 : 1;
  }

  void wait(const char* what) {
    check(hipDeviceSynchronize(), what);
    check(static_cast<xio_status_t>(*job_.status), what);
  }

  xio_world_t* world_;
  options args_;
  int me_;
  job job_{};
  std::unique_ptr<input> in_;    // PE 0
  std::unique_ptr<output> out_;  // PE 1
  double seconds_ = 0;
};
