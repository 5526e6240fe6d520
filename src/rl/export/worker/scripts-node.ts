/** Reads the scripts of an exported worker that are the same for every policy. They are files of this package. */
import { fileURLToPath } from "node:url"
import { Effect, FileSystem } from "effect"
import type { Scripts } from "./workerFiles.ts"

const read = (name: string) =>
  Effect.orDie(
    Effect.flatMap(FileSystem.FileSystem, (fs) => fs.readFile(fileURLToPath(new URL(name, import.meta.url)))),
  )

export const scripts: Effect.Effect<Scripts, never, FileSystem.FileSystem> = Effect.all({
  policy: read("policy.js"),
  worker: read("worker.js"),
})
