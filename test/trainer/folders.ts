import { Effect, FileSystem } from "effect"
import { type RunFolder, openRunFolder } from "../../src/trainer/runs/guardedFolder.ts"
import { temporaryDirectory } from "../run/store/disk.ts"

/** Makes the folder of a run in a folder that is gone after the test, and opens it. */
export const temporaryRunFolder = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const directory = `${yield* temporaryDirectory}/run_a`
  yield* fs.makeDirectory(directory)
  return yield* openRunFolder({ id: "run_a", directory })
})

/** Lists the files below a folder. */
export const filesBelow = (directory: string) =>
  Effect.flatMap(FileSystem.FileSystem, (fs) =>
    Effect.map(fs.readDirectory(directory, { recursive: true }), (names) => names.toSorted()),
  )

/** Opens the folder of another `RunFolder` again, e.g. on a broken disk. */
export const reopen = ({ id, directory }: RunFolder) => openRunFolder({ id, directory })
