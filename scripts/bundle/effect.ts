// Bundles what `effect run` loads of Effect into one file, dist/bundle/effect/all.js: it loads three times as fast as the 350
// modules of Effect's own packages. For each of these modules a file below dist/bundle/effect/ exports the same from the
// bundle, and bin/bundledEffect.js lets all imports of such a module lead there, a user's too. So each module exists once.
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join, posix, relative, sep } from "node:path"
import { fileURLToPath } from "node:url"
import { type InputOptions, rolldown } from "rolldown"
import { copyLicences } from "./licences.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const folder = join(root, "dist/bundle/effect")

/** The packages of Effect that are bundled. Each is found from the one before it. */
const packages = ["effect", "@effect/platform-node", "@effect/platform-node-shared"]

/** Tells whether a specifier, or the name of a package, is of these packages. */
export const isOfEffect = (specifier: string): boolean =>
  packages.some((name) => specifier === name || specifier.startsWith(`${name}/`))

interface Package {
  readonly name: string
  readonly version: string
  readonly folder: string
}

const installed = (): ReadonlyArray<Package> => {
  let from = join(root, "package.json")
  return packages.map((name) => {
    from = createRequire(from).resolve(`${name}/package.json`)
    return { name, folder: dirname(from), version: JSON.parse(readFileSync(from, "utf8")).version }
  })
}

const options = (input: Record<string, string>): InputOptions => ({
  input,
  cwd: root,
  platform: "node",
  external: (specifier) => /^[^./\0]/.test(specifier) && !isOfEffect(specifier),
  preserveEntrySignatures: "strict",
})

/** The files of all modules that some modules import at once, themselves among them. */
const filesOf = async (specifiers: ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
  let files: ReadonlyArray<string> = []
  const bundle = await rolldown({
    ...options(Object.fromEntries(specifiers.map((specifier, index) => [`m${index}`, specifier]))),
    plugins: [
      {
        name: "files",
        buildEnd() {
          files = [...this.getModuleIds()].sort()
        },
      },
    ],
  })
  await bundle.generate()
  await bundle.close()
  return files
}

/** Writes the bundle of these modules of Effect and of all that they import. */
export const bundleEffect = async (specifiers: ReadonlyArray<string>): Promise<void> => {
  rmSync(folder, { recursive: true, force: true })
  const found = installed()
  const modules = (await filesOf(specifiers)).flatMap((file) => {
    const owner = found.find(({ folder }) => file.startsWith(folder + sep))
    return owner === undefined
      ? []
      : [{ file, name: posix.join(owner.name, relative(owner.folder, file).replaceAll(sep, "/")) }]
  })
  const bundle = await rolldown(
    options(Object.fromEntries(modules.map(({ file, name }) => [name.replace(/\.js$/, ""), file]))),
  )
  await bundle.write({
    dir: folder,
    format: "esm",
    comments: false,
    chunkFileNames: "[name].js",
    codeSplitting: { groups: [{ name: "all", test: /./ }] },
  })
  await bundle.close()
  copyLicences(
    modules.map(({ file }) => file),
    join(folder, "../licences"),
  )
  const versions = Object.fromEntries(found.map(({ name, version }) => [name, version]))
  writeFileSync(
    join(folder, "bundled.json"),
    `${JSON.stringify({ versions, modules: modules.map(({ name }) => name) })}\n`,
  )
}
