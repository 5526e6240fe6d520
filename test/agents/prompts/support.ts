import { NodeServices } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Prompts from "../../../src/agents/prompts/Prompts.ts"
import type { Plain } from "../../../src/base/config/Config.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import { scores } from "../../../src/run/record/scores.ts"
import { below, type Place } from "../evaluate/support.ts"

/** A code without a rule: an agent can only answer what its texts say. */
const codebook = { type: "codebook", rule: "none", words: 10, wordings: 2 }

/** A run that needs no API key: one script follows the rules in its prompt, and states rules when it is asked to reflect. */
export const config: Plain = {
  seed: 1,
  agent: { type: "memoryless_agent", system_prompt: "Answer.", lm_config: { model: "scripted:reader" } },
  dataset: { ...codebook, num_tasks: 40, seed: 1 },
  validation_dataset: { ...codebook, num_tasks: 12, seed: 2 },
  test_dataset: { ...codebook, num_tasks: 20, seed: 3 },
  learner: { type: "gepa", reflection_lm_config: { model: "scripted:reader" }, max_metric_calls: 100 },
  workers: 4,
}

/** Learns in memory. Returns the result, and every file by its path in the run's folder. */
export const learned = (what: Plain, { files = new Map(), resume }: Place = {}) =>
  Effect.map(
    Prompts.fromConfig(what).pipe(
      Effect.provide(
        Layer.mergeAll(
          RunStore.memory({ files, ...(resume === undefined ? {} : { resume }) }).layer,
          Recorder.layer(scores),
          NodeServices.layer,
          FetchHttpClient.layer,
        ),
      ),
    ),
    (result) => ({ result, files: below(files, result.runDir) }),
  )
