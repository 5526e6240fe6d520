{
  description = "effect-rl: reinforcement learning as pure Effect programs";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixpkgs-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "aarch64-darwin" ];
      forAll = f: nixpkgs.lib.genAttrs systems (system: f nixpkgs.legacyPackages.${system});

      # The command from a writable copy of this source, whose packages are installed on first use: the lock file names
      # every version and digest, so that is as fixed as the rest.
      effect = pkgs: pkgs.writeShellApplication {
        name = "effect";
        runtimeInputs = [ pkgs.nodejs_24 pkgs.git ];
        text = ''
          home="''${XDG_CACHE_HOME:-$HOME/.cache}/effect-rl/${builtins.substring 11 32 (toString self)}"
          if [ ! -e "$home/.installed" ]; then
            mkdir -p "$home"
            cp -R --no-preserve=mode ${self}/. "$home"
            (cd "$home" && npm ci --omit=dev --silent >&2)
            touch "$home/.installed"
          fi
          # Examples are found in the source as well as in the working directory.
          if [ "''${1:-}" = run ] && [ "$#" -ge 2 ] && [ ! -e "$2" ] && [ -e "$home/$2" ]; then
            file="$home/$2"
            shift 2
            set -- run "$file" "$@"
          fi
          exec node "$home/bin/effect.js" "$@"
        '';
      };
    in
    {
      packages = forAll (pkgs: { default = effect pkgs; });

      apps = forAll (pkgs: {
        default = { type = "app"; program = "${effect pkgs}/bin/effect"; };
      });

      devShells = forAll (pkgs: {
        default = pkgs.mkShell {
          packages = [ pkgs.nodejs_24 pkgs.git ];
          shellHook = ''export PATH="$PWD/node_modules/.bin:$PATH"'';
        };
      });
    };
}
