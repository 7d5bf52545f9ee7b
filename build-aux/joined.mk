# SPDX-License-Identifier: MIT
# Parts of libxio and of the tools, each of up to eight sources of one folder that one file includes (docs/decisions/0095-time-to-build.md). The lists
# are Makefile.am's; in GNU make's own words, hence not part of it.

# joined_rule FOLDER,FIRST,OBJECTS
define joined_rule
$(call joined_part,$(1),$(2),$(3)): joined_sources := $(patsubst %$(suffix $(firstword $(3))),%.cpp,$(wordlist $(2),$(words $(wordlist 1,$(2),$(3)) 1 2 3 4 5 6 7),$(3)))
$(call joined_part,$(1),$(2),$(3)): $(patsubst %$(suffix $(firstword $(3))),$(srcdir)/%.cpp,$(wordlist $(2),$(words $(wordlist 1,$(2),$(3)) 1 2 3 4 5 6 7),$(3)))
endef
joined_rules = $(foreach first,1 9 17 25 33 41 49 57,$(if $(word $(first),$(2)),$(eval $(call joined_rule,$(1),$(first),$(2)))))
join_all = $(foreach folder,$(sort $(dir $(1))),$(call joined_rules,$(folder),$(call in_folder,$(folder),$(1))))
$(call join_all,$(filter-out $(used_alone),$(room_units) $(software_units) $(platform_units)))
$(foreach tool,$(joined_tools),$(call join_all,$(filter-out $(used_alone),$(call cpp_objects,$(tool)))))

joined_compile = $(AM_V_CXX)$(1) -MMD -MP -MT $@ -MF .device-deps/$(subst /,_,$@).d -c -o $@ joined/$*.cpp
define joined_source
@$(MKDIR_P) joined .device-deps
@printf '#include "%s"\n' $(addprefix $(srcdir)/,$(joined_sources)) >joined/$*.cpp
endef
joined/%.lo:
	$(joined_source)
	$(call joined_compile,$(LTCXXCOMPILE))
joined/%.o:
	$(joined_source)
	$(call joined_compile,$(CXXCOMPILE))
# The compiler names it among what the object depends on.
joined/%.cpp: ;

mostlyclean-libtool: clean-joined
clean-joined:
	rm -rf joined
.PHONY: clean-joined
