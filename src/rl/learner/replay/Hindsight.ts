/**
 * Implements hindsight experience replay: draws transitions as if a goal that their episode achieved had been the
 * desired one. A place is the index of a step in the replay buffer.
 */
import { Effect } from "effect"
import { ConfigError, display } from "../../../base/config/Config.ts"
import { messageOf, oneLine } from "../../../base/text/text.ts"
import { EnvError } from "../../../base/EnvError.ts"
import { type Goals, layoutOf } from "../../env/GoalEnv.ts"
import { sizeOf, unflatten } from "../../env/Space.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import type { Arrays } from "../Batch.ts"
import type { Task } from "../Learner.ts"
import type { Her } from "./fields.ts"
import type { Replay } from "./Replay.ts"
import type { ReplayColumns, ReplayExperience } from "./ReplayExperience.ts"

/** The arrays of a batch that other goals change. */
type Relabelled = Pick<Arrays<ReplayColumns>, "observations" | "rewards" | "nextObservations" | "discounts">

/** Changes the goals of drawn transitions, which begin at these places. */
type Relabel = (random: Stream, places: Int32Array, into: Relabelled) => void

/**
 * Makes the function that replaces the goals of drawn transitions (Andrychowicz et al. 2017, arXiv:1707.01495), on
 * average of `goals` out of `goals` + 1. The new goal is one that a step of the same episode achieved, if the buffer
 * still has this step; rewards and ends are computed anew. Fails if the env has no goals. The function throws an
 * `EnvError` if a function of the env fails.
 */
export const hindsight = (
  her: Her,
  replay: Replay,
  { name, task, config: { nsteps, gamma } }: Pick<ReplayExperience<string, never>, "name" | "task" | "config">,
): Effect.Effect<Relabel, ConfigError> => {
  const { past } = replay
  const goals = goalFunctions(task, name)
  if (past === undefined || goals === undefined) {
    const problem = "expected null, as the env has no goals; GoalEnv.make makes envs with goals"
    return Effect.fail(ConfigError.at({ source: name }, "algorithm.her", problem))
  }
  const { achievedAt, desiredAt, goalSize, reward, isTerminal } = goals
  const width = sizeOf(task.observationSpace)
  const seen = new Float32Array(width)
  const goal = new Float32Array(goalSize)
  const own = new Float32Array(goalSize)
  const share = her.goals / (her.goals + 1)

  /** Returns the place of the step whose achieved goal becomes the desired one. */
  const chosen = (place: number, uniform: number): number => {
    const later = past.stepsAfter(place)
    if (her.strategy === "final") return past.shifted(place, later)
    const earlier = her.strategy === "future" ? 0 : past.stepsBefore(place)
    return past.shifted(place, Math.floor(uniform * (earlier + later + 1)) - earlier)
  }

  const relabel = (first: number, row: number, into: Relabelled): void => {
    const { observations, rewards, nextObservations, discounts } = into
    const at = row * width + desiredAt
    for (let index = 0; index < goalSize; index++) own[index] = observations[at + index]
    observations.set(goal, at)
    nextObservations.set(goal, at)
    // Read the same steps as `gather`. With the new goal, the episode may end earlier, or continue where the old goal
    // ended it.
    let total = 0
    let discount = 1
    for (let step = 0, place = first; step < nsteps; step++, place = past.shifted(place, 1)) {
      past.readNext(place, seen)
      total += discount * reward(seen, achievedAt, goal)
      discount *= gamma
      const wasForOther = past.isTerminated(place) && !isTerminal(seen, achievedAt, own)
      if (wasForOther || isTerminal(seen, achievedAt, goal)) {
        discount = 0
        break
      }
      if (past.isLast(place)) break
    }
    rewards[row] = total
    discounts[row] = discount
  }

  /** Two random numbers for each row: whether its goal is replaced, and by which one. */
  let uniform = new Float64Array(0)
  return Effect.succeed((random, places, into) => {
    if (uniform.length !== 2 * places.length) uniform = new Float64Array(2 * places.length)
    random.fillUniform(uniform)
    for (let row = 0; row < places.length; row++) {
      if (uniform[2 * row] >= share) continue
      past.readNext(chosen(places[row], uniform[2 * row + 1]), seen)
      for (let index = 0; index < goalSize; index++) goal[index] = seen[achievedAt + index]
      relabel(places[row], row, into)
    }
  })
}

/**
 * Returns the functions of a task's goals over rows of numbers; undefined if it has no goals. They throw an `EnvError` if the
 * env's own functions throw, or return no finite reward.
 */
const goalFunctions = ({ observationSpace, goals, model }: Task, algorithm: string) => {
  const layout = layoutOf(observationSpace)
  if (goals === undefined || layout === undefined) return undefined
  const { space, achievedAt, desiredAt } = layout
  const goalSize = sizeOf(space)
  const isList = space._tag !== "Discrete" && space._tag !== "Dict" && space._tag !== "Tuple"
  // If goals are lists of numbers, pass views of the rows instead of converting them.
  const valueAt = (row: Float32Array, at: number) =>
    isList ? row.subarray(at, at + goalSize) : unflatten(space, row, at)
  const failed = (
    name: keyof Goals,
    row: Float32Array,
    at: number,
    goal: Float32Array,
    problem: string,
    userStack?: string,
  ): EnvError => {
    const [achieved, desired] = [display(unflatten(space, row, at)), display(unflatten(space, goal, 0))]
    const env = model?.id ?? algorithm
    const message = `${env}: ${name}(achieved ${achieved}, desired ${desired}) ${problem}`
    return new EnvError({ env, message, ...(userStack !== undefined && { userStack }) })
  }
  const calling = <A>(name: keyof Goals, row: Float32Array, at: number, goal: Float32Array, call: () => A): A => {
    try {
      return call()
    } catch (error) {
      const isError = error instanceof Error
      const problem = `threw ${isError ? `${error.name}: ` : ""}${oneLine(messageOf(error))}`
      throw failed(name, row, at, goal, problem, isError ? error.stack : undefined)
    }
  }
  return {
    achievedAt,
    desiredAt,
    goalSize,
    /** Returns the reward if `goal` is desired and the goal at an offset of `row` was achieved. */
    reward: (row: Float32Array, at: number, goal: Float32Array): number => {
      const reward = calling("computeReward", row, at, goal, () =>
        goals.computeReward(valueAt(row, at), valueAt(goal, 0)),
      )
      if (Number.isFinite(reward)) return reward
      throw failed("computeReward", row, at, goal, `returned ${display(reward)}; expected a finite number`)
    },
    isTerminal: (row: Float32Array, at: number, goal: Float32Array): boolean =>
      calling(
        "computeTerminated",
        row,
        at,
        goal,
        () => goals.computeTerminated?.(valueAt(row, at), valueAt(goal, 0)) ?? false,
      ),
  }
}
