#!/bin/bash
# The complete entrypoint: the operator gives arguments only. CANN's environment is set up here,
# because this entrypoint replaces the one of a CANN base. Without CANN nothing is found and nothing is done.

# In a function of its own, so that these scripts do not take the server's arguments for theirs.
# What they print would end up in the server's log; what they return is not about success.
set_up() {
  local script=$1
  shift
  if [ -r "$script" ]; then
    source "$script" > /dev/null
  fi
}

set_up /usr/local/Ascend/ascend-toolkit/set_env.sh
set_up /usr/local/Ascend/cann/set_env.sh
set_up /usr/local/Ascend/nnal/atb/set_env.sh

# PID 1 is the server itself, so that SIGTERM reaches it and starts the drain.
exec /opt/imageedit/bin/imageedit-server "$@"
