#!/bin/sh
# launch.sh PROGRAM ARGS...: the program; where RONDO_TEST_LAUNCHER is set, the `run` of tools/new_drivers.sh, through that with the
# driver RONDO_TEST_DRIVER.
if [ -n "$RONDO_TEST_LAUNCHER" ]; then exec "$RONDO_TEST_LAUNCHER" "$RONDO_TEST_DRIVER" "$@"; fi
exec "$@"
