/**
 * Defines the messages between effect-rl and a program that runs envs, such as `effect_rl_env.py`. docs/foreign-envs.md
 * describes them for authors of such programs.
 */
import { Schema } from "effect"
import { boundProblem } from "../../../base/config/bounds.ts"
import { bounded } from "../../../base/config/fields.ts"
import { jsonText } from "../../../base/text/jsonText.ts"
import { oneLine, shortened } from "../../../base/text/text.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { headerSize } from "../../../spread/programs/Connection.ts"
import { type Env, rowSpaceOf } from "../Env.ts"
import { command } from "../internal/asyncKernel.ts"
import {
  type ActionSpace,
  box,
  type Box,
  dict,
  discrete,
  multiBinary,
  multiDiscrete,
  sizeOf,
  type Space,
  tuple,
} from "../Space.ts"

export const version = 1

/** The flag `terminated` of a step that ended a life, after which the game goes on. */
export const lifeLost = 2

/** The kinds of requests. */
export const request = { make: 0, exchange: 1, render: 2 } as const
/** Returns a message: its header, and room for its body. */
export const message = (kind: number, length: number): Uint8Array => {
  const bytes = new Uint8Array(headerSize + length)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, length, true)
  view.setUint32(4, kind, true)
  return bytes
}

/** Makes the request for `count` envs; the reply describes them. With a count of 0, the program only describes the env. */
export const makeRequest = (env: string, options: unknown, count: number): Uint8Array => {
  const text = utf8.encode(JSON.stringify({ protocol: version, env, options, count }))
  const bytes = message(request.make, text.length)
  bytes.set(text, headerSize)
  return bytes
}

const Bound = Schema.Union([Schema.NullOr(Schema.Finite), Schema.Array(Schema.NullOr(Schema.Finite))])

/** A space, as a program describes it. A bound that is null is infinite. */
interface SpaceDescription {
  readonly type: string
  readonly n?: number
  readonly nvec?: ReadonlyArray<number>
  readonly shape?: ReadonlyArray<number>
  readonly low?: typeof Bound.Type
  readonly high?: typeof Bound.Type
  readonly spaces?: ReadonlyArray<SpaceDescription>
  readonly keys?: ReadonlyArray<string>
}

const SpaceDescription: Schema.Codec<SpaceDescription> = Schema.Struct({
  type: Schema.String,
  n: Schema.optionalKey(Schema.Int),
  nvec: Schema.optionalKey(Schema.Array(Schema.Int)),
  shape: Schema.optionalKey(Schema.Array(Schema.Int)),
  low: Schema.optionalKey(Bound),
  high: Schema.optionalKey(Bound),
  keys: Schema.optionalKey(Schema.Array(Schema.String)),
  spaces: Schema.optionalKey(Schema.Array(Schema.suspend((): Schema.Codec<SpaceDescription> => SpaceDescription))),
})

/** The reply to `makeRequest`. */
const EnvDescription = Schema.Struct({
  protocol: Schema.Int,
  observationSpace: SpaceDescription,
  actionSpace: SpaceDescription,
  /** The type of the numbers of observations in messages. */
  observationType: Schema.Literals(["float32", "uint8"]),
  maxSteps: Schema.NullOr(bounded("count")),
  rewardThreshold: Schema.optionalKey(Schema.NullOr(Schema.Finite)),
  renders: Schema.optionalKey(Schema.Boolean),
  /** Whether a mask, which says which choices are allowed, follows each observation. */
  hasActionMask: Schema.optionalKey(Schema.Boolean),
  /** Whether replies end with scores, the rewards to record. Then `terminated` may be 2, for the end of a life. */
  hasScores: Schema.optionalKey(Schema.Boolean),
  /** The names of the agents of a game. Then messages have a row for each agent of each env. */
  agents: Schema.optionalKey(Schema.NonEmptyArray(Schema.NonEmptyString)),
})
export type EnvDescription = typeof EnvDescription.Type
export const decodeDescription = Schema.decodeUnknownResult(jsonText(EnvDescription))

/** The body of a reply with the status `failed`. */
const ProgramFailure = Schema.Struct({
  message: Schema.String,
  /** The index of the env among those of the program. */
  index: Schema.optionalKey(Schema.Int),
  traceback: Schema.optionalKey(Schema.String),
})
type ProgramFailure = typeof ProgramFailure.Type
const decodeFailure = Schema.decodeUnknownOption(jsonText(ProgramFailure))

/** Reads the body of a reply with the status `failed`. */
export const failureOf = (body: Uint8Array): ProgramFailure => {
  const text = utf8.decode(body)
  const decoded = decodeFailure(text)
  const failure = decoded._tag === "Some" ? decoded.value : { message: text }
  return { ...failure, message: oneLine(failure.message) }
}

/** Throws an error that says that effect-rl has no such space. */
const unsupported = (type: string, use: string, expected: string): never => {
  throw new Error(`its ${use} are a ${type} space, which is not supported; expected ${expected}`)
}

const boundOf = (bound: typeof Bound.Type | undefined, infinite: number): number | ReadonlyArray<number> =>
  typeof bound === "object" && bound !== null ? bound.map((value) => value ?? infinite) : (bound ?? infinite)

const boxOf = ({ shape = [1], low, high }: SpaceDescription): Box =>
  // A scalar has an empty shape in Gymnasium.
  box(boundOf(low, Number.NEGATIVE_INFINITY), boundOf(high, Number.POSITIVE_INFINITY), shape.length === 0 ? [1] : shape)

/** Returns how many numbers a value in a described space has. */
const numbersIn = ({ type, shape = [], n = 1, spaces = [] }: SpaceDescription): number => {
  if (type === "Tuple" || type === "Dict") return spaces.reduce((sum, part) => sum + numbersIn(part), 0)
  if (type === "Box") return shape.reduce((product, dimension) => product * dimension, 1)
  return type === "MultiBinary" ? n : 1
}

/** Converts a program's description of a space to a `Space`. Throws if effect-rl has no such space. */
export const spaceOf = (described: SpaceDescription, use: string): Space => {
  // Each part may be small enough, and all of them together too large.
  const problem = boundProblem("axis", numbersIn(described))
  if (problem !== undefined) throw new Error(`the numbers of its ${use}: ${problem}`)
  const { spaces = [], keys = [] } = described
  const parts = spaces.map((part) => spaceOf(part, use))
  if (described.type === "Tuple") return tuple(...parts)
  if (described.type === "Dict") {
    const names = new Set(keys)
    if (keys.length !== parts.length || names.size !== keys.length) {
      const found = shortened(JSON.stringify(keys))
      throw new Error(
        `its ${use} are a Dict space; expected ${parts.length} different keys, one for each part, found ${found}`,
      )
    }
    return dict(Object.fromEntries(parts.map((part, index) => [keys[index], part])))
  }
  return simpleSpaceOf(described) ?? unsupported(described.type, use, `${simpleSpaces.join(", ")}, Tuple or Dict`)
}

export const actionSpaceOf = (described: SpaceDescription): ActionSpace =>
  simpleSpaceOf(described) ?? unsupported(described.type, "actions", simpleSpaces.join(", "))

const simpleSpaces = ["Box", "Discrete", "MultiDiscrete", "MultiBinary"]

const simpleSpaceOf = (described: SpaceDescription): ActionSpace | undefined => {
  const { type, n = 1, nvec = [] } = described
  if (type === "Box") return boxOf(described)
  if (type === "Discrete") return discrete(n)
  if (type === "MultiDiscrete") return multiDiscrete(nvec)
  return type === "MultiBinary" ? multiBinary(n) : undefined
}

/** The place of each array in the requests and replies of one program, which steps `count` rows: envs, or agents of envs. */
export const exchangeLayout = (
  env: Pick<Env, "observationSpace" | "actionSpace" | "actionMask">,
  { observationType, hasScores = false }: Pick<EnvDescription, "observationType" | "hasScores">,
  count: number,
) => {
  const actionBytes = 4 * sizeOf(env.actionSpace)
  const scoreBytes = hasScores ? 4 : 0
  const observationBytes = sizeOf(rowSpaceOf(env)) * (observationType === "uint8" ? 1 : 4)
  return {
    /** A request has seeds (uint32), actions (int32 or float32) and commands (uint8). */
    seeds: headerSize,
    actions: headerSize + 4 * count,
    commands: headerSize + 4 * count + actionBytes * count,
    requestBytes: count * (5 + actionBytes),
    /**
     * A reply has rewards (float32), observations, the final observations of the envs whose episode or life ended, the
     * flags `terminated` and `truncated` (uint8), and scores (float32), if the env has them.
     */
    observations: 4 * count,
    finalObservations: (4 + observationBytes) * count,
    observationBytes,
    replyBytes: (ended: number) => (6 + scoreBytes + observationBytes) * count + observationBytes * ended,
    /** The numbers of bytes after the final observations. */
    scoreBytes: scoreBytes * count,
    tailBytes: (2 + scoreBytes) * count,
  }
}

/** Tells whether this command ended the episode: a last step does so always, a step if one of its flags is set. */
export const hasEnded = (kind: number, terminated: number, truncated: number): boolean =>
  kind === command.lastStep || (kind === command.step && (terminated | truncated) !== 0)
