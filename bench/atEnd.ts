/** Undoes what this process has begun when it ends: also by `process.exit`, by Ctrl-C or by SIGTERM. */
import { constants } from "node:os"

const waiting = new Set<() => void>()

const undoAll = (): void => {
  for (const undo of [...waiting].reverse()) {
    try {
      undo()
    } catch (error) {
      console.error(error instanceof Error ? error.message : error)
    }
  }
}

/** Ends this process as a signal does, but after the listeners of `exit`. */
const endBy = (signal: NodeJS.Signals): never => process.exit(128 + constants.signals[signal])

/**
 * Calls `undo` when this process ends, or when the returned function is called before; once in any case.
 *
 * @example
 * ```ts
 * const remove = atEnd(() => rmSync(folder, { recursive: true, force: true }))
 * ```
 */
export const atEnd = (undo: () => void): (() => void) => {
  const once = (): void => {
    if (!waiting.delete(once)) return
    if (waiting.size === 0) process.off("exit", undoAll).off("SIGINT", endBy).off("SIGTERM", endBy)
    undo()
  }
  if (waiting.size === 0) process.on("exit", undoAll).on("SIGINT", endBy).on("SIGTERM", endBy)
  waiting.add(once)
  return once
}
