/**
 * Plays the games of a batch against opponents that answer by Effects: each opponent gets the questions of all games at
 * once.
 */
import { Effect, Predicate, type Scope } from "effect"
import { attempt } from "../../../base/config/attempt.ts"
import { messageOf } from "../../../base/text/text.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { EnvError, invalid } from "../../../base/EnvError.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import { actionReader } from "../Batch.ts"
import type { Snapshot } from "../BatchEnv.ts"
import type { Env, EnvTransition } from "../Env.ts"
import { type AsyncColumns, type AsyncKernel, command } from "../internal/asyncKernel.ts"
import { errorAt, streamsOf } from "../internal/episodes.ts"
import { toText } from "../internal/plainData.ts"
import { givenMaskWriter } from "../internal/rows.ts"
import { writerOf } from "../internal/values.ts"
import { choicesOf, sizeOf } from "../Space.ts"
import type { Course, Courses, SeatedGame } from "./courses.ts"
import { asPosition, type Game, hasMasks } from "./Game.ts"
import {
  agentRowSpace,
  type OpponentAnswer,
  type OpponentQuestion,
  type Later,
  type Now,
  type Responder,
} from "./opponents.ts"
import { statesIn } from "./shared.ts"

/** An env with opponents that answer by Effects. */
interface AgainstLater {
  readonly env: Env<SeatedGame>
  readonly game: Game
  /** The opponents, by the numbers of the agents that they play. */
  readonly forms: ReadonlyArray<Now | Later>
  readonly courses: Courses
  readonly maskOf: (state: SeatedGame) => ArrayLike<number | boolean>
}

/** A batch of games, with its opponents. */
interface AgainstBatch extends AgainstLater {
  readonly columns: AsyncColumns
  /** The opponents that answer by Effects. */
  readonly later: ReadonlyArray<Now | Later>
  /** The open batch of each opponent of `later`. */
  readonly opened: ReadonlyArray<Responder>
  /** The length of a row. */
  readonly rowSize: number
  /** The length of the observation in a row. */
  readonly size: number
  readonly write: ReturnType<typeof writerOf>
  readonly writeMask: ReturnType<typeof givenMaskWriter>
  readonly actionAt: ReturnType<typeof actionReader>
  readonly states: Array<SeatedGame>
  readonly streams: ReturnType<typeof streamsOf>
}

/** A game of a batch, with its course: a generator that yields questions to opponents and waits for the answers. */
interface RunningGame<T> {
  readonly row: number
  readonly course: Course<T>
  answers: Array<OpponentAnswer>
}

/** Opens the opponents of a batch, and plays all its games together. */
export const openKernel = Effect.fnUntraced(function* (
  against: AgainstLater,
  columns: AsyncColumns,
): Effect.fn.Return<AsyncKernel, EnvError, Scope.Scope> {
  const batch = yield* openBatch(against, columns)
  const { env } = against
  const { states } = batch
  return {
    exchange: (actions) => exchange(batch, actions),
    ...(env.renderSvg && {
      renderSvg: (index: number) => guarded(batch, index, () => env.renderSvg?.(states[index]) ?? ""),
    }),
    states: {
      save: () => ({
        states: utf8.encode(toText(states)),
        ...batch.streams.save(),
        ...Object.assign({}, ...batch.opened.map(({ save }) => save?.() ?? {})),
      }),
      load: (saved, streamOf) =>
        Effect.gen(function* () {
          yield* attempt(() => loadStates(batch, saved, streamOf), EnvError)
          for (const { load } of batch.opened) if (load !== undefined) yield* load(saved)
        }),
    },
  }
})

const openBatch = Effect.fnUntraced(function* (
  against: AgainstLater,
  columns: AsyncColumns,
): Effect.fn.Return<AgainstBatch, EnvError, Scope.Scope> {
  const { env, game, forms } = against
  const { observationSpace, actionSpace } = env
  const rowSpace = agentRowSpace(game, hasMasks(game))
  const perRow = game.turn === undefined ? game.agents.length - 1 : 1
  const place = { id: env.id, rowSpace, actionSpace, rows: columns.numEnvs, perRow }
  const later: ReadonlyArray<Now | Later> = [...new Set(forms.filter((form) => form._tag === "Later"))]
  const opened = yield* Effect.forEach(later, (form) => (form._tag === "Later" ? form.open(place) : Effect.die(form)))
  return {
    ...against,
    columns,
    later,
    opened,
    rowSize: sizeOf(rowSpace),
    size: sizeOf(observationSpace),
    write: writerOf(observationSpace, "observation"),
    writeMask: givenMaskWriter(choicesOf(actionSpace) ?? []),
    actionAt: actionReader(actionSpace),
    states: [],
    streams: streamsOf(env.id, columns.numEnvs),
  }
})

/** Calls functions of the game; an exception becomes an error that says where it happened. */
const guarded = <T>(
  { env, columns: { episodes, elapsed } }: AgainstBatch,
  index: number,
  body: () => T,
): Effect.Effect<T, EnvError> =>
  Effect.try({
    try: body,
    catch: (error) => {
      const stack = error instanceof Error ? error.stack : ""
      return errorAt(env.id, index, episodes[index], elapsed[index] + 1, messageOf(error), stack)
    },
  })

/** Writes the row of a game: what the agent observes, and its mask. */
const show = (batch: AgainstBatch, index: number, into: Float32Array, isOver: boolean): void => {
  const { game, maskOf, rowSize, size, write, writeMask } = batch
  const state = batch.states[index]
  const problem =
    write(game.observe(state.position.inner, state.seat), into, index * rowSize) ??
    (rowSize === size || isOver ? undefined : writeMask(maskOf(state), into, index * rowSize + size))
  if (problem !== undefined) throw new Error(problem)
}

/** A question of a course, with the course that asks it and the index of its answer there. */
type CourseQuestion<T> = OpponentQuestion & { readonly of: RunningGame<T>; readonly at: number }

/** Runs the courses of some games to their ends. In each round, an opponent gets the questions of all games at once. */
const runAll = Effect.fnUntraced(function* <T>(
  batch: AgainstBatch,
  rows: ReadonlyArray<number>,
  courseOf: (row: number) => Course<T>,
  finish: (row: number, result: T) => void,
): Effect.fn.Return<void, EnvError> {
  const { forms, later, opened } = batch
  let running: Array<RunningGame<T>> = []
  for (const row of rows) running.push({ row, course: yield* guarded(batch, row, () => courseOf(row)), answers: [] })
  while (running.length > 0) {
    const waiting: typeof running = []
    const questions = opened.map((): Array<CourseQuestion<T>> => [])
    for (const one of running) {
      const result = yield* guarded(batch, one.row, () => one.course.next(one.answers))
      if (result.done === true) {
        yield* guarded(batch, one.row, () => finish(one.row, result.value))
        continue
      }
      one.answers = []
      waiting.push(one)
      for (const [at, question] of result.value.entries()) {
        questions[later.indexOf(forms[question.agent])].push({ ...question, row: one.row, of: one, at })
      }
    }
    yield* answerAll(opened, questions)
    running = waiting
  }
})

/** Sends each opponent its questions, and stores the answers in the games that asked. */
const answerAll = Effect.fnUntraced(function* <T>(
  opened: ReadonlyArray<Responder>,
  questions: ReadonlyArray<ReadonlyArray<CourseQuestion<T>>>,
) {
  for (const [index, asked] of questions.entries()) {
    if (asked.length === 0) continue
    const answers: ReadonlyArray<OpponentAnswer> = yield* opened[index].answer(asked)
    for (const [number, { of, at }] of asked.entries()) of.answers[at] = answers[number]
  }
})

/** Carries out the commands: steps games, and starts the next ones where they end. */
const exchange = Effect.fnUntraced(function* (
  batch: AgainstBatch,
  actions: Float32Array | Int32Array,
): Effect.fn.Return<void, EnvError> {
  const { columns, courses, opened, states, actionAt } = batch
  const { streams } = batch.streams
  const { numEnvs, commands } = columns
  const all = Array.from({ length: numEnvs }, (_, row) => row)
  const ended: Array<number> = all.filter((row) => commands[row] === command.start)
  // Reset opponents such as past selves only when the first episodes begin, not when the batch is reset later.
  if (states.length === 0) for (const { reset = Effect.void } of opened) yield* reset
  const stepping = all.filter((row) => commands[row] === command.step || commands[row] === command.lastStep)
  yield* runAll(
    batch,
    stepping,
    (row) => courses.step(states[row], actionAt(actions, row), streams[row]),
    (row, transition) => {
      if (finishStep(batch, row, transition)) ended.push(row)
    },
  )
  yield* runAll(
    batch,
    ended,
    (row) => courses.reset((streams[row] = columns.nextEpisode(row))),
    (row, state) => {
      states[row] = state
      show(batch, row, columns.observations, false)
    },
  )
})

/** Writes the result of a game's step. Returns whether its episode is over. */
const finishStep = (batch: AgainstBatch, row: number, transition: EnvTransition<SeatedGame>): boolean => {
  const { observations, finalObservations, rewards, terminated, truncated, commands } = batch.columns
  batch.states[row] = transition.state
  rewards[row] = transition.reward
  terminated[row] = transition.terminated ? 1 : 0
  truncated[row] = transition.truncated === true ? 1 : 0
  const isEnd = transition.terminated || transition.truncated === true || commands[row] === command.lastStep
  show(batch, row, isEnd ? finalObservations : observations, transition.terminated)
  return isEnd
}

const loadStates = (
  { env, columns, states, streams }: AgainstBatch,
  saved: Snapshot,
  streamOf: (index: number) => Stream,
): void => {
  streams.load(saved, streamOf)
  for (const [row, state] of statesIn(env.id, saved, columns.numEnvs).entries()) states[row] = asSeated(env.id, state)
}

const asSeated = (id: string, value: unknown): SeatedGame => {
  if (Predicate.isObject(value) && "position" in value && "seat" in value && "memories" in value) {
    const { position, seat, memories } = value
    if (typeof seat === "number" && Array.isArray(memories)) {
      const lists = memories.map((memory: unknown) => (Array.isArray(memory) ? memory.map(Number) : null))
      return { position: asPosition(id, position), seat, memories: lists }
    }
  }
  throw invalid(id, "the snapshot doesn't fit: a state is not that of a game against opponents")
}
