import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Deferred, Effect, Fiber, type FileSystem, Layer, Logger } from "effect"
import type { Backend } from "../../src/tensor/backend/Backend.ts"
import * as Wasm from "../../src/tensor/backend/wasm.ts"
import type { Plain } from "../../src/base/config/Config.ts"
import * as Safetensors from "../../src/base/formats/safetensors.ts"
import * as Layout from "../../src/trainer/Layout.ts"
import * as MultiRun from "../../src/trainer/MultiRun.ts"
import { Recorder, type Sink } from "../../src/run/record/Recorder.ts"
import type { RunEvent } from "../../src/run/record/RunEvent.ts"
import type { Owner } from "../../src/run/store/lock.ts"
import { RunStore } from "../../src/run/store/RunStore.ts"
import { moment } from "../run/store/disk.ts"

const letters = "abcdefghijklmnopqrstuvwxyz: "
const template =
  "{% for message in messages %}<|im_start|>{{ message.content }}<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>{% endif %}"

const dataset = (seed: number, tasks: number) => ({
  type: "reverse_text",
  num_tasks: tasks,
  seed,
  max_letters: 3,
  scoring: "similarity",
})

/** The config of a run that imitates for one step, and then learns from rewards in step with the trainer. */
export const runConfig = (seed: number, more: Plain = {}) => ({
  seed,
  train_dataset: dataset(seed, 40),
  max_steps: 3,
  supervised: { steps: 1, lr: 0.02 },
  optimiser: { type: "adamw", lr: 0.01 },
  batch: { size: 8, group_size: 4 },
  sampling: { max_tokens: 3 },
  max_async_level: 0,
  ...more,
})

export const validated = { validation_dataset: dataset(99, 4), validation: { every: 2 } }

/** The config of a trainer with an adapter of rank 2 for each run, over a model of one layer. */
export const configOf = (runs: Readonly<Record<string, Plain>>, { seed = 1, trainer = {} }: Settings = {}) => ({
  kind: "multirun",
  name: "small",
  seed,
  model: {
    type: "scratch",
    hidden_size: 16,
    layers: 1,
    heads: 2,
    max_positions: 24,
    tokenizer: { alphabet: letters, template },
  },
  trainer: {
    rows: 4,
    width: 24,
    block: 8,
    max_runs: Math.max(1, Object.keys(runs).length),
    lora: { rank: 2, alpha: 4, targets: ["q_proj", "v_proj"] },
    ...trainer,
  },
  inference: { generating: [8], reading: [8], page_size: 8 },
  broadcast: { keep: 0 },
  runs,
})

interface Settings {
  readonly seed?: number
  /** Settings of the trainer that replace the usual ones. */
  readonly trainer?: Plain
}

/** A folder for the results of a test, which is gone after it. */
export const resultsFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "training-"))),
  (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true })),
)

export interface Place {
  readonly resultsDir: string
  /** The folder of a run to resume. */
  readonly resume?: string
  /** Called with the folder of the run. */
  readonly onOpen?: (directory: string) => void
  /** Called with each event of the trainer and of its runs. */
  readonly onEvent?: (event: RunEvent) => void
  /** Sinks that write files of the trainer and of its runs. */
  readonly sinks?: ReadonlyArray<Sink>
  /** The owner of locks; by default nothing is locked. */
  readonly owner?: Owner
  /** The backend; by default `wasm`. */
  readonly backend?: Layer.Layer<Backend>
  /** The disk; by default the machine's. */
  readonly disk?: Layer.Layer<FileSystem.FileSystem>
}

/** Trains a config, with the results in a folder. */
export const trained = (config: unknown, place: Place) => {
  const { resultsDir, resume, owner, onOpen = () => {}, onEvent = () => {}, sinks = [], backend = Wasm.layer } = place
  const services = place.disk === undefined ? NodeServices.layer : Layer.merge(NodeServices.layer, place.disk)
  const store = RunStore.layerFileSystem({
    resultsDir,
    time: moment,
    commit: "0123abc",
    onOpen: (directory) => Effect.sync(() => onOpen(directory)),
    ...(resume === undefined ? {} : { resume }),
    ...(owner === undefined ? {} : { owner }),
  })
  const listening = Recorder.layer(...sinks, () =>
    Effect.succeed({
      emit: (events) => Effect.sync(() => events.forEach(onEvent)),
      flush: Effect.void,
    }),
  )
  return Effect.scoped(MultiRun.fromConfig(config)).pipe(
    Effect.provide(
      Layer.mergeAll(
        Layer.provideMerge(store, services),
        NodeHttpClient.layerUndici,
        listening,
        backend,
        Logger.layer([]),
      ),
    ),
  )
}

/** Trains until some updates are made, and then goes on in another process's place. */
export const interruptedAndResumed = Effect.fnUntraced(function* (
  config: unknown,
  resultsDir: string,
  updates: number,
) {
  const reached = yield* Deferred.make<void>()
  let resume = ""
  const training = trained(config, {
    resultsDir,
    onOpen: (directory) => void (resume = directory),
    onEvent: (event) => {
      if (event._tag === "UpdateApplied" && event.update >= updates) Deferred.doneUnsafe(reached, Effect.void)
    },
  })
  const fiber = yield* Effect.forkChild(training)
  yield* Deferred.await(reached)
  yield* Fiber.interrupt(fiber)
  return yield* trained(config, { resultsDir, resume })
})

/** The files in the folder of a run. */
export const runFiles = (runDir: string, run: string) => {
  const textOf = (path: string): string | undefined => {
    const file = join(runDir, `run_${run}`, path)
    return existsSync(file) ? readFileSync(file, "utf8") : undefined
  }
  return {
    textOf,
    evicted: () => textOf(Layout.evicted),
    progressAt: (step: number): unknown =>
      JSON.parse(textOf(`${Layout.checkpoint(step)}/${Layout.inCheckpoint.progress}`) ?? "null"),
    /** Returns the weights in the checkpoint of a step. */
    weightsAt: (step: number) =>
      Safetensors.decode(
        readFileSync(join(runDir, `run_${run}`, Layout.checkpoint(step), Layout.inCheckpoint.weights)),
      ),
  }
}
