{
  description = "effect-rl: reinforcement learning as pure Effect programs";

  # The last releases of nixpkgs with x86_64-darwin are 25.11 and 26.05.
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-25.11";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      forAll = f: nixpkgs.lib.genAttrs systems (system: f nixpkgs.legacyPackages.${system});

      lock = builtins.fromJSON (builtins.readFile ./package-lock.json);
      isNeeded = path: path != "" && !(lock.packages.${path}.dev or false) && !(lock.packages.${path}.devOptional or false);
      # The folders of the packages that the command needs, such as "node_modules/yaml". A folder precedes those inside it.
      folders = builtins.filter isNeeded (builtins.attrNames lock.packages);

      # The archive of a package. npm knows where it is; the digest in the lock file decides whether it is the right one.
      archive = pkgs: folder:
        let
          inherit (lock.packages.${folder}) version integrity;
          name = builtins.elemAt (builtins.match "(.*/)?node_modules/(.+)" folder) 1;
        in
        pkgs.runCommand "${baseNameOf name}-${version}.tgz"
          {
            nativeBuildInputs = [ pkgs.nodejs_24 ];
            NODE_EXTRA_CA_CERTS = "${pkgs.cacert}/etc/ssl/certs/ca-bundle.crt";
            impureEnvVars = pkgs.lib.fetchers.proxyImpureEnvVars ++ [ "npm_config_registry" ];
            outputHash = integrity;
            outputHashAlgo = null;
            outputHashMode = "flat";
          } ''
          export HOME="$PWD"
          npm pack --silent ${name}@${version} >/dev/null
          mv ./*.tgz "$out"
        '';

      # The sources of the command, and the packages of the lock file beside them.
      tree = pkgs: pkgs.runCommand "effect-rl" { } ''
        mkdir "$out"
        cp -R ${self}/bin ${self}/src ${self}/examples ${self}/schemas ${self}/docs ${self}/package.json "$out"
        ${builtins.concatStringsSep "" (map (folder: ''
          mkdir -p "$out/${folder}"
          tar -xzf ${archive pkgs folder} -C "$out/${folder}" --strip-components=1
        '') folders)}
      '';

      effect = pkgs: pkgs.writeShellApplication {
        name = "effect";
        runtimeInputs = [ pkgs.nodejs_24 pkgs.git ];
        text = ''
          # An example is taken from the package: the one in a checkout would need packages that are installed there.
          if [ "''${1:-}" = run ] && [[ "''${2:-}" = examples/* ]] && [ -e "${tree pkgs}/$2" ] && [ ! -e node_modules ]; then
            file="${tree pkgs}/$2"
            shift 2
            set -- run "$file" "$@"
          fi
          exec node ${tree pkgs}/bin/effect.js "$@"
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
