// Lets the modules of Effect be loaded from one file, which scripts/bundle/effect.ts writes.
import { existsSync, readFileSync } from "node:fs"
import { createRequire, registerHooks } from "node:module"

const bundle = new URL("../dist/bundle/effect/", import.meta.url)

/** Returns the bundle's address of each module by the address in its package, if the installed packages are those bundled. */
const addressesOf = ({ versions, modules }) => {
  const addresses = new Map()
  let from = import.meta.url
  for (const [name, version] of Object.entries(versions)) {
    const manifest = new URL(`file://${createRequire(from).resolve(`${name}/package.json`)}`)
    if (JSON.parse(readFileSync(manifest, "utf8")).version !== version) return new Map()
    for (const module of modules) {
      if (module.startsWith(`${name}/`)) {
        addresses.set(new URL(module.slice(name.length + 1), manifest).href, new URL(module, bundle).href)
      }
    }
    from = manifest
  }
  return addresses
}

/** Makes all later imports of a bundled module lead to the bundle, those of a user's program too. */
export const useBundledEffect = () => {
  const list = new URL("bundled.json", bundle)
  if (!existsSync(list)) return
  const addresses = addressesOf(JSON.parse(readFileSync(list, "utf8")))
  if (addresses.size === 0) return
  registerHooks({
    resolve: (specifier, context, nextResolve) => {
      const resolved = nextResolve(specifier, context)
      const url = addresses.get(resolved.url)
      return url === undefined ? resolved : { ...resolved, url }
    },
  })
}
