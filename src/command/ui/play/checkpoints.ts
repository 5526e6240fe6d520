/** Finds the checkpoints in the list of a run's files. */
import * as Layout from "../../../run/Layout.ts"

/** A checkpoint whose policy the page can play. */
interface ListedCheckpoint {
  readonly name: string
  readonly step: number
  readonly paths: ReadonlyArray<string>
  /** The total size of its files. */
  readonly bytes: number
}

/** Returns the checkpoints of a training that have a manifest and weights, the newest first. */
export const checkpointsIn = (
  files: ReadonlyArray<{ readonly path: string; readonly size: number }>,
): ReadonlyArray<ListedCheckpoint> =>
  files
    .flatMap(({ path }) => {
      const parts = path.split("/")
      const name = parts.at(-2) ?? ""
      const counted = Layout.checkpointOf(name)
      if (parts.at(-1) !== Layout.inCheckpoint.manifest || counted?.unit !== "step") return []
      const folder = path.slice(0, -Layout.inCheckpoint.manifest.length)
      const own = files.filter((file) => file.path.startsWith(folder))
      if (!own.some((file) => file.path === folder + Layout.inCheckpoint.weights)) return []
      const bytes = own.reduce((sum, { size }) => sum + size, 0)
      return [{ name, step: counted.count, paths: own.map((file) => file.path), bytes }]
    })
    .sort((one, other) => other.step - one.step)
