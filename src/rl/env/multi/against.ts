/**
 * Makes the env of one agent of a game, whose other agents are played by opponents. A step lasts until the agent acts again or
 * its game ends, and its reward is the sum of those of the agent in between.
 *
 * The course of a game is written once, as a generator that yields what it asks opponents. An env whose opponents answer at
 * once runs it in its functions; other batches run those of all games together, and ask the opponents once for all.
 */
import { Effect, Predicate, type Scope } from "effect"
import { attempt } from "../../../base/config/attempt.ts"
import { utf8 } from "../../../base/config/utf8.ts"
import { messageOf } from "../../../base/config/text.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import { actionReader } from "../Batch.ts"
import type { ActionOf, Env, Transition } from "../Env.ts"
import { EnvError, invalid } from "../../../base/EnvError.ts"
import { asyncBatchOf } from "../internal/asyncEpisodes.ts"
import { type AsyncColumns, type AsyncKernel, command } from "../internal/asyncKernel.ts"
import { elsewhere } from "../internal/elsewhere.ts"
import { errorAt, streamsOf } from "../internal/episodes.ts"
import { toText } from "../internal/plainData.ts"
import { givenMaskWriter } from "../internal/rows.ts"
import { writerOf } from "../internal/values.ts"
import { type ActionSpace, choicesOf, sizeOf, type Space } from "../Space.ts"
import {
  actingAgents,
  advance,
  asPosition,
  begin,
  type Game,
  hasMasks,
  maskAt,
  noAction,
  type Position,
} from "./Game.ts"
import {
  type Answer,
  type Asked,
  formOf,
  type Later,
  type Now,
  type Opponent,
  agentRowSpace,
  type Played,
} from "./opponents.ts"
import { statesIn } from "./shared.ts"

/** The opponents, which play the other agents: one opponent for all of them, or one for each by name. */
export type Opponents<A extends ActionSpace = ActionSpace, O extends Space = Space> =
  | Opponent<A, O>
  | { readonly [agent: string]: Opponent<A, O> }

export interface Options {
  /** The name of the agent that is trained. Default: one that is drawn for each episode. */
  readonly as?: string
  /** The id of the env. Default: that of the game, followed by "against" and what the opponents are. */
  readonly id?: string
}

/** A game as one agent plays it. */
export interface Seated {
  readonly position: Position
  /** The number of the agent that is trained. */
  readonly seat: number
  /** The memories of the opponents, by the numbers of their agents. */
  readonly memories: ReadonlyArray<ReadonlyArray<number> | null>
}

/** A game of a batch, whose course waits for answers. */
interface Running<T> {
  readonly row: number
  readonly course: Course<T>
  answers: Array<Answer>
}

/** The number of steps of a game in which the trained agent may wait for its turn. */
export const mostWaiting = 10_000

type Course<T> = Generator<ReadonlyArray<Omit<Asked, "row">>, T, ReadonlyArray<Answer>>

/** Makes the env of one agent of a game. */
export const againstEnv = <A extends ActionSpace, O extends Space>(
  game: Game<unknown, A, O>,
  opponents: Opponents<A, O>,
  options: Options = {},
): Env<Seated, A, O> => {
  const { agents, observationSpace, actionSpace, renderText, renderSvg, maxSteps } = game
  const id = nameOf(game, opponents, options)
  const { as } = options
  const forms = agents.map((agent) => formIn(game, opponents, agent, as))
  const courses = coursesOf(game, forms, as === undefined ? undefined : agents.indexOf(as))
  const facts = {
    id,
    observationSpace,
    actionSpace,
    // Steps of the env are steps of the game only if the agent acts in each of them.
    ...(maxSteps !== undefined && game.turn === undefined && { maxSteps }),
    ...(renderText && { renderText: ({ position }: Seated) => renderText.call(game, position.inner) }),
    ...(renderSvg && { renderSvg: ({ position }: Seated) => renderSvg.call(game, position.inner) }),
  }
  const maskOf = ({ position, seat }: Seated): ArrayLike<number | boolean> =>
    // A game can be truncated in another agent's turn, when the game has no mask for this one.
    (actingAgents(game, position).includes(seat) ? maskAt(game, position, seat) : undefined) ?? allowAll(actionSpace)
  if (forms.some((form) => form._tag === "Later")) {
    const env: Env<Seated, A, O> = {
      ...facts,
      ...elsewhere(facts, hasMasks(game)),
      open: (numEnvs, batch) =>
        asyncBatchOf(env, numEnvs, batch, (columns) => openKernel(env, game, forms, courses, maskOf, columns)),
    }
    return env
  }
  return {
    ...facts,
    reset: (random) => atOnce(courses.reset(random)),
    observe: ({ position, seat }) => game.observe(position.inner, seat),
    ...(hasMasks(game) && { actionMask: maskOf }),
    step: (state, action, random) => atOnce(courses.step(state, action, random)),
  }
}

/** Returns the id of a game's env. Throws an `EnvError` if the trained agent is not one of the game's. */
export const nameOf = (game: Played, opponents: Opponents, { as, id }: Options): string => {
  if (as !== undefined && !game.agents.includes(as)) {
    throw invalid(game.id, `"as" must be one of ${game.agents.join(", ")}, found ${as}`)
  }
  return id ?? `${game.id} against ${describe(opponents)}`
}

const allowAll = (space: ActionSpace): ReadonlyArray<boolean> =>
  (choicesOf(space) ?? []).flatMap((count) => Array.from({ length: count }, () => true))

const describe = (opponents: Opponents): string =>
  typeof opponents === "string" ? opponents : Predicate.isTagged(opponents, "Later") ? "past selves" : "opponents"

/** Tells whether opponents are given by the names of their agents. */
const areByName = (opponents: Opponents): opponents is { readonly [agent: string]: Opponent } =>
  Predicate.isObject(opponents) && !Predicate.isTagged(opponents, "Later") && !("actAll" in opponents)

/** Returns the opponent that plays an agent. The agent that is always trained needs none. */
export const formIn = (game: Played, opponents: Opponents, agent: string, as: string | undefined): Now | Later => {
  if (!areByName(opponents)) return formOf(game, opponents)
  const byName: Readonly<Record<string, Opponent | undefined>> = opponents
  const unknown = Object.keys(byName).find((name) => !game.agents.includes(name))
  if (unknown !== undefined) {
    throw invalid(game.id, `opponents: there is no agent "${unknown}"; expected ${game.agents.join(", ")}`)
  }
  const opponent = byName[agent]
  if (opponent !== undefined) return formOf(game, opponent)
  if (agent === as) return formOf(game, "random")
  throw invalid(
    game.id,
    `opponents: nobody plays ${agent}; name an opponent for it, or choose the trained agent by "as"`,
  )
}

/** Runs a course that asks nobody. */
const atOnce = <T>(course: Course<T>): T => {
  const result = course.next([])
  if (result.done === true) return result.value
  throw new Error("an opponent that answers at once was asked by an Effect")
}

/** Returns the courses of a reset and of a step. */
const coursesOf = (game: Game, forms: ReadonlyArray<Now | Later>, fixedSeat: number | undefined) => {
  /** Takes one step of the game, in which the trained agent does `own` if it acts. */
  const oneStep = function* (
    { position, seat, memories }: Seated,
    own: ActionOf<ActionSpace>,
    random: Stream,
  ): Course<{
    readonly state: Seated
    readonly reward: number
    readonly isOver: boolean
    readonly isTruncated: boolean
  }> {
    const actions = game.agents.map((_, agent) => (agent === seat ? own : noAction(game.actionSpace)))
    const remembered = [...memories]
    const asked: Array<Omit<Asked, "row">> = []
    for (const agent of actingAgents(game, position)) {
      if (agent === seat) continue
      const form = forms[agent]
      const observation = game.observe(position.inner, agent)
      const mask = maskAt(game, position, agent)
      if (form._tag === "Now") actions[agent] = form.play(observation, { agent: game.agents[agent], mask, random })
      else asked.push({ agent, observation, mask, memory: memories[agent] })
    }
    if (asked.length > 0) {
      const answers = yield asked
      for (const [at, { agent }] of asked.entries()) {
        actions[agent] = answers[at].action
        remembered[agent] = answers[at].memory
      }
    }
    const next = advance(game, position, actions, random)
    const isOver = next.isOver || next.position.left[seat]
    const state = { position: next.position, seat, memories: remembered }
    return { state, reward: next.rewards[seat], isOver, isTruncated: next.isTruncated }
  }
  /** Tells whether the trained agent acts now. Throws if it has waited too long for its turn. */
  const acts = ({ position, seat }: Seated, waited: number): boolean => {
    if (actingAgents(game, position).includes(seat)) return true
    if (waited < mostWaiting) return false
    throw invalid(
      game.id,
      `${waited} steps passed without a turn of ${game.agents[seat]}; "maxSteps" can end such games`,
    )
  }

  const step = function* (before: Seated, action: ActionOf<ActionSpace>, random: Stream): Course<Transition<Seated>> {
    let next = yield* oneStep(before, action, random)
    let { reward } = next
    for (let waited = 0; !next.isOver && !next.isTruncated && !acts(next.state, waited); waited++) {
      next = yield* oneStep(next.state, noAction(game.actionSpace), random)
      reward += next.reward
    }
    return { state: next.state, reward, terminated: next.isOver, truncated: next.isTruncated && !next.isOver }
  }

  const reset = function* (random: Stream): Course<Seated> {
    // Where a game ends before the agent's first turn, another one begins.
    for (let attempts = 0; attempts < 100; attempts++) {
      const seat = fixedSeat ?? random.integer(game.agents.length)
      let state: Seated = { position: begin(game, random), seat, memories: game.agents.map(() => null) }
      let isOver = false
      for (let waited = 0; !isOver && !acts(state, waited); waited++) {
        const next = yield* oneStep(state, noAction(game.actionSpace), random)
        state = next.state
        isOver = next.isOver || next.isTruncated
      }
      if (!isOver) return state
    }
    throw invalid(game.id, "a hundred games ended before the first turn of the trained agent")
  }
  return { reset, step }
}

/** Opens the opponents of a batch, and plays all its games together. */
const openKernel = Effect.fnUntraced(function* (
  env: Env<Seated>,
  game: Game,
  forms: ReadonlyArray<Now | Later>,
  courses: ReturnType<typeof coursesOf>,
  maskOf: (state: Seated) => ArrayLike<number | boolean>,
  columns: AsyncColumns,
): Effect.fn.Return<AsyncKernel, EnvError, Scope.Scope> {
  const { numEnvs, observations, finalObservations, rewards, terminated, truncated, commands, episodes, elapsed } =
    columns
  const rowSpace = agentRowSpace(game, hasMasks(game))
  const rowSize = sizeOf(rowSpace)
  const size = sizeOf(env.observationSpace)
  const perRow = game.turn === undefined ? game.agents.length - 1 : 1
  const place = { id: env.id, rowSpace, actionSpace: env.actionSpace, rows: numEnvs, perRow }
  const later: ReadonlyArray<Now | Later> = [...new Set(forms.filter((form) => form._tag === "Later"))]
  const opened = yield* Effect.forEach(later, (form) => (form._tag === "Later" ? form.open(place) : Effect.die(form)))

  const write = writerOf(env.observationSpace, "observation")
  const writeMask = givenMaskWriter(choicesOf(env.actionSpace) ?? [])
  const actionAt = actionReader(env.actionSpace)
  const states: Array<Seated> = []
  const { streams, ...positions } = streamsOf(env.id, numEnvs)

  const failed = (index: number, error: unknown): EnvError =>
    errorAt(
      env.id,
      index,
      episodes[index],
      elapsed[index] + 1,
      messageOf(error),
      error instanceof Error ? error.stack : "",
    )
  const guarded = <T>(index: number, body: () => T): Effect.Effect<T, EnvError> =>
    Effect.try({ try: body, catch: (error) => failed(index, error) })

  const show = (index: number, into: Float32Array, isOver: boolean): void => {
    const state = states[index]
    const problem =
      write(game.observe(state.position.inner, state.seat), into, index * rowSize) ??
      (rowSize === size || isOver ? undefined : writeMask(maskOf(state), into, index * rowSize + size))
    if (problem !== undefined) throw new Error(problem)
  }

  /** Runs the courses of some games to their ends. In each round, each opponent is asked once for all games. */
  const runAll = Effect.fnUntraced(function* <T>(
    rows: ReadonlyArray<number>,
    courseOf: (row: number) => Course<T>,
    finish: (row: number, result: T) => void,
  ): Effect.fn.Return<void, EnvError> {
    let running: Array<Running<T>> = []
    for (const row of rows) running.push({ row, course: yield* guarded(row, () => courseOf(row)), answers: [] })
    while (running.length > 0) {
      const waiting: typeof running = []
      const questions = opened.map((): Array<Asked & { readonly of: Running<T>; readonly at: number }> => [])
      for (const one of running) {
        const result = yield* guarded(one.row, () => one.course.next(one.answers))
        if (result.done === true) {
          yield* guarded(one.row, () => finish(one.row, result.value))
          continue
        }
        one.answers = []
        waiting.push(one)
        for (const [at, question] of result.value.entries()) {
          questions[later.indexOf(forms[question.agent])].push({ ...question, row: one.row, of: one, at })
        }
      }
      for (const [index, asked] of questions.entries()) {
        if (asked.length === 0) continue
        const answers = yield* opened[index].answer(asked)
        for (const [number, { of, at }] of asked.entries()) of.answers[at] = answers[number]
      }
      running = waiting
    }
  })

  const startAll = (rows: ReadonlyArray<number>): Effect.Effect<void, EnvError> =>
    runAll(
      rows,
      (row) => courses.reset((streams[row] = columns.nextEpisode(row))),
      (row, state) => {
        states[row] = state
        show(row, observations, false)
      },
    )

  const exchange = Effect.fnUntraced(function* (actions: Float32Array | Int32Array): Effect.fn.Return<void, EnvError> {
    const all = Array.from({ length: numEnvs }, (_, row) => row)
    const ended: Array<number> = all.filter((row) => commands[row] === command.start)
    // Past selves begin with the first episodes, not with a later reset.
    if (states.length === 0) for (const { reset = Effect.void } of opened) yield* reset
    const stepping = all.filter((row) => commands[row] === command.step || commands[row] === command.lastStep)
    yield* runAll(
      stepping,
      (row) => courses.step(states[row], actionAt(actions, row), streams[row]),
      (row, transition) => {
        states[row] = transition.state
        rewards[row] = transition.reward
        terminated[row] = transition.terminated ? 1 : 0
        truncated[row] = transition.truncated === true ? 1 : 0
        const isEnd = transition.terminated || transition.truncated === true || commands[row] === command.lastStep
        show(row, isEnd ? finalObservations : observations, transition.terminated)
        if (isEnd) ended.push(row)
      },
    )
    yield* startAll(ended)
  })

  return {
    exchange,
    ...(env.renderSvg && { renderSvg: (index: number) => guarded(index, () => env.renderSvg?.(states[index]) ?? "") }),
    states: {
      save: () => ({
        states: utf8.encode(toText(states)),
        ...positions.save(),
        ...Object.assign({}, ...opened.map(({ save }) => save?.() ?? {})),
      }),
      load: (saved, streamOf) =>
        Effect.gen(function* () {
          yield* attempt(() => {
            positions.load(saved, streamOf)
            for (const [row, state] of statesIn(env.id, saved, numEnvs).entries()) states[row] = asSeated(env.id, state)
          }, EnvError)
          for (const { load } of opened) if (load !== undefined) yield* load(saved)
        }),
    },
  }
})

const asSeated = (id: string, value: unknown): Seated => {
  if (Predicate.isObject(value) && "position" in value && "seat" in value && "memories" in value) {
    const { position, seat, memories } = value
    if (typeof seat === "number" && Array.isArray(memories)) {
      const lists = memories.map((memory: unknown) => (Array.isArray(memory) ? memory.map(Number) : null))
      return { position: asPosition(id, position), seat, memories: lists }
    }
  }
  throw invalid(id, "the snapshot doesn't fit: a state is not that of a game against opponents")
}
