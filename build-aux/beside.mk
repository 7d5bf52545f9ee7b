# SPDX-License-Identifier: MIT
# Libraries and programs beside those of the configured platform, made of the same objects: no source of src/ but those of
# src/gpu and the kernels of src/stream depends on the platform, and none but two on software devices. In GNU make's own words, hence not part of Makefile.am.

# ---- a libxio of other objects: without/ has no software devices, crypto-openssl/ and crypto-none/ prove connections otherwise ----
# Programs that are linked with libxio.so use it by LD_LIBRARY_PATH=FOLDER/.libs (tests/without_models, tests/mpi/crypto.sh).
# beside_folder FOLDER,OBJECTS
define beside_folder
$(1)/libxio.la: $(2) libxio.map
	@$$(MKDIR_P) $$(@D)
	$$(AM_V_CXXLD)$$(CXXLINK) $$(library_ldflags) -release $$(gpu) -rpath $$(libdir) $$(filter %.lo,$$^) $$(XIO_LIBS)
$(1)/libxio_inside.la: $(2)
	@$$(MKDIR_P) $$(@D)
	$$(AM_V_CXXLD)$$(CXXLINK) $$(XIO_LDFLAGS) $$(filter %.lo,$$^) $$(XIO_LIBS)
# Tests that look inside, of files alone: make without/chosen CHOSEN='tests/unit/options.cpp ..'
$(1)/chosen: $$(addsuffix .$$(OBJEXT),$$(basename $$(chosen_sources))) $(1)/libxio_inside.la choose
	$$(AM_V_CXXLD)$$(CXXLINK) $$(XIO_LDFLAGS) -no-install $$(filter %.$$(OBJEXT),$$^) $(1)/libxio_inside.la $$(GTEST_MAIN_LIBS)
$(1)/tests/%: tests/%.$$(OBJEXT) $(1)/libxio_inside.la
	@$$(MKDIR_P) $$(@D)
	$$(AM_V_CXXLD)$$(CXXLINK) $$(XIO_LDFLAGS) -no-install $$< $(1)/libxio_inside.la $$(GTEST_MAIN_LIBS)
$(1)/xio-info: $$(xio_info_OBJECTS) $(1)/libxio_inside.la
	$$(AM_V_CXXLD)$$(CXXLINK) $$(XIO_LDFLAGS) -no-install $$^
endef
$(eval $(call beside_folder,without,$(room_objects) $(without_software) $(platform_objects)))
$(foreach which,openssl none,$(eval $(call beside_folder,crypto-$(which),$(filter-out $(crypto_object),$(library_objects)) src/base/crypto_$(which).lo)))

# ---- for AMD GPUs ------------------------------------------------------------------------------------------------------
# Folders that look like build folders of the platform hip: hip-gfx90a/ and its like for one GPU, on which tests/amdgpu/check
# runs, and hip/ for all that hipcc knows (--with-gpu=host,hip).
hip_flags = $(DEFS) $(DEFAULT_INCLUDES) $(subst $(XIO_PLATFORM_CPPFLAGS),-DXIO_PLATFORM_HIP=1,$(AM_CPPFLAGS)) $(HIP_CFLAGS) $(CPPFLAGS) \
	$(AM_CXXFLAGS) $(CXXFLAGS)
hip_depends = -MMD -MP -MT $@ -MF .device-deps/$(subst /,_,$@).d
# The objects of a program's sources: those in .hip by hipcc, others as they are.
hip_objects = $(patsubst %.hip,$(1)/%.o,$(filter %.hip,$($(2)_SOURCES))) $(call joined,$(call cpp_objects,$(2)))

# hip_folder FOLDER,TARGETS
define hip_folder
$(1)/%.o: %.hip
	@$$(MKDIR_P) $$(@D) .device-deps
	$$(AM_V_DEV)$$(HIPCC) $$(hip_flags) $$(hip_depends) -x hip $(addprefix --offload-arch=,$(2)) -DXIO_GPU_TARGETS='"$(2)"' $$(hip_extra) -c -o $$@ $$<
$(addprefix $(1)/,src/gpu/hip.lo src/stream/kernels.lo): $(1)/%.lo: %.hip
	@$$(MKDIR_P) $$(@D) .device-deps
	$$(AM_V_DEV)$$(LIBTOOL) $$(AM_V_lt) --tag=CXX --mode=compile $$(HIPCC) $$(hip_flags) $$(hip_depends) -x hip $(addprefix --offload-arch=,$(2)) -c -o $$@ $$<
$(1)/libxio-hip.la: $$(room_objects) $$(software_objects) $$(with_kfd) $(1)/src/gpu/hip.lo $(1)/src/stream/kernels.lo libxio.map
	$$(AM_V_CXXLD)$$(CXXLINK) $$(library_ldflags) -rpath $$(libdir) $$(filter %.lo,$$^) $$(XIO_OTHER_LIBS) $$(HSAKMT_LIBS) $$(HIP_LIBS)
$(1)/libxio_inside.la: $$(room_objects) $$(software_objects) $$(with_kfd) $(1)/src/gpu/hip.lo $(1)/src/stream/kernels.lo
	$$(AM_V_CXXLD)$$(CXXLINK) $$(XIO_LDFLAGS) $$(filter %.lo,$$^) $$(XIO_OTHER_LIBS) $$(HSAKMT_LIBS) $$(HIP_LIBS)
# A program of one source, and the tools, which look inside.
$(1)/%: $(1)/%.o $(1)/libxio-hip.la
	$$(AM_V_CXXLD)$$(CXXLINK) $$(XIO_LDFLAGS) -no-install $$< $(1)/libxio-hip.la $$(HIP_LIBS)
$(1)/xio-info: $$(call hip_objects,$(1),xio_info) $(1)/libxio_inside.la
	$$(AM_V_CXXLD)$$(CXXLINK) $$(XIO_LDFLAGS) -no-install $$^
$(1)/xio-verify: $$(call hip_objects,$(1),xio_verify) $(1)/libxio_inside.la
	$$(AM_V_CXXLD)$$(CXXLINK) $$(XIO_LDFLAGS) -no-install $$^
$(1)/tests/compat/%.o: hip_extra = -I$$(top_srcdir)/include/xio/compat
$(1)/tests/amdgpu/bitcode.o: $(1)/tests/amdgpu/device.bc
$(1)/tests/amdgpu/bitcode.o: hip_extra = --hip-device-lib-path=$(1)/tests/amdgpu --hip-device-lib=device.bc
$(1)/tests/amdgpu/device.bc: $(top_srcdir)/python/xio/_device.hip
	@$$(MKDIR_P) $$(@D) .device-deps
	$$(AM_V_DEV)$$(HIPCC) $$(hip_flags) $$(hip_depends) -w -x hip $(addprefix --offload-arch=,$(firstword $(2))) --cuda-device-only -fgpu-rdc -emit-llvm -c -o $$@ $$<
# What scripts find in a build folder.
$(1)/tests/env.sh: tests/env.sh
	@$$(MKDIR_P) $$(@D) $(1)/.libs $(1)/tests/amdgpu
	@sed -e "s|^builddir=.*|builddir='$$(abs_top_builddir)/$(1)'|" -e "s|^gpu=.*|gpu='hip'|" tests/env.sh >$$@
	@for name in config.h xiorun tests/amdgpu/prepare .libs/libxio_amdgpu.so .libs/libxio_kmod_sim.so .libs/xio-mpi-openmpi.so; do \
	  ln -sf "$$(abs_top_builddir)/$$$$name" "$(1)/$$$$name"; \
	done
.PRECIOUS: $(1)/%.o
endef
ifneq ($(HIPCC),)
$(foreach target,gfx90a gfx942 gfx1100,$(eval $(call hip_folder,hip-$(target),$(target))))
$(eval $(call hip_folder,hip,$(XIO_HIP_ARCH)))
endif
# --with-gpu=host,hip: make makes libxio-hip.so, too, and make install installs it with a package file, xio-hip.pc.
ifeq ($(hip_beside),yes)
all-local: hip/libxio-hip.la hip/xio-hip.pc
hip/xio-hip.pc: xio.pc
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)sed -e 's/^gpu=.*/gpu=hip/; s/^Name: .*/&-hip/; s/-DXIO_PLATFORM_[A-Z]*=1/-DXIO_PLATFORM_HIP=1/' \
	  -e 's|^device_compiler=.*|device_compiler=$(HIPCC)|' -e 's|-lxio.*|-lxio-hip $(subst -R,-Wl$(comma)-rpath$(comma),$(HIP_LIBS))|' \
	  -e 's|^device_flags=.* \(-DXIO_ENGINES\)|device_flags=-std=c++20 -x hip $(addprefix --offload-arch=,$(XIO_HIP_ARCH)) \1|' xio.pc >$@
install-exec-am: install-exec-local
.PHONY: install-exec-local
install-exec-local: hip/libxio-hip.la hip/xio-hip.pc
	$(MKDIR_P) $(DESTDIR)$(libdir) $(DESTDIR)$(pkgconfigdir)
	$(LIBTOOL) --mode=install $(INSTALL) hip/libxio-hip.la $(DESTDIR)$(libdir)
	$(INSTALL_DATA) hip/xio-hip.pc $(DESTDIR)$(pkgconfigdir)
uninstall-local:
	$(LIBTOOL) --mode=uninstall rm -f $(DESTDIR)$(libdir)/libxio-hip.la
	rm -f $(DESTDIR)$(pkgconfigdir)/xio-hip.pc
endif
comma = ,

clean-beside:
	rm -rf without crypto-* hip hip-gfx*
clean-local: clean-beside
.PHONY: clean-beside
