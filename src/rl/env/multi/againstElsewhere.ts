/**
 * Makes the env of one agent of a game that steps elsewhere, such as PettingZoo's, whose other agents are played by opponents.
 * The masks of the rows tell whose turn it is: an agent that waits may only choose 0. A forced choice 0 is taken like waiting.
 */
import { Effect, type Scope } from "effect"
import type { Stream } from "../../../base/rng/Rng.ts"
import { actionReader } from "../Batch.ts"
import type { ActionOf, Env } from "../Env.ts"
import { rowSpaceOf } from "../Env.ts"
import { type EnvError, invalid } from "../../../base/EnvError.ts"
import { asyncBatchOf } from "../internal/asyncEpisodes.ts"
import { type AsyncColumns, type AsyncKernel, command } from "../internal/asyncKernel.ts"
import { elsewhere } from "../internal/elsewhere.ts"
import { arraysFor } from "../internal/episodes.ts"
import type { OpenKernel } from "../internal/kernels.ts"
import { unflatten } from "../internal/values.ts"
import { type ActionSpace, choicesOf, isWhole, sizeOf } from "../Space.ts"
import { formIn, mostWaiting, nameOf, type Opponents, type Options } from "./against.ts"
import { noAction } from "./Game.ts"
import type { Asked, Later, Now } from "./opponents.ts"

/** A game that steps elsewhere. */
export type GameElsewhere = Env & { readonly agents: ReadonlyArray<string> }

/** Makes the env of one agent of a game whose rows `openGames` opens. */
export const againstElsewhere = (
  game: GameElsewhere,
  openGames: OpenKernel,
  opponents: Opponents,
  options: Options,
): Env => {
  const { agents, observationSpace, actionSpace, maxSteps } = game
  const id = nameOf(game, opponents, options)
  const forms = agents.map((agent) => formIn(game, opponents, agent, options.as))
  const seat = options.as === undefined ? undefined : agents.indexOf(options.as)
  const env: Env = {
    id,
    observationSpace,
    actionSpace,
    ...(maxSteps !== undefined && { maxSteps }),
    ...elsewhere({ id, actionSpace }, game.actionMask !== undefined),
    open: (numEnvs, batch) =>
      asyncBatchOf(env, numEnvs, batch, (columns) => openKernel(game, openGames, forms, seat, columns)),
  }
  return env
}

/** A game of a batch in the present step. */
interface Course {
  /** Whether the trained agent has yet to take its own action, or its game goes on, or waits for the agent's first turn. */
  phase: "own" | "others" | "first"
  /** Whether the game is begun in the next exchange. */
  starts: boolean
  rounds: number
}

const openKernel = Effect.fnUntraced(function* (
  game: GameElsewhere,
  openGames: OpenKernel,
  forms: ReadonlyArray<Now | Later>,
  fixedSeat: number | undefined,
  columns: AsyncColumns,
): Effect.fn.Return<AsyncKernel, EnvError, Scope.Scope> {
  const { numEnvs, observations, finalObservations, rewards, terminated, truncated, commands } = columns
  const { agents, actionSpace } = game
  const count = agents.length
  const rowSpace = rowSpaceOf(game)
  const rowSize = sizeOf(rowSpace)
  const size = sizeOf(game.observationSpace)
  const actionSize = sizeOf(actionSpace)
  const isMasked = rowSize > size
  /** The number of games that each env has begun in the present step. */
  const begun = new Int32Array(numEnvs)
  const rows = {
    ...arraysFor(count * numEnvs, rowSize, undefined),
    numEnvs: count * numEnvs,
    episodes: new Int32Array(count * numEnvs),
    elapsed: new Int32Array(count * numEnvs),
    commands: new Uint8Array(count * numEnvs),
    nextEpisode: (row: number): Stream => {
      const at = Math.floor(row / count)
      const random = columns.nextEpisode(at)
      return begun[at] === 0 ? random : random.child("again", begun[at])
    },
  }
  const kernel = yield* openGames(rows)
  const later = [...new Set(forms.filter((form) => form._tag === "Later"))]
  const place = { id: game.id, rowSpace, actionSpace, rows: numEnvs, perRow: count - 1 }
  const opened = yield* Effect.forEach(later, (form) => form.open(place))

  const seats = new Int32Array(numEnvs)
  const randoms: Array<Stream> = []
  const moves = new Int32Array(numEnvs)
  const memories: Array<Array<ReadonlyArray<number> | null>> = []
  const actions = new (isWhole(actionSpace) ? Int32Array : Float32Array)(count * numEnvs * actionSize)
  const own = actionReader(actionSpace)
  const noAnswer = noAction(actionSpace)

  const maskAt = (row: number): Float32Array => rows.observations.subarray(row * rowSize + size, (row + 1) * rowSize)
  /** The mask of an agent that waits: the first of each element's choices. */
  const waiting = (choicesOf(actionSpace) ?? []).flatMap((options) =>
    Array.from({ length: options }, (_, choice) => (choice === 0 ? 1 : 0)),
  )
  const acts = (row: number): boolean => !isMasked || maskAt(row).some((allowed, at) => allowed !== waiting[at])

  const put = (row: number, action: ActionOf<ActionSpace>): void => {
    if (typeof action === "number") actions[row] = action
    else actions.set(action, row * actionSize)
  }

  /** Draws what a game needs that has just begun. */
  const prepare = (at: number): void => {
    randoms[at] = rows.nextEpisode(at * count).child("against")
    seats[at] = fixedSeat ?? randoms[at].child("seat").integer(count)
    memories[at] = agents.map(() => null)
    moves[at] = 0
    begun[at]++
  }

  /** Writes the actions of a game's other agents, or notes what is asked of opponents that answer by Effects. */
  const playOthers = (at: number, asked: ReadonlyArray<Array<Asked & { readonly target: number }>>): void => {
    const move = moves[at]++
    for (const [agent, form] of forms.entries()) {
      const row = at * count + agent
      if (agent === seats[at]) continue
      put(row, noAnswer)
      if (!acts(row)) continue
      const observation = unflatten(game.observationSpace, rows.observations, row * rowSize)
      const mask = isMasked ? maskAt(row).slice() : undefined
      if (form._tag === "Now") {
        put(row, form.play(observation, { agent: agents[agent], mask, random: randoms[at].child("move", move, agent) }))
      } else {
        const question = { row: at, agent, observation, mask, memory: memories[at][agent], target: row }
        asked[later.indexOf(form)].push(question)
      }
    }
  }

  const answerAll = Effect.fnUntraced(function* (asked: ReadonlyArray<Array<Asked & { readonly target: number }>>) {
    for (const [index, questions] of asked.entries()) {
      if (questions.length === 0) continue
      const answers = yield* opened[index].answer(questions)
      for (const [number, { row, agent, target }] of questions.entries()) {
        put(target, answers[number].action)
        memories[row][agent] = answers[number].memory
      }
    }
  })

  const copyRow = (into: Float32Array, at: number, from: Float32Array): void => {
    const row = at * count + seats[at]
    into.set(from.subarray(row * rowSize, (row + 1) * rowSize), at * rowSize)
  }

  /** Reads the result of an exchange for one game. Returns whether the env's step, or its start, is done. */
  const finish = (at: number, course: Course): boolean => {
    const row = at * count + seats[at]
    if (course.starts) {
      prepare(at)
      course.starts = false
      course.phase = "first"
    } else {
      const isOver = (rows.terminated[row] | rows.truncated[row]) !== 0
      if (course.phase !== "first") {
        rewards[at] += rows.rewards[row]
        if (isOver) {
          terminated[at] = rows.terminated[row]
          truncated[at] = rows.truncated[row]
          copyRow(finalObservations, at, rows.finalObservations)
        }
      }
      if (isOver) {
        // The next game has begun already, by the seed that was sent with this step.
        prepare(at)
        course.phase = "first"
      } else if (course.phase === "own") course.phase = "others"
    }
    const next = at * count + seats[at]
    if (!acts(next)) return false
    if (course.phase === "others" && commands[at] === command.lastStep) {
      copyRow(finalObservations, at, rows.observations)
      course.starts = true
      return false
    }
    copyRow(observations, at, rows.observations)
    return true
  }

  let hasBegun = false
  const exchange = Effect.fnUntraced(function* (given: Float32Array | Int32Array): Effect.fn.Return<void, EnvError> {
    // Past selves begin with the first episodes, not with a later reset.
    if (!hasBegun) for (const { reset = Effect.void } of opened) yield* reset
    hasBegun = true
    begun.fill(0)
    const running = new Map<number, Course>()
    for (let at = 0; at < numEnvs; at++) {
      if (commands[at] === command.none) continue
      const starts = commands[at] === command.start
      running.set(at, { phase: "own", starts, rounds: 0 })
      if (!starts) rewards[at] = terminated[at] = 0
    }
    while (running.size > 0) {
      rows.commands.fill(command.none)
      rows.truncated.fill(0)
      const asked = opened.map((): Array<Asked & { readonly target: number }> => [])
      for (const [at, course] of running) {
        if (course.rounds++ === mostWaiting) {
          return yield* invalid(game.id, `${mostWaiting} steps passed without a turn of ${agents[seats[at]]}`)
        }
        rows.commands.fill(course.starts ? command.start : command.step, at * count, (at + 1) * count)
        if (course.starts) {
          continue
        }
        const row = at * count + seats[at]
        put(row, course.phase === "own" ? own(given, at) : noAnswer)
        playOthers(at, asked)
      }
      yield* answerAll(asked)
      yield* kernel.exchange(actions)
      for (const [at, course] of running) {
        if (finish(at, course)) running.delete(at)
      }
    }
  })

  return {
    exchange,
    ...(kernel.renderSvg && { renderSvg: (at: number) => kernel.renderSvg?.(at * count) ?? Effect.succeed("") }),
    others: {
      save: () => Object.assign({}, ...opened.map(({ save }) => save?.() ?? {})),
      load: (saved) =>
        Effect.gen(function* () {
          for (const { load } of opened) if (load !== undefined) yield* load(saved)
          hasBegun = true
        }),
    },
  }
})
