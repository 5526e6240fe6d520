#!/usr/bin/env bash
# Evaluates every output of flake.nix against a stub of nixpkgs: catches syntax, misspelt attributes, missing outputs.
# It needs nix-instantiate and nix (Debian: nix-bin); where they cannot be had it says so and passes.
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
build-users-group ="
stub=(--override-input nixpkgs "path:$PWD/.ci/nixpkgs-stub" --no-write-lock-file)

nix-instantiate --parse flake.nix >/dev/null
nix flake show "${stub[@]}" >/dev/null 2>&1 || nix flake show "${stub[@]}"
shells=$(nix eval "${stub[@]}" --json .#devShells --apply builtins.attrNames)
tools=$(nix eval "${stub[@]}" --json .#devShells.x86_64-linux.default.packages --apply 'map (p: p.name)')
apps=$(nix eval "${stub[@]}" --raw .#apps.x86_64-linux.default.type)
[ "$shells" = '["aarch64-darwin","aarch64-linux","x86_64-linux"]' ]
[ "$tools" = '["nodejs-24","git"]' ]
[ "$apps" = app ]
echo "flake: dev shells for $shells with $tools, and the app"
