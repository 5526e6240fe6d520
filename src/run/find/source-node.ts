import { readdirSync } from "node:fs"
import { readdir, stat } from "node:fs/promises"
import { join, resolve, sep } from "node:path"
import { Effect } from "effect"
import { FileError, mostBytes } from "../../config/files.ts"
import { openFile, readTextSync } from "../../config/files-node.ts"
import { messageOf } from "../../config/text.ts"
import { fromFlatPath } from "../identifier.ts"
import { owner } from "../store/owner-node.ts"
import { entryOf, type RunEntry } from "./RunEntry.ts"
import type { RunSource } from "./RunSource.ts"

/**
 * Runs in folders. Small files and folders are read at once, not by promises: of ten thousand runs those take most of the
 * time.
 */
export const diskSource = (warn: RunSource["warn"]): RunSource => {
  /** What isn't there, or isn't a folder, is no mistake: runs come and go while they are looked at. */
  const reading = <A>(path: string, body: () => Promise<A>, otherwise: A): Effect.Effect<A> =>
    Effect.catch(Effect.tryPromise({ try: body, catch: (error) => error }), (error) =>
      Effect.as(isMissing(error) ? Effect.void : warn(`${path}: ${messageOf(error)}`), otherwise),
    )
  return {
    list: (folder) => reading<ReadonlyArray<string>>(folder, async () => readdirSync(folder), []),
    folders: (folder) =>
      reading<ReadonlyArray<string>>(
        folder,
        async () => readdirSync(folder, { withFileTypes: true }).flatMap((one) => (one.isFile() ? [] : one.name)),
        [],
      ),
    text: (file) => reading<string | undefined>(file, async () => readTextSync(file, mostBytes.text), undefined),
    tail: (file, bytes) => reading<string | undefined>(file, () => tailOf(file, bytes), undefined),
    tree: (folder) =>
      reading(folder, async () => {
        const found = await readdir(folder, { recursive: true, withFileTypes: true })
        const files = found.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name))
        const sizes = await Promise.all(
          files.map(async (file) => {
            const bytes = await stat(file).then(
              ({ size }) => size,
              () => undefined,
            )
            const path = file.slice(join(folder, sep).length).replaceAll(sep, "/")
            return bytes === undefined ? [] : [{ path, bytes }]
          }),
        )
        return sizes.flat().sort((a, b) => (a.path < b.path ? -1 : 1))
      }, []),
    isAlive: owner.isAlive,
    warn,
  }
}

/** Reads without warning of files that are damaged. */
export const silentSource = diskSource(() => Effect.void)

const isMissing = (error: unknown): boolean =>
  error instanceof FileError
    ? error.missing
    : error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR")

const tailOf = async (file: string, bytes: number): Promise<string> => {
  await using handle = await openFile(file)
  const { size } = await handle.stat()
  const from = Math.max(0, size - bytes)
  const { buffer, bytesRead } = await handle.read({ buffer: Buffer.alloc(size - from), position: from })
  const text = buffer.toString("utf8", 0, bytesRead)
  return from === 0 ? text : text.slice(text.indexOf("\n") + 1)
}

const isTime = (name: string): boolean => /^\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d$/.test(name)

/** How many folders below a results folder a run of RLtools' layout is. */
const depth = 4

/**
 * All runs of a results folder, or of a folder inside of one: `results/2026-01-31_12-00-00`; and those of the flat layout
 * in folders of their own, `outputs/my_experiment/20260131_120000`. Other folders are passed over.
 */
export const findRuns = Effect.fnUntraced(function* (
  folder: string,
  { folders }: Pick<RunSource, "folders">,
): Effect.fn.Return<ReadonlyArray<RunEntry>> {
  const whole = resolve(folder)
  const above = whole.split(sep).slice(1 - depth)
  const time = above.findLastIndex(isTime)
  const found: Array<RunEntry> = []
  const visit = Effect.fnUntraced(function* (path: string, full: string, level: number): Effect.fn.Return<void> {
    const names = yield* folders(path)
    const nested: Array<string> = []
    const experiments: Array<string> = []
    for (const name of names) {
      const entry = entryOf(join(path, name), `${full}/${name}`)
      if (entry !== undefined) found.push(entry)
      else if (level > 0 ? level < depth - 1 : isTime(name)) nested.push(name)
      else if (level === 0 && !name.startsWith(".")) experiments.push(name)
    }
    for (const name of experiments) {
      const flat = (yield* folders(join(path, name))).filter((below) => fromFlatPath(below) !== undefined)
      found.push(...flat.flatMap((below) => entryOf(join(path, name, below), `${full}/${name}/${below}`) ?? []))
    }
    yield* Effect.forEach(nested, (name) => visit(join(path, name), `${full}/${name}`, level + 1), {
      concurrency: 16,
      discard: true,
    })
  })
  const itself = entryOf(folder, whole.replaceAll(sep, "/"))
  if (itself !== undefined) return [itself]
  yield* visit(folder, whole.replaceAll(sep, "/"), time < 0 ? 0 : above.length - time)
  return found
})
