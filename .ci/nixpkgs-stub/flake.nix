# Enough of nixpkgs to evaluate our flake without it, and to build it with this machine's bash, tar and npm.
{
  outputs = { self }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      genAttrs = names: f: builtins.listToAttrs (map (name: { inherit name; value = f name; }) names);
      fetchers.proxyImpureEnvVars = [ "http_proxy" "https_proxy" "no_proxy" ];

      packagesFor = system:
        let
          runCommand = name: attributes: command: derivation (attributes // {
            inherit name system;
            builder = "/bin/bash";
            # Nix kills a builder that closes its output. Bash would become its last command, and mkdir closes it early.
            args = [ "-euc" "${command}\nexit 0" ];
            PATH = "/usr/local/bin:/usr/bin:/bin";
          });
          empty = name: runCommand name { } "mkdir $out";
        in
        {
          inherit runCommand;
          lib = { inherit fetchers; };
          nodejs_24 = empty "nodejs-24";
          git = empty "git";
          cacert = runCommand "cacert" { } ''
            mkdir -p $out/etc/ssl/certs
            ln -s /etc/ssl/certs/ca-certificates.crt $out/etc/ssl/certs/ca-bundle.crt
          '';
          mkShell = attributes: empty "shell" // attributes;
          writeShellApplication = { name, runtimeInputs, text }:
            runCommand name { inherit text; passAsFile = [ "text" ]; } ''
              mkdir -p $out/bin
              { echo '#!/usr/bin/env bash'; echo 'set -euo pipefail'; cat "$textPath"; } > $out/bin/${name}
              chmod +x $out/bin/${name}
            '' // { inherit runtimeInputs; };
        };
    in
    {
      lib = { inherit genAttrs fetchers; };
      legacyPackages = genAttrs systems packagesFor;
    };
}
