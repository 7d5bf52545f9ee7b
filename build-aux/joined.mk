# SPDX-License-Identifier: MIT
# Parts of libxio and of the tools, each of up to eight sources of one folder that one file includes
# (docs/decisions/0095-time-to-build.md). The lists are Makefile.am's; in GNU make's own words, hence not part of it.

# A part is compiled again when its list changes, which is kept beside it. joined_rule PART,SOURCES
define joined_rule
$(if $(filter-out $(file <$(basename $(1)).list),$(2))$(filter-out $(2),$(file <$(basename $(1)).list)),$(file >$(basename $(1)).list,$(2)))
$(1): $(addprefix $(srcdir)/,$(2))
$(basename $(1)).cpp: joined_sources := $(2)
endef
joined_size = 1 2 3 4 5 6 7
joined_sources_from = $(addsuffix .cpp,$(basename $(wordlist $(1),$(words $(wordlist 1,$(1),$(2)) $(joined_size)),$(2))))
joined_rules = $(foreach first,1 9 17 25 33 41 49 57,$(if $(word $(first),$(2)),$(eval $(call joined_rule,$(call joined_part,$(1),$(first),$(2)),$(call joined_sources_from,$(first),$(2))))))
join_all = $(foreach folder,$(sort $(dir $(1))),$(call joined_rules,$(folder),$(call in_folder,$(folder),$(1))))
$(shell mkdir -p joined)
$(call join_all,$(filter-out $(used_alone),$(room_units) $(software_units) $(platform_units)))
$(foreach tool,$(joined_tools),$(call join_all,$(filter-out $(used_alone),$(call cpp_objects,$(tool)))))

joined_compile = $(AM_V_CXX)$(1) -MMD -MP -MT $@ -MF .device-deps/$(subst /,_,$@).d -c -o $@ joined/$*.cpp
joined/%.cpp: joined/%.list
	@$(MKDIR_P) .device-deps
	@printf '#include "%s"\n' $(addprefix $(srcdir)/,$(joined_sources)) >$@
joined/%.lo: joined/%.cpp
	$(call joined_compile,$(LTCXXCOMPILE))
joined/%.o: joined/%.cpp
	$(call joined_compile,$(CXXCOMPILE))
.PRECIOUS: joined/%.cpp

mostlyclean-libtool: clean-joined
clean-joined:
	rm -rf joined/.libs joined/*.lo joined/*.o joined/*.cpp
distclean-libtool: distclean-joined
distclean-joined:
	rm -rf joined
.PHONY: clean-joined distclean-joined
