/** Computes the version of this library's code: its number, and a digest of its files, which differs after any change. */
import { createHash } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { extname, join, sep } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"

/** The version of the code in this process, such as `0.1.0+3f2a91c04e6b`. */
export const codeVersion: Effect.Effect<string> = Effect.sync(() => {
  const own = fileURLToPath(import.meta.url)
  const folder = fileURLToPath(new URL("../..", import.meta.url))
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => extname(file) === extname(own) && !file.endsWith(".d.ts"))
    .map((file) => file.replaceAll(sep, "/"))
    .sort()
  const digest = createHash("sha256")
  for (const file of files)
    digest
      .update(`${file}\n`)
      .update(readFileSync(join(folder, file)))
      .update("\n")
  const manifest = String(readFileSync(join(folder, "../package.json")))
  const [, version] = /"version": "([^"]+)"/.exec(manifest) ?? []
  return `${version}+${digest.digest("hex").slice(0, 12)}`
})
