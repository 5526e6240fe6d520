import { readdir, readFile } from "node:fs/promises"
import { extname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"

/** The page's own files, which are served and exported as they are. */
export interface PageFile {
  readonly name: string
  readonly type: string
  readonly bytes: Uint8Array
}

const folder = fileURLToPath(new URL("./page/", import.meta.url))

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
}

export const pageFiles: Effect.Effect<ReadonlyArray<PageFile>> = Effect.promise(async () => {
  const names = (await readdir(folder)).filter((name) => extname(name) in types)
  return Promise.all(
    names.map(async (name) => ({ name, type: types[extname(name)], bytes: await readFile(join(folder, name)) })),
  )
})
