/**
 * Lets several learners play one batch of games together. Each learner has a batch of its own, with the rows of its
 * agents. The games take a step as soon as all learners have chosen their actions. `separateLearner` uses it.
 */
import { Deferred, Effect, Exit } from "effect"
import type { AnyBatchEnv, AsyncBatchEnv } from "../../env/BatchEnv.ts"
import { type EnvError, invalid } from "../../../base/EnvError.ts"
import { wrongLength } from "../../env/internal/episodes.ts"
import { settled } from "../drive.ts"
import { copy } from "../rollout/Rollout.ts"
import type { Seat } from "./seats.ts"

/** A batch of games in which several learners play, each in its own seat (the rows of its agents). */
export interface Meeting {
  /** The batch of each seat, in the order of the seats. */
  readonly views: ReadonlyArray<AsyncBatchEnv>
  /**
   * Runs a rollout in each view at the same time, and returns their results. If one fails, or ends while another one takes
   * further steps, all of them end, and the error says why.
   */
  readonly play: <A, E>(rollouts: ReadonlyArray<Effect.Effect<A, E>>) => Effect.Effect<ReadonlyArray<A>, E>
}

/** A batch with the rows of a seat, and the function that copies these rows from the whole batch. */
interface View {
  readonly batch: AsyncBatchEnv
  readonly show: () => void
}

export const makeMeeting = (envs: AnyBatchEnv, seats: ReadonlyArray<Seat>): Meeting => {
  const { actionSpace, actionSize, numEnvs } = envs
  const length = numEnvs * actionSize
  const actions = actionSpace._tag === "Box" ? new Float32Array(length) : new Int32Array(length)
  /** The step that the learners wait for; completed when the games have taken it. */
  let step = Deferred.makeUnsafe<void, EnvError>()
  /** The number of learners that wait for this step. */
  let waiting = 0
  /** The indices of the rollouts that have ended, in the order of their ends. */
  let ended: Array<number> = []

  const unequal = (): EnvError =>
    invalid(
      envs.id,
      `the rollouts of separate policies must have equally many steps, but that of ${seats[ended[0]].name} ended first`,
    )

  /** Ends the wait of all learners with the result of the step, and prepares the next step. */
  const complete = (result: Exit.Exit<void, EnvError>): void => {
    const completed = step
    step = Deferred.makeUnsafe()
    waiting = 0
    Deferred.doneUnsafe(completed, result)
  }

  /**
   * Waits until all learners have chosen their actions and the games have taken the step. The last learner steps the
   * games.
   */
  const awaitStep = Effect.suspend((): Effect.Effect<void, EnvError> => {
    waiting++
    if (waiting + ended.length < seats.length) return Deferred.await(step)
    const taken = ended.length > 0 ? Effect.fail(unequal()) : settled(() => envs.step(actions))
    return Effect.onExit(taken, (exit) =>
      Effect.sync(() => {
        if (Exit.isSuccess(exit)) show()
        complete(exit)
      }),
    )
  })

  const views = seats.map((seat) =>
    viewOf(envs, seat, (own) =>
      Effect.suspend(() => {
        if (own.length !== seat.rows.length * actionSize)
          return Effect.fail(wrongLength(envs.id, seat.rows.length, actionSize, own))
        give(seat, own, actions, actionSize)
        return awaitStep
      }),
    ),
  )
  const show = (): void => {
    for (const view of views) view.show()
  }

  const play = Effect.fnUntraced(function* <A, E>(
    rollouts: ReadonlyArray<Effect.Effect<A, E>>,
  ): Effect.fn.Return<ReadonlyArray<A>, E> {
    ended = []
    waiting = 0
    show()
    const exits = yield* Effect.forEach(
      rollouts,
      (rollout, index) =>
        Effect.tap(
          Effect.exit(rollout),
          Effect.sync(() => {
            ended.push(index)
            // A rollout has ended, so the games never step again, and the other learners would wait forever.
            if (waiting > 0 && waiting + ended.length === seats.length) complete(Exit.fail(unequal()))
          }),
        ),
      { concurrency: "unbounded" },
    )
    // When one rollout fails, the others fail because of it. So report the one that ended first.
    yield* exits[ended[0]]
    return yield* Effect.forEach(exits, (exit) => exit)
  })
  return { views: views.map(({ batch }) => batch), play }
}

/** Copies the actions of a seat's agents into the actions of all agents. */
const give = (
  { rows }: Seat,
  own: Float32Array | Int32Array,
  actions: Float32Array | Int32Array,
  actionSize: number,
): void => {
  for (let index = 0; index < rows.length; index++) {
    copy(own, index * actionSize, actions, rows[index] * actionSize, actionSize)
  }
}

/** Makes the batch of a seat. `step` passes on the actions of its agents, and waits until the games have stepped. */
const viewOf = (
  envs: AnyBatchEnv,
  { name, rows }: Seat,
  step: (actions: Float32Array | Int32Array) => Effect.Effect<void, EnvError>,
): View => {
  const { id, autoReset, observationSpace, actionSpace, observationSize, actionSize } = envs
  const numEnvs = rows.length
  const refuse = (what: string) =>
    invalid(id, `the learner of the policy ${name} has only some rows of the games, so it cannot ${what} the games`)
  const observations = new Float32Array(numEnvs * observationSize)
  const finalObservations = new Float32Array(numEnvs * observationSize)
  const rewards = new Float32Array(numEnvs)
  const terminated = new Uint8Array(numEnvs)
  const truncated = new Uint8Array(numEnvs)
  return {
    batch: {
      id,
      numEnvs,
      autoReset,
      observationSpace,
      actionSpace,
      observationSize,
      actionSize,
      isAsync: true,
      observations,
      finalObservations,
      rewards,
      terminated,
      truncated,
      step,
      reset: () => Effect.fail(refuse("reset")),
      restart: () => Effect.fail(refuse("restart")),
      restore: () => Effect.fail(refuse("restore")),
      snapshot: () => {
        throw refuse("save")
      },
    },
    show: () => {
      for (let index = 0; index < numEnvs; index++) {
        const row = rows[index]
        const [from, to] = [row * observationSize, index * observationSize]
        copy(envs.observations, from, observations, to, observationSize)
        rewards[index] = envs.rewards[row]
        terminated[index] = envs.terminated[row]
        truncated[index] = envs.truncated[row]
        if ((terminated[index] | truncated[index]) !== 0)
          copy(envs.finalObservations, from, finalObservations, to, observationSize)
      }
    },
  }
}
