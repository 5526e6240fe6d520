import { Effect, FileSystem, Path } from "effect"
import manifest from "../../../package.json" with { type: "json" }
import { prettyJson } from "../../config/text.ts"

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
  }
}
`

/**
 * Makes a folder the root of a project if neither it nor a folder above it has a package.json: writes package.json and
 * tsconfig.json, but never overwrites a file. Returns the names of the written files, and the command that installs the
 * library; the command is undefined if the library is installed.
 */
export const startProject = Effect.fnUntraced(function* (
  folder: string,
  options: { readonly checkout: string; readonly isProgram: boolean },
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
  const isInstalled = folders.includes(options.checkout) || (yield* has("node_modules/effect-rl"))
  const { version, dependencies } = manifest
  const install = isInstalled ? undefined : `npm install effect-rl@${version} effect@${dependencies.effect}`
  if (!options.isProgram || (yield* has("package.json"))) return { written: [], install }

  const written: Array<string> = []
  for (const [name, text] of [
    ["package.json", packageFile],
    ["tsconfig.json", compilerFile],
  ] as const) {
    const path = paths.join(folder, name)
    if (yield* fs.exists(path)) continue
    yield* fs.writeFileString(path, text, { flag: "wx" })
    written.push(name)
  }
  return { written, install }
})
