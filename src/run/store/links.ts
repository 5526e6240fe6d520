/**
 * Refuses symbolic links in the folder of a run. A folder that came from somebody else may hold links to files of the user:
 * a resumed run would append to them, empty them, or delete what is beside them. The only links that a run makes are those
 * named `latest`, which point to a checkpoint beside them. Links above the folder of the run, such as `results`, are the user's.
 */
import { Effect, Path, type PlatformError } from "effect"
import * as FileSystem from "effect/FileSystem"
import { FileError } from "../../base/files/files.ts"
import * as Layout from "../Layout.ts"
import { RunStoreError, runStoreError } from "./RunStoreError.ts"

/** Matches the name of the link to the newest checkpoint, and its temporary names, which a killed process can leave behind. */
const ownName = new RegExp(`^(?:${Layout.latest}|\\.${Layout.latest}\\.(?:\\d+\\.)?tmp)$`)

/** Tells whether a run makes this link itself. */
const isOwnLink = (name: string, target: string): boolean =>
  ownName.test(name) && Layout.checkpointOf(target) !== undefined

/** Describes a link in the folder of a run, and what the user can do. */
export const linkProblem = (link: string): string =>
  `${link} is a link, through which files elsewhere could be read or changed; the folder of a run must have no links except ` +
  `${Layout.checkpoints}/${Layout.latest}: remove the link, or replace it by a copy of what it points to`

/** The services that look for links. */
interface LinkAccess {
  readonly fs: FileSystem.FileSystem
  readonly path: Path.Path
}

/**
 * Which links on the path of a file make an operation fail: `any`; only those `inFolders`, for an operation that replaces or
 * removes the file itself, even if it is a link; or `none`, for one that neither returns nor changes the content of a file.
 */
export type RefusedLinks = "any" | "inFolders" | "none"

/**
 * Returns the first refused link on the path from the folder `root` to a file in it; undefined if there is none. The path of
 * the folder itself may contain links, and paths outside of the folder are not examined.
 */
export const linkOnPath = Effect.fnUntraced(function* (
  { fs, path }: LinkAccess,
  root: string,
  file: string,
  refused: RefusedLinks,
): Effect.fn.Return<string | undefined> {
  if (refused === "none") return undefined
  const relative = path.relative(root, file)
  const parts = relative.split(path.sep)
  if (relative === "" || parts[0] === ".." || path.isAbsolute(relative)) return undefined
  let at = root
  for (const part of refused === "any" ? parts : parts.slice(0, -1)) {
    at = path.join(at, part)
    const kind = yield* Effect.match(fs.readLink(at), {
      onSuccess: () => "link",
      onFailure: ({ reason }) => (reason._tag === "NotFound" ? "missing" : "other"),
    })
    if (kind === "link") return at
    if (kind === "missing") return undefined
  }
  return undefined
})

/** Fails if there is a refused link on the path from the folder `root` to a file in it; see `linkOnPath`. */
export const refuseLinkOnPath = Effect.fnUntraced(function* (
  access: LinkAccess,
  root: string,
  file: string,
  refused: RefusedLinks,
) {
  const link = yield* linkOnPath(access, root, file, refused)
  if (link !== undefined) return yield* new FileError({ path: file, missing: false, message: linkProblem(link) })
})

/**
 * Returns the first link in the folder of a run that the run does not make itself; undefined if there is none. The folders of
 * a trainer's runs, which are runs themselves, are left out. It lists the whole folder, so call it once for each resume.
 */
export const foreignLinkIn = Effect.fnUntraced(function* (
  directory: string,
): Effect.fn.Return<string | undefined, PlatformError.PlatformError, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folders = [directory]
  for (const folder of folders) {
    for (const { name, type } of yield* fs.readDirectoryEntries(folder)) {
      const file = path.join(folder, name)
      if (type === "SymbolicLink" && !isOwnLink(name, yield* fs.readLink(file))) return file
      const isOtherRun = folder === directory && Layout.isChildName(name)
      if (type === "Directory" && !isOtherRun) folders.push(file)
    }
  }
  return undefined
})

/** Fails if the folder of a run has a link that the run does not make itself. */
export const refuseLinksIn = Effect.fnUntraced(function* (
  directory: string,
): Effect.fn.Return<void, RunStoreError, FileSystem.FileSystem | Path.Path> {
  const link = yield* Effect.mapError(foreignLinkIn(directory), (error) => runStoreError("resume", directory, error))
  if (link === undefined) return
  const message = `cannot resume ${directory}: ${linkProblem(link)}`
  return yield* new RunStoreError({ path: link, operation: "resume", message })
})
