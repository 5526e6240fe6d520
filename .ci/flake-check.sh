#!/usr/bin/env bash
# Checks flake.nix against a stub of nixpkgs: evaluates all outputs, builds the command from the lock file's digests, and
# trains with it. It needs nix-instantiate and nix (Debian: nix-bin); where they cannot be had it says so and passes.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v nix >/dev/null 2>&1 && command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
  { apt-get update && apt-get install -y --no-install-recommends nix-bin; } >/dev/null 2>&1 || true
fi
if ! command -v nix >/dev/null 2>&1; then
  echo "flake: skipped, nix cannot be had here"
  exit 0
fi

export NIX_CONFIG="experimental-features = nix-command flakes
substituters =
sandbox = false
build-users-group =
warn-dirty = false"
if ! nix store ping >/dev/null 2>&1; then
  echo "flake: skipped, this user may not write to a store of nix"
  exit 0
fi
trap 'echo "flake: line $LINENO of .ci/flake-check.sh failed" >&2' ERR
stub=(--override-input nixpkgs "path:$PWD/.ci/nixpkgs-stub" --no-write-lock-file)

nix-instantiate --parse flake.nix >/dev/null
nix flake metadata --no-update-lock-file >/dev/null
nix flake show "${stub[@]}" >/dev/null 2>&1 || nix flake show "${stub[@]}"
shells=$(nix eval "${stub[@]}" --json .#devShells --apply builtins.attrNames 2>/dev/null)
tools=$(nix eval "${stub[@]}" --json .#devShells.x86_64-linux.default.packages --apply 'map (p: p.name)' 2>/dev/null)
apps=$(nix eval "${stub[@]}" --raw .#apps.x86_64-linux.default.type 2>/dev/null)
[ "$shells" = '["aarch64-darwin","aarch64-linux","x86_64-darwin","x86_64-linux"]' ]
[ "$tools" = '["nodejs-24","git"]' ]
[ "$apps" = app ]
echo "flake: dev shells for $shells with $tools, and the app"

case "$(uname -s)-$(uname -m)" in
Linux-x86_64) ;;
*)
  echo "flake: not built, the stub has the commands of x86_64-linux"
  exit 0
  ;;
esac
npm_config_registry=$(npm config get registry)
export npm_config_registry
if ! npm view yaml version >/dev/null 2>&1; then
  echo "flake: not built, npm cannot reach its registry"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nix build "${stub[@]}" --out-link "$work/built" .#default >"$work/log" 2>&1 || { cat "$work/log" && exit 1; }
export PATH="$PWD/node_modules/.bin:$PATH"
train=(run examples/cartpole.ts --seed 1 --total-steps 2048 --results-dir "$work/results")
here=$(node bin/effect.js "${train[@]}" | grep '^digest ')
cd "$work"
there=$(./built/bin/effect "${train[@]}" | grep '^digest ')
[ "$here" = "$there" ] || { echo "flake: expected $here as in the checkout, found $there" && exit 1; }
echo "flake: built from the lock file, and trained examples/cartpole.ts: $there"
