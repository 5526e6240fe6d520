/** Makes envs that run in other programs, over connections to these programs. */
import { Effect, Exit, Result, Schema, type Scope } from "effect"
import { messageOf, oneLine } from "../../../base/text/text.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { type Env, rowSpaceOf } from "../Env.ts"
import { EnvError, invalid } from "../../../base/EnvError.ts"
import { asyncBatchOf } from "../internal/asyncEpisodes.ts"
import { type AsyncColumns, type AsyncKernel, command } from "../internal/asyncKernel.ts"
import { elsewhere } from "../internal/elsewhere.ts"
import { errorAt } from "../internal/episodes.ts"
import { withKernel } from "../internal/kernels.ts"
import { type ActionSpace, sizeOf } from "../Space.ts"
import {
  type Connect,
  type Connection,
  headerSize,
  mostReplyBytes,
  type Reply,
  status,
} from "../../../spread/programs/Connection.ts"
import {
  actionSpaceOf,
  decodeDescription,
  type EnvDescription,
  exchangeLayout,
  failureOf,
  hasEnded,
  lifeLost,
  makeRequest,
  message,
  request,
  spaceOf,
  version,
} from "./protocol.ts"

/** The name and options that the programs get to make their envs, and the number of programs. */
interface Foreign {
  /** The env's name in effect-rl. */
  readonly id: string
  /** The env's name in its program, and the options with which the program makes it. */
  readonly name: string
  readonly options: unknown
  /** The number of programs among which the envs of a batch are divided. Results don't depend on it. */
  readonly processes: number
}

/** Reads the reply to the first request, which describes the env. Throws an `EnvError` if there is no such env. */
export const describedBy = (id: string, reply: Reply): EnvDescription => {
  if (reply.status !== status.done) {
    const { message, traceback } = failureOf(reply.body)
    throw new EnvError({
      env: id,
      message: `${id}: ${message}`,
      ...(traceback !== undefined && { userStack: traceback }),
    })
  }
  const decoded = decodeDescription(utf8.decode(reply.body))
  if (Result.isFailure(decoded)) throw invalid(id, `its program describes it wrongly: ${messageOf(decoded.failure)}`)
  const { protocol } = decoded.success
  if (protocol !== version) {
    throw invalid(id, `its program speaks version ${protocol} of the protocol; effect-rl speaks version ${version}`)
  }
  return decoded.success
}

/** Makes an env that runs in other programs. `described` is the description that one of them sent. */
export const foreignEnv = (foreign: Foreign, described: EnvDescription, connect: Connect): Env => {
  const { id } = foreign
  const trying = <A>(make: () => A): A => {
    try {
      return make()
    } catch (error) {
      throw invalid(id, messageOf(error))
    }
  }
  const observationSpace = trying(() => spaceOf(described.observationSpace, "observations"))
  const actionSpace = trying(() => actionSpaceOf(described.actionSpace))
  const names = new Set<string>()
  const repeated = described.agents?.find((name) => names.size === names.add(name).size)
  if (repeated !== undefined)
    throw invalid(id, `its program names two agents "${oneLine(repeated)}"; expected different names`)
  if (described.agents !== undefined && described.hasScores === true)
    throw invalid(id, "its program describes a game of several agents with scores; expected one or the other")
  const env: Env = {
    id,
    observationSpace,
    actionSpace,
    ...(described.maxSteps === null ? {} : { maxSteps: described.maxSteps }),
    ...(typeof described.rewardThreshold === "number" ? { rewardThreshold: described.rewardThreshold } : {}),
    ...(described.agents !== undefined && { agents: described.agents }),
    ...elsewhere({ id, actionSpace }, described.hasActionMask === true),
    open: (numEnvs, options) =>
      asyncBatchOf(env, numEnvs, options, (columns) => openKernel(env, foreign, described, connect, columns)),
  }
  return withKernel(env, (columns) => openKernel(env, foreign, described, connect, columns))
}

/** The rows from `first` to `first + count - 1` of a batch, whose envs run in one program. */
interface RowRange {
  readonly first: number
  readonly count: number
  readonly connection: Connection
}

/** Sends a request, and waits for the reply. */
const ask = (connection: Connection, bytes: Uint8Array): Effect.Effect<Reply, EnvError> =>
  Effect.callback((resume) =>
    connection.send(bytes, mostReplyBytes, (reply) =>
      resume(reply instanceof EnvError ? Exit.fail(reply) : Exit.succeed(reply)),
    ),
  )

const openKernel = Effect.fnUntraced(function* (
  env: Env,
  foreign: Foreign,
  described: EnvDescription,
  connect: Connect,
  columns: AsyncColumns,
): Effect.fn.Return<AsyncKernel, EnvError, Scope.Scope> {
  // The rows of a game with several agents stay together.
  const together = env.agents?.length ?? 1
  const games = columns.numEnvs / together
  const processes = Math.min(Math.max(1, foreign.processes), games)
  const bounds = Array.from({ length: processes + 1 }, (_, index) => together * Math.floor((index * games) / processes))
  const open = Effect.fnUntraced(function* (first: number, end: number) {
    const connection = yield* connect(end - first === 1 ? `env ${first}` : `envs ${first} to ${end - 1}`)
    const reply = yield* ask(connection, makeRequest(foreign.name, foreign.options, (end - first) / together))
    const found = yield* Effect.try({
      try: () => describedBy(env.id, reply),
      catch: (error) => (error instanceof EnvError ? error : invalid(env.id, messageOf(error))),
    })
    if (JSON.stringify(found) !== JSON.stringify(described)) {
      return yield* invalid(env.id, "its program now describes another env than before")
    }
    return { first, count: end - first, connection }
  })
  const parts = yield* Effect.forEach(bounds.slice(1), (end, index) => open(bounds[index], end), {
    concurrency: "unbounded",
  })
  const recorded =
    described.hasScores === true
      ? { scores: new Float32Array(columns.numEnvs), livesLost: new Uint8Array(columns.numEnvs) }
      : undefined
  const exchanges = parts.map((part) => makeExchange(env, described, part, { ...columns, recorded }))
  return {
    exchange: (actions) =>
      Effect.callback((resume) => {
        let left = exchanges.length
        let failure: EnvError | undefined
        for (const exchange of exchanges) {
          exchange(actions, (error) => {
            failure ??= error
            left--
            if (left === 0) resume(failure === undefined ? Exit.void : Exit.fail(failure))
          })
        }
      }),
    ...(recorded && { recorded }),
    ...(described.renders === true && { renderSvg: (index: number) => render(env, parts, index) }),
  }
})

/** Makes the function that carries out the commands of the envs of one program, and stores the results. */
const makeExchange = (
  env: Env,
  described: EnvDescription,
  { first, count, connection }: RowRange,
  columns: AsyncColumns & { readonly recorded: AsyncKernel["recorded"] | undefined },
) => {
  const { observations, finalObservations, rewards, terminated, truncated, commands, recorded } = columns
  const failedIn = (body: Uint8Array): EnvError => stepFailure(env, columns, { first, count }, body)
  const layout = exchangeLayout(env, described, count)
  const size = sizeOf(rowSpaceOf(env))
  const actionSize = sizeOf(env.actionSpace)
  const bytes = message(request.exchange, layout.requestBytes)
  const view = new DataView(bytes.buffer)
  const sentCommands = bytes.subarray(layout.commands)
  const sentActions = actionsOf(env.actionSpace, bytes, layout.actions, count * actionSize)
  const rewardBytes = bytesOf(rewards, first, count)

  /** Copies the observation of an env, which begins at byte `from` of a reply, to a row of `into`. */
  const copyRow = (body: Uint8Array, from: number, into: Float32Array, index: number): void => {
    const source = body.subarray(from, from + layout.observationBytes)
    if (described.observationType === "uint8") into.set(source, index * size)
    else bytesOf(into, index * size, size).set(source)
  }

  const store = (body: Uint8Array): EnvError | undefined => {
    const flags = body.length - layout.tailBytes
    let ended = 0
    for (let at = 0; at < count; at++) {
      if (hasEnded(sentCommands[at], body[flags + at], body[flags + count + at])) ended++
    }
    if (flags < 0 || body.length !== layout.replyBytes(ended)) {
      return invalid(env.id, `its program sent a reply of ${body.length} bytes; expected ${layout.replyBytes(ended)}`)
    }
    rewardBytes.set(body.subarray(0, 4 * count))
    const scores = body.subarray(body.length - layout.scoreBytes)
    if (recorded !== undefined) bytesOf(recorded.scores, first, count).set(scores)
    let final = layout.finalObservations
    for (let at = 0; at < count; at++) {
      const index = first + at
      if (sentCommands[at] === command.none) continue
      copyRow(body, layout.observations + at * layout.observationBytes, observations, index)
      terminated[index] = body[flags + at] === 0 ? 0 : 1
      truncated[index] = body[flags + count + at]
      if (recorded !== undefined) {
        const goesOn = sentCommands[at] === command.step && truncated[index] === 0
        recorded.livesLost[index] = goesOn && body[flags + at] === lifeLost ? 1 : 0
      }
      if (!hasEnded(sentCommands[at], terminated[index], truncated[index])) continue
      copyRow(body, final, finalObservations, index)
      final += layout.observationBytes
    }
    return undefined
  }

  return (actions: Float32Array | Int32Array, done: (error: EnvError | undefined) => void): void => {
    for (let at = 0; at < count; at++) {
      sentCommands[at] = commands[first + at]
      view.setUint32(layout.seeds + 4 * at, columns.nextEpisode(first + at).uint32(), true)
    }
    for (let at = 0; at < sentActions.length; at++) sentActions[at] = actions[first * actionSize + at]
    connection.send(bytes, layout.replyBytes(count), (reply) => {
      if (reply instanceof EnvError) done(reply)
      else done(reply.status === status.done ? store(reply.body) : failedIn(reply.body))
    })
  }
}

/** Returns the error of a program that failed in an exchange. */
const stepFailure = (
  env: Env,
  { commands, episodes, elapsed }: AsyncColumns,
  { first, count }: Pick<RowRange, "first" | "count">,
  body: Uint8Array,
): EnvError => {
  const { message, index = 0, traceback } = failureOf(body)
  if (index < 0 || index >= count) {
    const found = `its program failed in env ${index}; expected the index of one of its ${count} envs: ${message}`
    return new EnvError({
      env: env.id,
      message: `${env.id}: ${found}`,
      ...(traceback !== undefined && { userStack: traceback }),
    })
  }
  const at = first + index
  const starts = commands[at] === command.start
  return errorAt(env.id, at, episodes[at], starts ? 0 : elapsed[at] + 1, message, traceback)
}

const actionsOf = (space: ActionSpace, bytes: Uint8Array, at: number, length: number): Float32Array | Int32Array =>
  space._tag === "Box" ? new Float32Array(bytes.buffer, at, length) : new Int32Array(bytes.buffer, at, length)

/** Returns the bytes of a part of an array. */
const bytesOf = ({ buffer, byteOffset }: Float32Array, first: number, count: number): Uint8Array =>
  new Uint8Array(buffer, byteOffset + 4 * first, 4 * count)

const toBase64 = Schema.encodeSync(Schema.Uint8ArrayFromBase64)

/** Asks the program of an env for a picture, and returns it as an SVG document. */
const render = Effect.fnUntraced(function* (env: Env, parts: ReadonlyArray<RowRange>, index: number) {
  const part = parts.find(({ first, count }) => index >= first && index < first + count)
  if (part === undefined) return yield* invalid(env.id, `there is no env ${index} to render`)
  const bytes = message(request.render, 4)
  new DataView(bytes.buffer).setUint32(headerSize, index - part.first, true)
  const { body, status: outcome } = yield* ask(part.connection, bytes)
  if (outcome !== status.done) return yield* invalid(env.id, `rendering failed: ${failureOf(body).message}`)
  if (body.length < 8)
    return yield* invalid(env.id, `rendering failed: expected a size and a picture, found ${body.length} bytes`)
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength)
  const [width, height] = [view.getUint32(0, true), view.getUint32(4, true)]
  const picture = toBase64(body.subarray(8))
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}"><image width="${width}" height="${height}" href="data:image/png;base64,${picture}"/></svg>`
})
