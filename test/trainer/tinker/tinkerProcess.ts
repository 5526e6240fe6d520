/** Starts Tinker servers as processes of their own, for tests and proofs that kill them, and speaks to them by plain HTTP. */
import { Effect } from "effect"
import * as LmDirectory from "../../../src/decoder/huggingFace/LmDirectory.ts"
import { onDisk } from "../../../src/run/store/FileTree.ts"
import { modelToSave, openBaseModel } from "../../../src/trainer/baseModel.ts"
import { start } from "../../command/cli/effect.ts"
import { disk } from "../../run/store/disk.ts"

interface Sizes {
  readonly hiddenSize: number
  readonly layers: number
  readonly heads?: number
  readonly maxPositions?: number
}

/** Writes a model with random weights into `base` of a folder. */
export const writeModel = (
  folder: string,
  { hiddenSize, layers, heads = 4, maxPositions = 48 }: Sizes,
): Promise<void> =>
  Effect.runPromise(
    Effect.gen(function* () {
      const tokenizer = { alphabet: "abcdefghijklmnopqrstuvwxyzQ: ", template: null }
      const sizes = { hiddenSize, layers, heads, maxPositions, intermediateSize: null, initializerRange: 0.1 }
      const base = yield* openBaseModel({ type: "scratch", tokenizer, ...sizes }, { baseDir: ".", seed: 1 })
      yield* LmDirectory.save(yield* onDisk(folder), "base", modelToSave(base))
    }).pipe(Effect.provide(disk)),
  )

export interface ServerProcess {
  readonly pid: number
  readonly kill: () => Promise<void>
}

/** Starts a server of the model in `base`, whose models are in `models`, and waits until it answers. */
export const serve = async (
  folder: string,
  port: number,
  flags: ReadonlyArray<string> = ["--backend", "wasm"],
): Promise<ServerProcess> => {
  const own = ["--tinker", "--tinker-dir", "models", "--json", ...flags]
  const { child, ended } = start(["serve", "base", "--port", String(port), ...own], folder)
  let printed = ""
  child.stdout?.on("data", (chunk) => (printed += String(chunk)))
  const failed = ended.then(({ stderr }) => Promise.reject(new Error(stderr)))
  failed.catch(() => undefined)
  const listening = new Promise<void>((resolve) =>
    child.stdout?.on("data", () => (printed.includes("\n") ? resolve() : undefined)),
  )
  await Promise.race([listening, failed])
  return {
    pid: child.pid ?? 0,
    kill: async () => {
      child.kill("SIGKILL")
      await ended
    },
  }
}
