#!/bin/sh
# rustdoc with its JSON output, which is unstable and which a stable toolchain gives with this variable only. It is set here and
# not for cargo, so that no build script sees it and nothing is built twice.
RUSTC_BOOTSTRAP=1 exec rustdoc "$@"
