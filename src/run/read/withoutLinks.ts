/** Reads the files of a run for commands that send or publish them, without following links in the folder of the run. */
import { Effect, FileSystem, Path } from "effect"
import { linkOnPath, linkProblem } from "../store/links.ts"
import type { FileSource } from "./FileSource.ts"

/**
 * Makes a source that reads as `source` does, except files and folders below `run` to which a link leads: they count as missing,
 * with a warning. The folder of a run of somebody else could otherwise make a command publish any file of the user.
 */
export const withoutLinks = Effect.fnUntraced(function* (
  source: FileSource,
  run: string,
): Effect.fn.Return<FileSource, never, FileSystem.FileSystem | Path.Path> {
  const access = { fs: yield* FileSystem.FileSystem, path: yield* Path.Path }
  const unless = <A>(path: string, otherwise: A, read: Effect.Effect<A>): Effect.Effect<A> =>
    Effect.flatMap(linkOnPath(access, run, path, "any"), (link) =>
      link === undefined ? read : Effect.as(source.warn(linkProblem(link)), otherwise),
    )
  return {
    ...source,
    list: (folder) => unless(folder, [], source.list(folder)),
    folders: (folder) => unless(folder, [], source.folders(folder)),
    entries: (folder) => unless(folder, { files: [], folders: [] }, source.entries(folder)),
    text: (file) => unless(file, undefined, source.text(file)),
    part: (file, from, most) => unless(file, undefined, source.part(file, from, most)),
    size: (file) => unless(file, undefined, source.size(file)),
    tree: (folder) => unless(folder, [], source.tree(folder)),
  }
})
