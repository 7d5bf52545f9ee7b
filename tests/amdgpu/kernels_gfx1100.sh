#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels.sh for gfx1100, not at all levels of optimization.
XIO_AMDGPU_TARGET=gfx1100 LEVELS=${LEVELS:-0 2} exec bash "${BASH_SOURCE[0]%/*}/kernels.sh"
