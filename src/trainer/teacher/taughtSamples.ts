/** Turns the log-probabilities of a teacher into the advantages of samples, and puts hints before samples. */
import { Effect } from "effect"
import type { Rollout } from "../../agents/episode/Rollout.ts"
import type { TaskSet } from "../../agents/task/TaskSet.ts"
import { refuseTooLong, type TrainingSample } from "../batches/TrainingSample.ts"
import type { OwnWeights } from "../trainer/TrainedModel.ts"
import { TrainerError } from "../TrainerError.ts"
import type { TeacherConfig } from "./TeacherConfig.ts"
import type { Teacher } from "./teachers.ts"

/** Renders a text as a system message of its own, and returns its tokens. */
export type RenderHint = (text: string) => Effect.Effect<ReadonlyArray<number>, { readonly message: string }>

interface HintPlace {
  readonly tasks: TaskSet
  readonly run: string
  readonly step: number
  /** The largest number of tokens of a sample. */
  readonly width: number
  readonly hint: string
  readonly renderHint: RenderHint
}

/** A rollout with its samples. */
interface Played {
  readonly rollout: Rollout
  /** The index of its task. */
  readonly task?: number
  readonly samples: ReadonlyArray<Pick<TrainingSample, "id">>
  /** A sample from which nothing is learned, if the rollout has no others. */
  readonly spare?: Pick<TrainingSample, "id">
}

/** Puts tokens that are not learned from before those of a sample. */
const after = (block: ReadonlyArray<number>, sample: TrainingSample): TrainingSample => {
  // The experts of the sample were chosen without the tokens before it.
  const { routedExperts: _, ...others } = sample
  const { tokens, mask, logprobs, advantages } = sample
  const [length, { length: start }] = [block.length + tokens.length, block]
  const moved = {
    ...others,
    tokens: new Int32Array(length),
    mask: new Uint8Array(length),
    logprobs: new Float32Array(length),
    advantages: new Float32Array(length),
  }
  moved.tokens.set(block)
  moved.tokens.set(tokens, start)
  moved.mask.set(mask, start)
  moved.logprobs.set(logprobs, start)
  moved.advantages.set(advantages, start)
  return moved
}

/**
 * Returns the right answer of a rollout's task: what the env says in its feedback, or if the episode had no step, the answer that
 * the task itself knows. Null if there is none.
 */
const answerOf = Effect.fnUntraced(function* (tasks: TaskSet, { rollout: { steps }, task }: Played) {
  const last = steps.findLast((step) => step._tag === "EnvironmentStep")
  if (last !== undefined && last.feedback.target !== null) return last.feedback.target
  return task === undefined ? null : ((yield* tasks.at(task)).target ?? null)
})

/** Puts the hint of each sample's task before the sample. */
export const withHints = Effect.fnUntraced(function* (
  samples: ReadonlyArray<TrainingSample>,
  played: ReadonlyArray<Played>,
  { tasks, run, step, width, hint, renderHint }: HintPlace,
) {
  const playedOf = new Map(
    played.flatMap((one) =>
      [...one.samples, ...(one.spare === undefined ? [] : [one.spare])].map(({ id }) => [id, one]),
    ),
  )
  return yield* Effect.forEach(
    samples,
    Effect.fnUntraced(function* (sample) {
      const one = playedOf.get(sample.id)
      // If filters left out all samples of a step, one is kept from which nothing is learned.
      if (one === undefined) return sample
      const answer = yield* answerOf(tasks, one)
      if (answer === null)
        return yield* TrainerError.at(
          run,
          `step ${step}: sample ${sample.id}: teacher.hint: expected a task that knows the right answer, found none`,
        )
      // The replacement is a function, because `$` has a meaning in a text.
      const hinted = after(yield* renderHint(hint.replaceAll("{answer}", () => answer)), sample)
      yield* refuseTooLong({ ...hinted, id: `${sample.id} with its hint` }, width, { run, step })
      return hinted
    }),
  )
})

interface Teaching {
  readonly teacher: Teacher
  readonly config: TeacherConfig
  readonly run: string
  readonly step: number
  /** The samples as the teacher reads them, if it reads hints before them. */
  readonly hinted?: ReadonlyArray<TrainingSample>
  /** The newest weights of the run, for its own model as its teacher. With `max_async_level: 0`, they are those that sampled. */
  readonly own: OwnWeights | undefined
}

/**
 * Returns the samples with the teacher's advantages, and the mean over all tokens of log π − log π_teacher, which estimates the
 * reverse KL divergence from the model to the teacher.
 */
export const taughtSamples = Effect.fnUntraced(function* (
  samples: ReadonlyArray<TrainingSample>,
  { teacher, config, run, step, hinted = samples, own }: Teaching,
) {
  const { coefficient, baseline, rewards } = config
  const scores = yield* Effect.mapError(teacher.score(hinted, own), ({ message }) =>
    TrainerError.at(run, `step ${step}: the teacher failed: ${message}`),
  )
  const differences: Array<Float64Array> = []
  let [sum, tokens] = [0, 0]
  for (const [index, { id, mask, logprobs }] of samples.entries()) {
    const score = scores[index]
    const start = score.length - mask.length
    const difference = new Float64Array(mask.length)
    for (let at = 0; at < mask.length; at++) {
      if (mask[at] === 0) continue
      difference[at] = score[start + at] - logprobs[at]
      if (!Number.isFinite(difference[at]))
        return yield* TrainerError.at(
          run,
          `step ${step}: sample ${id}: token ${at}: expected a finite log-probability of the teacher, found ${score[start + at]}`,
        )
      sum += difference[at]
      tokens++
    }
    differences.push(difference)
  }
  const mean = tokens === 0 ? 0 : sum / tokens
  const subtracted = baseline === "mean" ? mean : 0
  const taught = samples.map((sample, index): TrainingSample => {
    const advantageAt = (at: number): number =>
      coefficient * (differences[index][at] - subtracted) + (rewards ? sample.advantages[at] : 0)
    return { ...sample, advantages: Float32Array.from(sample.mask, (mask, at) => (mask === 0 ? 0 : advantageAt(at))) }
  })
  return { samples: taught, metrics: { "sampling/teacher_kl": -mean } }
})
