/**
 * Copies all files that are written into a run's folder on disk to an object store, so that the run can be resumed on another
 * machine. Growing files are copied when they are flushed, which happens before each checkpoint, because each copy writes the
 * whole object again.
 */
import { Effect, type Scope, Semaphore } from "effect"
import { utf8 } from "../../../base/text/utf8.ts"
import type { FileTree } from "../FileTree.ts"
import { runStoreError } from "../RunStoreError.ts"
import type { ObjectStore } from "./ObjectStore.ts"

/** The destination of the copies. */
interface Mirror {
  readonly store: ObjectStore["Service"]
  /** The prefix of the keys of the folder's files, without a `/` at its end. */
  readonly key: string
  /** The address of the folder's copy, for messages. */
  readonly address: string
}

/**
 * Wraps a `FileTree`: it does the same, and copies each file that changes. Changes that are not copied yet are copied when
 * the scope closes.
 */
export const mirrored = Effect.fnUntraced(function* (
  tree: FileTree,
  { store, key, address }: Mirror,
): Effect.fn.Return<FileTree, never, Scope.Scope> {
  /** The files that have changed since they were copied. */
  const changed = new Set<string>()
  const changing = (path: string) => Effect.sync(() => void changed.add(path))

  const copying = <A>(path: string, effect: Effect.Effect<A, { readonly message: string }>) =>
    Effect.uninterruptible(Effect.mapError(effect, (error) => runStoreError("write", `${address}/${path}`, error)))

  // Allows one copy at a time: otherwise an older copy of a growing file could arrive last.
  const turn = Semaphore.makeUnsafe(1)
  const copy = (path: string) =>
    Effect.suspend(() => {
      // Remove the mark before the file is read, so that a later append marks the file again.
      changed.delete(path)
      return Effect.flatMap(tree.read(path), (bytes) => copying(path, store.put(`${key}/${path}`, bytes)))
    }).pipe(
      Effect.tapError(() => changing(path)),
      turn.withPermit,
    )

  const copyChanged = Effect.suspend(() => Effect.forEach([...changed], copy, { discard: true }))
  const forget = (path: string) =>
    Effect.sync(() => {
      for (const one of changed) if (one === path || one.startsWith(`${path}/`)) changed.delete(one)
    })
  const removeCopy = Effect.fnUntraced(function* (path: string) {
    yield* forget(path)
    const keys = yield* copying(path, store.list(`${key}/${path}`))
    const inside = keys.filter((one) => one === `${key}/${path}` || one.startsWith(`${key}/${path}/`))
    yield* Effect.forEach(inside, (one) => copying(path, store.remove(one)), { discard: true })
  })
  yield* Effect.addFinalizer(() =>
    Effect.catch(copyChanged, (error) =>
      Effect.logWarning(`the last lines of this run's files are lost: ${error.message}`),
    ),
  )

  return {
    ...tree,
    write: (path, contents, how) =>
      Effect.andThen(tree.write(path, contents, how), how?.durable === false ? changing(path) : copy(path)),
    append: (path, contents) => Effect.andThen(tree.append(path, contents), changing(path)),
    appending: (path) =>
      Effect.map(tree.appending(path), (append) => (contents) => Effect.andThen(append(contents), changing(path))),
    truncate: (path, size) => Effect.andThen(tree.truncate(path, size), changing(path)),
    sync: (path) =>
      Effect.andThen(
        tree.sync(path),
        Effect.suspend(() => (changed.has(path) ? copy(path) : Effect.void)),
      ),
    remove: (path) => Effect.andThen(tree.remove(path), removeCopy(path)),
    writeDirectory: Effect.fnUntraced(function* (path, files, last) {
      yield* tree.writeDirectory(path, files, last)
      yield* copyChanged
      yield* removeCopy(path)
      const names = yield* tree.list(path)
      // Copy the files of `last` at the end: they, such as the manifest of a checkpoint, show that the others are complete.
      const written = new Set(Object.keys(files).flatMap((name) => [name, name.split("/")[0]]))
      const inOrder = [...Object.keys(files), ...names.filter((name) => !written.has(name))]
      yield* Effect.forEach(inOrder, (name) => copy(`${path}/${name}`), { discard: true })
    }),
    link: (path, target) =>
      Effect.andThen(tree.link(path, target), copying(path, store.put(`${key}/${path}`, utf8.encode(target)))),
  }
})
