#!/bin/sh
# launch.sh PROGRAM ARGS...: the program, through $RONDO_TEST_LAUNCHER where it is set: the `run DRIVER` of tools/new_drivers.sh.
# shellcheck disable=SC2086
exec $RONDO_TEST_LAUNCHER "$@"
