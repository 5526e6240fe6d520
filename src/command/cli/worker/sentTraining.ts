/** Loads the trainings of clients from their configs or their programs, so that this worker can do a part of their work. */
import { Effect, Layer } from "effect"
import { checkFiles } from "../../../spread/cluster/sent/sentFiles-node.ts"
import { backend, backendNames, envPool, platform } from "../../../node.ts"
import { Recorder } from "../../../run/record/Recorder.ts"
import { kindOf } from "../../../run/RunSpec.ts"
import type { SentTraining } from "../../../run/spread/SentTraining.ts"
import { trainingHandlers } from "../../../run/spread/Serving.ts"
import { RunStore } from "../../../run/store/RunStore.ts"
import { RunOptions } from "../../../run/RunOptions.ts"
import { loadTraining } from "../userCode/loadTraining.ts"

/** The names of the jobs that do a part of a training's work. */
const jobs = ["validation", "agent-validation", "agent-rollouts"]

/**
 * Returns the training that a client describes. It looks for no runs and records nothing, because the worker only does jobs
 * of it.
 */
const loadSent = Effect.fnUntraced(function* (sent: SentTraining) {
  const training = yield* sent._tag === "Config" ? fromConfig(sent.config) : fromProgram(sent)
  const device = backendNames.find((name) => name === sent.backend) ?? "auto"
  const layers = Layer.mergeAll(backend(device), envPool, platform, Recorder.layerSilent, RunStore.memory().layer)
  return Effect.provide(training, layers)
})

const fromConfig = Effect.fnUntraced(function* (config: unknown) {
  if (kindOf(config) !== "agents") {
    const { fromConfig } = yield* Effect.promise(() => import("../../../rl/train/Train.ts"))
    return Effect.asVoid(fromConfig(config))
  }
  const { fromConfig } = yield* Effect.promise(() => import("../../../agents/training/Runtime.ts"))
  return Effect.asVoid(fromConfig(config))
})

const fromProgram = Effect.fnUntraced(function* ({
  files,
  name,
  overrides,
}: Extract<SentTraining, { readonly _tag: "Program" }>) {
  const [{ path, sha256 }] = files
  yield* checkFiles("training", files)
  const training = yield* loadTraining(path, { version: sha256 })
  return Effect.provideService(Effect.asVoid(training), RunOptions, { overrides, source: path, name })
})

/** Makes the code of a worker that does a part of the work of trainings. */
export const handlersOfTrainings = trainingHandlers(jobs, loadSent)
