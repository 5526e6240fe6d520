# Enough of nixpkgs to evaluate our flake without it: names that exist there, as derivations that build nothing.
{
  outputs = { self }: {
    lib.genAttrs = names: f: builtins.listToAttrs (map (name: { inherit name; value = f name; }) names);
    legacyPackages = builtins.listToAttrs (map
      (system:
        let
          package = name: derivation { inherit name system; builder = "/bin/sh"; };
        in
        {
          name = system;
          value = {
            nodejs_24 = package "nodejs-24";
            git = package "git";
            mkShell = attributes: (package "shell") // attributes;
            writeShellApplication = { name, runtimeInputs, text }: (package name) // { inherit runtimeInputs text; };
          };
        }) [ "x86_64-linux" "aarch64-linux" "aarch64-darwin" ]);
  };
}
