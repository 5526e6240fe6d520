/** Writes the files that a folder needs so that Node can run TypeScript programs in it. `effect init` calls it. */
import { Effect, FileSystem, Path } from "effect"
import manifest from "../../../../package.json" with { type: "json" }
import { systemMessage } from "../../../base/files/files.ts"
import { prettyJson } from "../../../base/text/text.ts"
import { quoted } from "../flags.ts"
import { usageError } from "../output/output.ts"

const packageFile = prettyJson({ private: true, type: "module" })

const compilerFile = `{
  "compilerOptions": {
    "target": "es2024",
    "module": "nodenext",
    "strict": true,
    "skipLibCheck": true,
    // Node runs the sources directly: imports end in .ts, and Node only strips types.
    "noEmit": true,
    "allowImportingTsExtensions": true,
    "erasableSyntaxOnly": true,
    "verbatimModuleSyntax": true
  },
  // Each run keeps a copy of its program.
  "exclude": ["node_modules", "results"]
}
`

/**
 * Prepares a folder. If `isProgram`, writes package.json and tsconfig.json, each unless the folder or one above it already
 * has the file. Returns the names of the written files, and the commands that install this library; no commands if it is
 * installed. `packageFolder` is the folder of this library, which is a checkout or an installed package. A folder below a
 * checkout needs no installation.
 */
export const startProject = Effect.fnUntraced(function* (
  folder: string,
  options: { readonly packageFolder: string; readonly isProgram: boolean },
) {
  const [fs, paths] = [yield* FileSystem.FileSystem, yield* Path.Path]
  const folders = [folder]
  for (let above = paths.dirname(folder); above !== folders[folders.length - 1]; above = paths.dirname(above)) {
    folders.push(above)
  }
  const has = (name: string) =>
    Effect.map(
      Effect.forEach(folders, (above) => fs.exists(paths.join(above, name))),
      (there) => there.includes(true),
    )
  const isInstalled = folders.includes(options.packageFolder) || (yield* has("node_modules/effect-rl"))
  const { name, version, dependencies } = manifest
  // The npm registry does not have this library, so it is packed from its own folder. Only a checkout has to be built before
  // that.
  const isCheckout = yield* fs.exists(paths.join(options.packageFolder, "tsconfig.build.json"))
  const install = isInstalled
    ? []
    : [
        `npm pack --silent ${isCheckout ? "" : "--ignore-scripts "}${quoted([options.packageFolder])}`,
        `npm install --save-exact ./${name}-${version}.tgz effect@${dependencies.effect}`,
      ]
  const written: Array<string> = []
  for (const [name, text] of [
    ["package.json", packageFile],
    ["tsconfig.json", compilerFile],
  ] as const) {
    if (!options.isProgram || (yield* has(name))) continue
    const file = paths.join(folder, name)
    yield* Effect.mapError(fs.writeFileString(file, text, { flag: "wx" }), (error) =>
      usageError(
        error.reason._tag === "AlreadyExists"
          ? `${file}: expected a file or none, found a link to a missing file; remove the link`
          : `${file}: ${systemMessage(error)}`,
      ),
    )
    written.push(name)
  }
  return { written, install }
})
