/** Decides whether a trainer computes the reference model of KL terms in a thread of its own. */
import { Effect, Option, type Scope } from "effect"
import type { MultiRunConfig } from "../config/MultiRunConfig.ts"
import { TrainerError } from "../TrainerError.ts"
import { makeReferences, type References } from "./references.ts"
import { ReferenceThreads } from "./ReferenceThreads.ts"

type Sizes = MultiRunConfig["trainer"]

/** Tells whether a config asks for the thread. `null` asks for it with several runs on one rank. */
const wantsThread = ({ lora, maxRuns, ranks, referenceThread }: Sizes): boolean =>
  referenceThread ?? (lora !== null && maxRuns > 1 && ranks === 1)

/** Fails if the config asks for the thread, and no service can start it. */
export const checkReference = Effect.fnUntraced(function* ({ trainer }: Pick<MultiRunConfig, "trainer">) {
  if (trainer.referenceThread !== true || Option.isSome(yield* Effect.serviceOption(ReferenceThreads))) return
  return yield* new TrainerError({
    message:
      "trainer.reference_thread: expected null or false, found true; only Node starts threads: provide Node.trainerThreads",
  })
})

/**
 * Returns the function that starts the thread of the reference model for a device; undefined if the trainer's own thread
 * computes the reference model.
 */
export const referencesFor = Effect.fnUntraced(function* ({
  settings: { model, trainer, seed },
  baseDir,
}: {
  readonly settings: Pick<MultiRunConfig, "model" | "trainer" | "seed">
  /** The folder that the path of the model starts from. */
  readonly baseDir: string
}): Effect.fn.Return<((device: string) => Effect.Effect<References, never, Scope.Scope>) | undefined> {
  const threads = yield* Effect.serviceOption(ReferenceThreads)
  if (!wantsThread(trainer) || Option.isNone(threads)) return undefined
  return (device) => Effect.map(threads.value.start({ model, trainer, seed, baseDir, device }), makeReferences)
})
