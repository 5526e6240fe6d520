/**
 * Writes the folder `steps/{STEP}/` of a run, with the file names that RLtools' viewer expects: episodes of the current
 * policy (`trajectories.json.gz`, the first one as a moving picture in `episode.svg`, and on request videos), the policy in the
 * formats that can hold it (`checkpoint.onnx`, `.safetensors`, `.h5`, `.h`), and its evaluation (`evaluation_results.json`).
 * `setUp.ts` calls it.
 */
import { Effect } from "effect"
import type { Learner, LearnerError } from "../learner/Learner.ts"
import * as safetensors from "../../base/formats/safetensors.ts"
import type { Env } from "../env/Env.ts"
import { trajectoriesJson, uiOf } from "../env/ui/Ui.ts"
import { CurrentRun } from "../../run/CurrentRun.ts"
import { encodeEvaluation, type Evaluation } from "../../run/evaluation.ts"
import * as Layout from "../../run/Layout.ts"
import { utf8 } from "../../base/text/utf8.ts"
import { fromPath } from "../../run/identifier.ts"
import { gzip } from "../../base/formats/gzip.ts"
import type { RunFiles } from "../../run/store/RunFiles.ts"
import type { RunStoreError } from "../../run/store/RunStoreError.ts"
import { policyFiles } from "../export/policyFiles.ts"
import { exportedPolicies, type TrainingEnvs } from "./envs.ts"
import type { Plan } from "./plan.ts"
import { PolicyHeaders } from "./policyHeaders.ts"
import type { TrainingState } from "./TrainingState.ts"
import { videoFiles } from "./validation/videos.ts"
import { animate, makePlayer } from "./validation/rendering.ts"

/** Writes the folder of the current step and returns its path. */
export type WriteStepFolder = (
  state: TrainingState,
  /** The evaluation to write; by default the state's evaluation at this step. */
  evaluation?: Evaluation,
) => Effect.Effect<string, LearnerError | RunStoreError, CurrentRun>

/** Compiles a policy for single episodes, and returns the function that writes the folder of a step. */
export const makeStepFolder = Effect.fnUntraced(function* (
  { plan, learner, envs }: { readonly plan: Plan; readonly learner: Learner; readonly envs: TrainingEnvs },
  policyFor: NonNullable<Learner["policy"]>,
) {
  const { render, validation, seed } = plan.settings
  const [env] = plan.validationEnvs
  const playEpisode = yield* makePlayer(env, policyFor, envs.observationMoments, validation)
  const write: WriteStepFolder = Effect.fnUntraced(function* (state, evaluation = state.evaluationHere) {
    const { files: run } = yield* CurrentRun
    const folder = Layout.stepFolder(state.step)
    const episodes = yield* Effect.forEach(
      Array.from({ length: render.episodes }, (_, index) => index),
      (index) => playEpisode(seed, state.step, index),
    )
    const videos = yield* videoFiles(
      env.id,
      episodes.map(({ frames }) => frames),
      render,
    )
    const weights = yield* learner.weights
    const models = yield* exportedPolicies({ plan, learner, envs }, state.step, Layout.inStep.onnxOf)
    const example = Float32Array.from(episodes[0].steps[0].observation)
    yield* writeUi(run, env)
    yield* run.writeDirectory(folder, {
      [Layout.inStep.trajectories]: yield* gzip(trajectoriesJson(episodes, 1 / render.speed)),
      ...(episodes[0].frames.length === 0
        ? {}
        : { [Layout.inStep.picture]: utf8.encode(animate(episodes[0].frames, render.speed)) }),
      ...videos,
      [Layout.inStep.weights]: safetensors.encode(weights),
      ...models,
      ...(yield* headerFile(models[Layout.inStep.onnx], example, fromPath(run.directory)?.commit)),
      ...policyFiles(learner.dense, weights, {
        name: `${plan.algorithm.name} on ${env.id}`,
        environment: env.id,
        moments: envs.observationMoments,
        example,
      }),
      ...(evaluation === undefined ? {} : { [Layout.inStep.evaluation]: encodeEvaluation(evaluation) }),
    })
    return folder
  })
  return write
})

/** Returns the policy as a header of C; no file if there is none, or if the run has separate policies. */
const headerFile = Effect.fnUntraced(function* (
  onnx: Uint8Array | undefined,
  example: Float32Array,
  commit = "no-hash",
): Effect.fn.Return<Readonly<Record<string, Uint8Array>>> {
  const { header } = yield* PolicyHeaders
  const text = onnx === undefined ? undefined : yield* header(onnx, { commit, example })
  return text === undefined ? {} : { [Layout.inStep.header]: utf8.encode(text) }
})

/** Writes the env's code that renders its states in a browser, if it has any, once for all step folders of the run. */
const writeUi = Effect.fnUntraced(function* (run: RunFiles, env: Env) {
  const ui = uiOf(env)
  if (ui === undefined || (yield* run.exists(Layout.ui.module))) return
  yield* run.write(Layout.ui.module, ui.esm)
  yield* run.write(Layout.ui.classic, ui.classic)
})
