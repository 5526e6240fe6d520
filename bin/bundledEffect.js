// Lets the modules of Effect be loaded from one file, which scripts/bundle/effect.ts writes.
import { readFileSync } from "node:fs"
import * as nodeModule from "node:module"
import { pathToFileURL } from "node:url"

const bundle = new URL("../dist/bundle/effect/", import.meta.url).href

/** Returns the bundle's address of each module by the address in its package, if the installed packages are those bundled. */
const bundledModules = () => {
  const { packages, modules } = JSON.parse(readFileSync(new URL(`${bundle}bundled.json`), "utf8"))
  const folders = new Map()
  for (const { name, version, of } of packages) {
    const manifest = nodeModule.createRequire(folders.get(of) ?? import.meta.url).resolve(`${name}/package.json`)
    if (JSON.parse(readFileSync(manifest, "utf8")).version !== version) return new Map()
    folders.set(name, new URL(".", pathToFileURL(manifest)).href)
  }
  return new Map(modules.map(({ of, file }) => [folders.get(of) + file, `${bundle}${of}/${file}`]))
}

/**
 * Makes all later imports of a bundled module lead to the bundle, those of a user's program too. Where the bundle doesn't fit
 * what is installed, the command loads the modules of the packages, only slower. `EFFECT_RL_BUNDLE=0` does so anywhere.
 */
export const useBundledEffect = () => {
  // Bun has no hooks; it loads Effect from its package.
  if (process.env.EFFECT_RL_BUNDLE === "0" || nodeModule.registerHooks === undefined) return
  let addresses
  try {
    addresses = bundledModules()
  } catch {
    return
  }
  if (addresses.size === 0) return
  nodeModule.registerHooks({
    resolve: (specifier, context, nextResolve) => {
      const resolved = nextResolve(specifier, context)
      const url = addresses.get(resolved.url)
      return url === undefined ? resolved : { ...resolved, url }
    },
  })
}
