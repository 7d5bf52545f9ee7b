# SPDX-License-Identifier: MIT
# Parts of libxio, each of up to eight sources of one folder that one file includes (docs/decisions/0095-time-to-build.md). The lists
# are Makefile.am's; in GNU make's own words, hence not part of it.

# joined_rule FOLDER,FIRST,OBJECTS
define joined_rule
$(call joined_part,$(1),$(2)): $(patsubst %.lo,%.cpp,$(wordlist $(2),$(words $(wordlist 1,$(2),$(3)) 1 2 3 4 5 6 7),$(3)))
endef
joined_rules = $(foreach first,1 9 17 25 33 41 49 57,$(if $(word $(first),$(2)),$(eval $(call joined_rule,$(1),$(first),$(2)))))
joinable = $(filter-out $(used_alone),$(room_units) $(software_units) $(platform_units))
$(foreach folder,$(sort $(dir $(joinable))),$(call joined_rules,$(folder),$(call in_folder,$(folder),$(joinable))))

joined/%.lo:
	@$(MKDIR_P) joined .device-deps
	@printf '#include "%s"\n' $(filter %.cpp,$(filter-out joined/%,$^)) >joined/$*.cpp
	$(AM_V_CXX)$(LTCXXCOMPILE) -MMD -MP -MT $@ -MF .device-deps/joined_$*.lo.d -c -o $@ joined/$*.cpp
# The compiler names it among what the object depends on.
joined/%.cpp: ;

mostlyclean-libtool: clean-joined
clean-joined:
	rm -rf joined
.PHONY: clean-joined
