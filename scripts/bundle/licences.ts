// Copies the licences of the bundled packages beside their code, as these licences ask for.
import { copyFileSync, mkdirSync, readdirSync } from "node:fs"
import { join } from "node:path"

/** Returns the folder of the package that a module belongs to; undefined for a module of ours. */
const packageOf = (module: string): { readonly name: string; readonly folder: string } | undefined => {
  const found = /^.*[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/.exec(module)
  return found === null ? undefined : { folder: found[0], name: found[1].replace(/[\\/]/, ".") }
}

/** Copies the licence of each package that one of the modules belongs to, as `NAME.txt`. */
export const copyLicences = (modules: Iterable<string>, into: string): void => {
  mkdirSync(into, { recursive: true })
  const packages = new Map(
    Array.from(modules, packageOf).flatMap((found) => (found ? [[found.name, found.folder]] : [])),
  )
  for (const [name, folder] of packages) {
    const licence = readdirSync(folder).find((file) => /^licen[sc]e(\.(md|txt))?$/i.test(file))
    if (licence === undefined) throw new Error(`${folder} has no licence`)
    copyFileSync(join(folder, licence), join(into, `${name}.txt`))
  }
}
