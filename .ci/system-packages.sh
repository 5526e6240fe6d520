#!/usr/bin/env bash
# In CI: what some tests drive or compare with, from Debian's packages, where it is absent and can be had. A test that still
# lacks it says so and is skipped.
set -euo pipefail
[ "${CI:-}" = true ] || exit 0

has() { command -v "$1" >/dev/null 2>&1; }

wanted=()
has chromium || has chromium-browser || has google-chrome || [ -x "${CHROMIUM:-}" ] || wanted+=(chromium)
has h5dump || wanted+=(hdf5-tools)
has g++ || wanted+=(g++)
has redis-server || wanted+=(redis-server)
has postgres || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || wanted+=(postgresql)
# The checks of the image and of the flake go on at once, when only one of them could install something.
has debootstrap || wanted+=(debootstrap)
has ip || wanted+=(iproute2)
has nix || wanted+=(nix-bin)
if [ ${#wanted[@]} = 0 ]; then
  echo "system packages: nothing is missing"
  exit 0
fi

if has apt-get && [ "$(id -u)" = 0 ]; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update >/dev/null 2>&1 || true
  # One by one, so that one that cannot be had keeps no other away.
  for package in "${wanted[@]}"; do
    if apt-get install -y --no-install-recommends "$package" >/dev/null 2>&1; then
      echo "system packages: installed $package"
    else
      echo "system packages: $package CANNOT BE INSTALLED, its tests will be skipped" >&2
    fi
  done
else
  echo "system packages: ${wanted[*]} MISSING and not to be had here, their tests will be skipped" >&2
fi
