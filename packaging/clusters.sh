#!/bin/sh
# Install what the tests on real servers and clusters need: an ssh server and Slurm as packages of Debian if this user may do
# that, and Ray in .venv. What cannot be installed is named, and its tests are skipped. No service is started.
PATH="$PATH:/usr/sbin:/sbin"
policy=/usr/sbin/policy-rc.d

lacks() { for program in "$@"; do command -v "$program" > /dev/null || return 0; done; return 1; }

if lacks sshd ssh munged slurmctld slurmd sbatch; then
  if [ "$(id -u)" = 0 ] && ! lacks apt-get; then
    ( # whose end, whatever ends it, removes the rule again
      if [ ! -e $policy ]; then
        trap 'rm -f $policy' EXIT
        trap 'exit 130' HUP INT TERM
        printf '#!/bin/sh\nexit 101\n' > $policy && chmod +x $policy
      fi
      apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends \
        openssh-server openssh-client munge slurmctld slurmd slurm-client
    ) > /dev/null || echo "The ssh server and Slurm could not be installed; their tests are skipped." >&2
  else
    echo "An ssh server or Slurm is missing (openssh-server, slurmctld, slurmd, munge); their tests are skipped." >&2
  fi
fi
.venv/bin/python -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("ray"))' ||
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -e '.[ray]' ||
  echo "Ray could not be installed; its tests are skipped." >&2
exit 0
