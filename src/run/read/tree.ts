import { Effect } from "effect"
import type { FileSize, FileSource } from "./FileSource.ts"

/**
 * Lists the files below a folder with their sizes. If there are more than `most` files, the most deeply nested ones are left
 * out.
 */
export const treeOf = Effect.fnUntraced(function* (
  source: Pick<FileSource, "entries" | "size">,
  top: string,
  most = Infinity,
): Effect.fn.Return<ReadonlyArray<FileSize>> {
  const found: Array<FileSize> = []
  const open = [""]
  for (let folder = open.shift(); folder !== undefined && found.length < most; folder = open.shift()) {
    const below = (name: string): string => (folder === "" ? name : `${folder}/${name}`)
    const { files, folders } = yield* source.entries(`${top}/${folder}`)
    for (const name of files.slice(0, most - found.length)) {
      found.push({ path: below(name), bytes: (yield* source.size(`${top}/${below(name)}`)) ?? 0 })
    }
    open.push(...folders.map(below))
  }
  return found
})
