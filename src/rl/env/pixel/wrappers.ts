/**
 * Defines the usual wrappers for games with images, such as Atari's (Mnih et al. 2015, Machado et al. 2018). `Wrapper`
 * exports them, and also has `noopStarts`, `stickyActions`, `clipReward` and `frameStack`.
 *
 * @example
 * ```ts
 * import { Breakout, Wrapper } from "effect-rl"
 *
 * const env = Wrapper.frameStack(Wrapper.resize(Wrapper.maxAndSkip(Breakout.env, 4), 5, 5), 4)
 * ```
 */
import type { ActionOf, Env } from "../Env.ts"
import { checkWhole, invalid } from "../../../base/EnvError.ts"
import { type Around, around, firstStep, refuseElsewhere, rowOf, withConfig } from "../internal/around.ts"
import { allows, maskOf } from "../internal/rows.ts"
import { type ActionSpace, type Box, box, contains, display, type Space } from "../Space.ts"

export interface Skipping<State> extends Around<State> {
  /** The observation before the last one, with which the last one is joined; null at the start of an episode. */
  readonly before: ReadonlyArray<number> | null
}

/**
 * Repeats each action for `skip` steps and adds their rewards. Each element of the observation is the maximum over the
 * last two frames, since some games draw an object only in every other frame. The repetition stops when the mask
 * forbids the action. The env's time limit is divided by `skip` and rounded up.
 */
export const maxAndSkip = <State, A extends ActionSpace>(
  env: Env<State, A, Box>,
  skip = 4,
): Env<Skipping<State>, A, Box> => {
  checkWhole(env.id, skip, 1, `${env.id}: maxAndSkip: ${skip} steps`)
  const skipped = around<State, Skipping<State>, A, Box>(env, {
    observationSpace: env.observationSpace,
    reset: (random) => ({ inner: env.reset(random), before: null }),
    observe: ({ inner, before }) => {
      const seen = rowOf(env, inner)
      return before === null ? seen : seen.map((value, element) => Math.max(value, before[element]))
    },
    step: ({ inner }, action, random) => {
      let state = inner
      let reward = 0
      for (let step = 1; ; step++) {
        const last = state
        const transition = env.step(state, action, random)
        state = transition.state
        reward += transition.reward
        const isOver = transition.terminated || transition.truncated === true
        if (step < skip && !isOver && allows(env, maskOf(env, state), action)) continue
        return { ...transition, reward, state: { inner: state, before: step === 1 ? null : rowOf(env, last) } }
      }
    },
  })
  const limited = env.maxSteps === undefined ? skipped : { ...skipped, maxSteps: Math.ceil(env.maxSteps / skip) }
  return withConfig(env, limited, "MaxAndSkip", { skip })
}

/** Begins each episode with these actions, e.g. one that starts the ball. If one ends the episode, it begins again. */
export const fireStarts = <State, A extends ActionSpace, O extends Space>(
  env: Env<State, A, O>,
  ...actions: ReadonlyArray<ActionOf<A>>
): Env<State, A, O> => {
  const wrong = actions.find((action) => !contains(env.actionSpace, action))
  if (wrong !== undefined || actions.length === 0) {
    throw invalid(env.id, `fireStarts: ${JSON.stringify(wrong)} is no action of ${display(env.actionSpace)}`)
  }
  refuseElsewhere(env)
  const { batch: _, ...rest } = env
  const started: Env<State, A, O> = {
    ...rest,
    reset: (random) =>
      actions.reduce((state, action) => firstStep(env, "fireStarts", state, action, random), env.reset(random)),
  }
  const written = actions.map((action) => (typeof action === "number" ? action : Array.from(action)))
  return withConfig(env, started, "FireStarts", { actions: written })
}

/**
 * Ends the episode when a life is lost, so that the agent learns to keep its lives. `lives` returns the number of lives
 * in a state.
 */
export const endOnLifeLoss = <State, A extends ActionSpace, O extends Space>(
  env: Env<State, A, O>,
  lives: (state: State) => number,
): Env<State, A, O> => {
  refuseElsewhere(env)
  const { batch: _, ...rest } = env
  return {
    ...rest,
    // No config can contain the function `lives`, so this env must not have an id that a config can name.
    id: `${env.id}, one life`,
    step: (state, action, random) => {
      const transition = env.step(state, action, random)
      return lives(transition.state) < lives(state) ? { ...transition, terminated: true } : transition
    },
  }
}

/** Returns the shape of an env's images: channels, rows and columns. */
const imageOf = (
  { id, observationSpace }: Pick<Env<unknown, ActionSpace, Box>, "id" | "observationSpace">,
  wrapper: string,
) => {
  const [channels, rows, columns, more] = observationSpace.shape
  if (columns === undefined || more !== undefined) {
    throw invalid(
      id,
      `${wrapper}: expected images of the shape [channels, rows, columns], found ${display(observationSpace)}`,
    )
  }
  return { channels, rows, columns }
}

/** Wraps an env so that `map` changes its images. The new bounds are the lowest and the highest of all the old ones. */
const mapImages = <State, A extends ActionSpace>(
  env: Env<State, A, Box>,
  shape: ReadonlyArray<number>,
  map: (image: ReadonlyArray<number>) => ReadonlyArray<number>,
): Env<State, A, Box> => {
  refuseElsewhere(env)
  const { batch: _, ...rest } = env
  const { low, high } = env.observationSpace
  const lowest = low.reduce((least, bound) => Math.min(least, bound), Infinity)
  const highest = high.reduce((most, bound) => Math.max(most, bound), -Infinity)
  const id = `${env.id}[${shape.join("×")}]`
  return { ...rest, id, observationSpace: box(lowest, highest, shape), observe: (state) => map(rowOf(env, state)) }
}

/** Turns images of red, green and blue into grey ones, by their luminance: 0.299 R + 0.587 G + 0.114 B. */
export const grey = <State, A extends ActionSpace>(env: Env<State, A, Box>): Env<State, A, Box> => {
  const { channels, rows, columns } = imageOf(env, "grey")
  if (channels !== 3) throw invalid(env.id, `grey: expected images of 3 channels, found ${channels}`)
  const size = rows * columns
  const gray = mapImages(env, [1, rows, columns], (image) =>
    Array.from(
      { length: size },
      (_, at) => 0.299 * image[at] + 0.587 * image[size + at] + 0.114 * image[2 * size + at],
    ),
  )
  return withConfig(env, gray, "Grey", {})
}

/** Returns, for each of `to` new rows, the old rows that it covers and their weights, which sum to 1. */
const sharesOf = (
  from: number,
  to: number,
): ReadonlyArray<ReadonlyArray<{ readonly from: number; readonly share: number }>> =>
  Array.from({ length: to }, (_, row) => {
    const [start, end] = [(row * from) / to, ((row + 1) * from) / to]
    const first = Math.floor(start)
    return Array.from({ length: Math.ceil(end) - first }, (_, index) => ({
      from: first + index,
      share: (Math.min(end, first + index + 1) - Math.max(start, first + index)) / (end - start),
    }))
  })

/** Resizes images to this number of rows and columns. Each new element is the mean of the area that it covers. */
export const resize = <State, A extends ActionSpace>(
  env: Env<State, A, Box>,
  rows: number,
  columns: number,
): Env<State, A, Box> => {
  checkWhole(env.id, rows, 1, `${env.id}: resize: ${rows} rows`)
  checkWhole(env.id, columns, 1, `${env.id}: resize: ${columns} columns`)
  const before = imageOf(env, "resize")
  const rowShares = sharesOf(before.rows, rows)
  const columnShares = sharesOf(before.columns, columns)
  const resized = mapImages(env, [before.channels, rows, columns], (image) => {
    const out: Array<number> = []
    for (let channel = 0; channel < before.channels; channel++) {
      for (const across of rowShares) {
        for (const along of columnShares) {
          let sum = 0
          for (const row of across) {
            const at = (channel * before.rows + row.from) * before.columns
            for (const column of along) sum += row.share * column.share * image[at + column.from]
          }
          out.push(sum)
        }
      }
    }
    return out
  })
  return withConfig(env, resized, "Resize", { rows, columns })
}
