// Copies the licences of the bundled packages beside their code, as these licences ask for.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

/** Returns the folder of the package that a module belongs to; undefined for a module of ours. */
const packageOf = (module: string): { readonly name: string; readonly folder: string } | undefined => {
  const found = /^.*[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/.exec(module)
  return found === null ? undefined : { folder: found[0], name: found[1].replace(/[\\/]/, ".") }
}

/** The comments of a module that state a licence: it holds code of others, whose notices the bundle does not have. */
const noticesIn = (module: string): ReadonlyArray<string> =>
  (readFileSync(module, "utf8").match(/\/\*[^]*?\*\/|(?:^[ \t]*\/\/.*\n)+/gm) ?? []).filter((comment) =>
    /licen[sc]ed?\b|copyright/i.test(comment),
  )

/** Writes the licence of each package that one of the modules belongs to, and the notices in these modules, as `NAME.txt`. */
export const copyLicences = (modules: Iterable<string>, into: string): void => {
  mkdirSync(into, { recursive: true })
  const texts = new Map<string, Set<string>>()
  for (const module of modules) {
    const found = packageOf(module)
    if (found === undefined) continue
    const { folder, name } = found
    if (!texts.has(name)) {
      const licence = readdirSync(folder).find((file) => /^licen[sc]e(\.(md|txt))?$/i.test(file))
      if (licence === undefined) throw new Error(`${folder} has no licence`)
      texts.set(name, new Set([readFileSync(join(folder, licence), "utf8")]))
    }
    for (const notice of noticesIn(module)) texts.get(name)?.add(notice)
  }
  for (const [name, parts] of texts) writeFileSync(join(into, `${name}.txt`), [...parts].join("\n\n"))
}
