/**
 * Makes tasks in words an env that can be served by OpenEnv's protocol: an observation and an action have a `text`, and the
 * tools of the tasks are called by the Model Context Protocol.
 */
import { Effect, Exit, Scope } from "effect"
import type { Plain } from "../../base/config/plain.ts"
import { EnvError, invalid } from "../../base/EnvError.ts"
import { stream } from "../../base/rng/Rng.ts"
import {
  objectSchema,
  type ServedCopy,
  type ServedEnv,
  type ServedObservation,
} from "../../spread/openenv/ServedEnv.ts"
import type { TaskSet } from "../task/TaskSet.ts"
import type { TextEnv, TextEpisode, TextStep } from "../task/TextEnv.ts"

/** An episode that a copy plays, and the scope that ends it. */
interface Playing {
  readonly episode: TextEpisode
  readonly scope: Scope.Closeable
  readonly maxSteps: number
  steps: number
  isOver: boolean
}

const observed = (text: string, reward: number | null, done: boolean): ServedObservation => ({
  observation: { text },
  reward,
  done,
})

/**
 * Returns the number of the task that an episode plays: that which the client names by the key `task`, or else one that its
 * seed draws.
 */
const taskOf = (tasks: TaskSet, seed: number, { task }: Plain): Effect.Effect<number, EnvError> => {
  if (task === undefined || task === null) return Effect.succeed(stream(seed, "openenv", "task").integer(tasks.size))
  if (typeof task === "number" && Number.isInteger(task) && task >= 0 && task < tasks.size) return Effect.succeed(task)
  return Effect.fail(invalid(tasks.name, `task: expected a whole number from 0 to ${tasks.size - 1}`))
}

const taskAt = (tasks: TaskSet, index: number): Effect.Effect<TextEnv, EnvError> =>
  Effect.mapError(tasks.at(index), ({ message }) => new EnvError({ env: tasks.name, message }))

const begin = Effect.fnUntraced(function* (tasks: TaskSet, scope: Scope.Closeable, seed: number, data: Plain) {
  const env = yield* taskAt(tasks, yield* taskOf(tasks, seed, data))
  const episode = yield* Scope.provide(env.begin(stream(seed, "openenv", "episode")), scope)
  return { episode, scope, steps: 0, maxSteps: env.maxSteps ?? Infinity, isOver: false } satisfies Playing
})

const afterStep = (playing: Playing, { observation, feedback, terminated, truncated = false }: TextStep) => {
  playing.steps++
  playing.isOver = terminated || truncated || playing.steps >= playing.maxSteps
  return observed(observation ?? feedback.message, feedback.score, playing.isOver)
}

const copyOf = (tasks: TaskSet): Effect.Effect<ServedCopy, never, Scope.Scope> =>
  Effect.gen(function* () {
    const own = yield* Effect.scope
    let current: Playing | undefined
    const playing = Effect.suspend(() => {
      if (current === undefined) return Effect.fail(invalid(tasks.name, "no episode has begun; expected a reset"))
      if (current.isOver) return Effect.fail(invalid(tasks.name, "the episode is over; expected a reset"))
      return Effect.succeed(current)
    })
    const copy: ServedCopy = {
      reset: ({ seed, data }) =>
        Effect.gen(function* () {
          if (current !== undefined) yield* Scope.close(current.scope, Exit.void)
          current = undefined
          const scope = yield* Scope.fork(own)
          current = yield* begin(tasks, scope, seed, data).pipe(Effect.onError(() => Scope.close(scope, Exit.void)))
          return observed(current.episode.observation, null, false)
        }),
      step: ({ text }) =>
        Effect.flatMap(playing, (now) =>
          Effect.map(now.episode.step(String(text)), (stepped) => afterStep(now, stepped)),
        ),
      call: (name, parameters) =>
        Effect.flatMap(playing, ({ episode }) =>
          episode.call({ id: "call", name, arguments: JSON.stringify(parameters) }),
        ),
    }
    return copy
  })

const text: Plain = { type: "string" }

/**
 * Makes tasks an env that can be served. Its tools are those of the first task.
 *
 * @example
 * ```ts
 * const served = yield* servedTasks(tasks)
 * ```
 */
export const servedTasks = (tasks: TaskSet): Effect.Effect<ServedEnv, EnvError> =>
  Effect.map(taskAt(tasks, 0), ({ type, tools = [] }) => ({
    name: tasks.name,
    description: `${tasks.size} tasks of the type ${type}; the key task of a reset chooses one, or else the seed does`,
    actions: objectSchema("TextAction", { text }),
    observations: objectSchema("TextObservation", { text }),
    tools,
    open: copyOf(tasks),
  }))
