/**
 * Makes envs from parsed configs; it reads no files. A config is an env's id (`env: CartPole-v1`), a name with options
 * (`env: { name: KeyDoor, size: 12 }`), or the name of a wrapper with its options and the config of the inner env
 * (`env: { name: ScaleReward, factor: 0.1, env: Pendulum-v1 }`). Training and the threads of `EnvPool` use it.
 */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import { messageOf, shortened } from "../../base/text/text.ts"
import { choiceHint } from "../../base/text/closest.ts"
import {
  ConfigError,
  decode,
  isPlain,
  type DecodeOptions,
  display,
  placeOf,
  toSnakeCase,
} from "../../base/config/Config.ts"
import { bounded, fraction, limit, real } from "../../base/config/fields.ts"
import { permit, type ProgramStart } from "../../base/trust/Trust.ts"
import type { Env } from "./Env.ts"
import { EnvError } from "../../base/EnvError.ts"
import { builtIn, byId } from "./Envs.ts"
import * as BitFlip from "./games/BitFlip.ts"
import * as MemoryChain from "./games/MemoryChain.ts"
import * as RepeatCue from "./games/RepeatCue.ts"
import * as TicTacToe from "./games/TicTacToe.ts"
import * as ApplePicker from "./grid/ApplePicker.ts"
import * as HalfCheetah from "./mujoco/bodies/HalfCheetah.ts"
import * as Hopper from "./mujoco/bodies/Hopper.ts"
import * as Walker2d from "./mujoco/bodies/Walker2d.ts"
import * as Ant from "./mujoco/bodies/Ant.ts"
import * as Swimmer from "./mujoco/bodies/Swimmer.ts"
import * as Reacher from "./mujoco/bodies/Reacher.ts"
import * as Pusher from "./mujoco/bodies/Pusher.ts"
import * as InvertedPendulum from "./mujoco/bodies/InvertedPendulum.ts"
import * as InvertedDoublePendulum from "./mujoco/bodies/InvertedDoublePendulum.ts"
import * as Humanoid from "./mujoco/bodies/Humanoid.ts"
import * as HumanoidStandup from "./mujoco/bodies/HumanoidStandup.ts"
import * as DeepSea from "./grid/DeepSea.ts"
import * as GridWorld from "./grid/GridWorld.ts"
import * as KeyDoor from "./grid/KeyDoor.ts"
import * as PixelMaze from "./grid/PixelMaze.ts"
import * as Asterix from "./pixel/Asterix.ts"
import * as Breakout from "./pixel/Breakout.ts"
import * as Catch from "./pixel/Catch.ts"
import * as Freeway from "./pixel/Freeway.ts"
import * as Seaquest from "./pixel/Seaquest.ts"
import * as SpaceInvaders from "./pixel/SpaceInvaders.ts"
import {
  ForeignEnvs,
  type ForeignEnvsService,
  ForeignOptions,
  GymnasiumOptions,
  PettingZooOptions,
} from "./foreign/options.ts"
import { permitServer } from "../../spread/openenv/OpenEnvServers.ts"
import { OpenEnvOptions } from "./openenv/OpenEnv.ts"
import { recipeOf } from "./recipe.ts"
import { type ActionSpace, type Box, display as displayedSpace } from "./Space.ts"
import * as Wrapper from "./Wrapper.ts"

/** Makes the env or wrapper that configs call by one name. */
interface Maker {
  /** The Schema of the options. */
  readonly schema: Schema.Codec<unknown, unknown>
  /** Makes an env from its options. `from` names the config and the key in it, for error messages. */
  readonly make: (options: unknown, from: DecodeOptions) => Effect.Effect<Env, ConfigError>
}

/** Returns a maker that decodes the options by a Schema and passes them to `make`. */
const maker = <S extends Schema.Codec<unknown, unknown>>(schema: S, make: (options: S["Type"]) => Env): Maker => ({
  schema,
  make: (options, from) =>
    Effect.flatMap(decode(schema, options, from), (decoded) => trying(() => make(decoded), from)),
})

/** Returns a maker of wrapped envs: it makes the inner env from the key `env`, and decodes the other options. */
const wrapper = <S extends Schema.Codec<unknown, unknown>>(
  schema: S,
  make: (env: Env, options: S["Type"]) => Env,
): Maker => ({
  schema,
  make: (options, from) => {
    const { env: inner, ...own } = isPlain(options) ? options : {}
    const innerFrom = { ...from, prefix: [...(from.prefix ?? []), "env"] }
    return Effect.flatMap(fromConfig(inner, innerFrom), (env) =>
      Effect.flatMap(decode(schema, own, from), (decoded) => trying(() => make(env, decoded), from)),
    )
  },
})

/**
 * Returns a maker of envs that run in other programs. Before `make` starts the program, which `programOf` describes,
 * the service `Trust` must permit it.
 */
const foreign = <S extends Schema.Codec<unknown, unknown>>(
  schema: S,
  programOf: (options: S["Type"]) => EnvProgram,
  make: (service: ForeignEnvsService, options: S["Type"]) => Env,
): Maker => ({
  schema,
  make: (options, from) =>
    Effect.gen(function* () {
      const service = yield* ForeignEnvs
      const decoded = yield* decode(schema, options, from)
      const { key: naming, ...program } = programOf(decoded)
      const key = isPlain(options) && naming in options ? naming : ""
      yield* permit({ _tag: "ProgramStart", place: placeOf(from, key), ...program }).pipe(
        Effect.mapError(({ message }) => ConfigError.at(from, key, message)),
      )
      return yield* trying(() => make(service, decoded), from)
    }),
})

/** Makes the env of a server of OpenEnv, which the service `Trust` must permit. */
const openEnv: Maker = {
  schema: OpenEnvOptions,
  make: (options, from) =>
    Effect.gen(function* () {
      const service = yield* ForeignEnvs
      const decoded = yield* decode(OpenEnvOptions, options, from)
      return yield* permitServer(decoded, placeOf(from, "url")).pipe(
        Effect.andThen(() => service.openEnv(decoded)),
        Effect.mapError(({ message }) => ConfigError.at(from, "url", message)),
      )
    }),
}

/** The program that an env runs in, and the key of the config that names it. */
type EnvProgram = Omit<ProgramStart, "_tag" | "place"> & { readonly key: string }

interface PythonEnvOptions {
  readonly python: string
  readonly variables?: ReadonlyArray<string>
  readonly [option: string]: unknown
}

/** Describes the start of one of the scripts in `rl/env/foreign`, which import what the options name. */
const pythonProgram =
  (script: string) =>
  ({
    python,
    processes: _processes,
    timeoutSeconds: _timeout,
    variables = [],
    ...input
  }: PythonEnvOptions): EnvProgram => ({
    key: "python",
    command: [python, script],
    isSameAnywhere: !/[\\/]/.test(python),
    variables,
    input: toSnakeCase(input),
  })

const trying = (
  make: () => Env,
  from: DecodeOptions,
  about?: Pick<ConfigError, "unknown">,
): Effect.Effect<Env, ConfigError> =>
  Effect.try({
    try: make,
    catch: (error) => ConfigError.at(from, "", messageOf(error), about),
  })

const isContinuous = (env: Env): env is Env<unknown, Box> => env.actionSpace._tag === "Box"

/** Returns the env if its actions are continuous; otherwise throws an `EnvError`. */
const continuous = (env: Env): Env<unknown, Box> => {
  if (isContinuous(env)) return env
  const found = env.actionSpace._tag === "Discrete" ? "discrete" : displayedSpace(env.actionSpace)
  const message = `expected an env with continuous actions; those of ${env.id} are ${found}`
  throw new EnvError({ env: env.id, message })
}

const observesBox = (env: Env): env is Env<unknown, ActionSpace, Box> => env.observationSpace._tag === "Box"

/** Returns the env if its observations are lists of real numbers; otherwise throws an `EnvError`. */
const withBox = (env: Env): Env<unknown, ActionSpace, Box> => {
  if (observesBox(env)) return env
  const found = displayedSpace(env.observationSpace)
  const message = `expected an env whose observations are real numbers; those of ${env.id} are ${found}`
  throw new EnvError({ env: env.id, message })
}

const makers: Readonly<Record<string, Maker>> = {
  KeyDoor: maker(KeyDoor.KeyDoorOptions, KeyDoor.make),
  GridWorld: maker(GridWorld.GridWorldOptions, GridWorld.make),
  PixelMaze: maker(PixelMaze.PixelMazeOptions, PixelMaze.make),
  ApplePicker: maker(ApplePicker.ApplePickerOptions, ApplePicker.make),
  Breakout: maker(Breakout.BreakoutOptions, Breakout.make),
  Asterix: maker(Asterix.AsterixOptions, Asterix.make),
  Freeway: maker(Freeway.FreewayOptions, Freeway.make),
  Seaquest: maker(Seaquest.SeaquestOptions, Seaquest.make),
  SpaceInvaders: maker(SpaceInvaders.SpaceInvadersOptions, SpaceInvaders.make),
  Catch: maker(Catch.CatchOptions, Catch.make),
  BitFlip: maker(BitFlip.BitFlipOptions, BitFlip.make),
  RepeatCue: maker(RepeatCue.RepeatCueOptions, RepeatCue.make),
  DeepSea: maker(DeepSea.DeepSeaOptions, DeepSea.make),
  MemoryChain: maker(MemoryChain.MemoryChainOptions, MemoryChain.make),
  TicTacToe: maker(TicTacToe.TicTacToeOptions, TicTacToe.make),
  HalfCheetah: maker(HalfCheetah.HalfCheetahOptions, HalfCheetah.make),
  Hopper: maker(Hopper.HopperOptions, Hopper.make),
  Walker2d: maker(Walker2d.Walker2dOptions, Walker2d.make),
  Ant: maker(Ant.AntOptions, Ant.make),
  Swimmer: maker(Swimmer.SwimmerOptions, Swimmer.make),
  Reacher: maker(Reacher.ReacherOptions, Reacher.make),
  Pusher: maker(Pusher.PusherOptions, Pusher.make),
  InvertedPendulum: maker(InvertedPendulum.InvertedPendulumOptions, InvertedPendulum.make),
  InvertedDoublePendulum: maker(InvertedDoublePendulum.InvertedDoublePendulumOptions, InvertedDoublePendulum.make),
  Humanoid: maker(Humanoid.HumanoidOptions, Humanoid.make),
  HumanoidStandup: maker(HumanoidStandup.HumanoidStandupOptions, HumanoidStandup.make),
  Gymnasium: foreign(GymnasiumOptions, pythonProgram("effect_rl_env.py"), ({ gymnasium }, options) =>
    gymnasium(options),
  ),
  PettingZoo: foreign(PettingZooOptions, pythonProgram("effect_rl_pettingzoo.py"), ({ pettingZoo }, options) =>
    pettingZoo(options),
  ),
  ForeignEnv: foreign(
    ForeignOptions,
    ({ command, id, options, variables = [] }) => ({
      key: "command",
      command,
      variables,
      input: { id, options: toSnakeCase(options) },
    }),
    ({ command }, options) => command(options),
  ),
  OpenEnv: openEnv,
  TimeLimit: wrapper(Schema.Struct({ steps: bounded("count") }), (env, { steps }) => Wrapper.timeLimit(env, steps)),
  ClipAction: wrapper(Schema.Struct({}), (env) => Wrapper.clipAction(continuous(env))),
  RescaleAction: wrapper(Schema.Struct({ low: real, high: real }), (env, { low, high }) =>
    Wrapper.rescaleAction(continuous(env), low, high),
  ),
  ClipReward: wrapper(Schema.Struct({ low: limit, high: limit }), (env, { low, high }) =>
    Wrapper.clipReward(env, low, high),
  ),
  ScaleReward: wrapper(Schema.Struct({ factor: real }), (env, { factor }) => Wrapper.scaleReward(env, factor)),
  KeepObservations: wrapper(Schema.Struct({ elements: Schema.Array(bounded("index")) }), (env, { elements }) =>
    Wrapper.keepObservations(withBox(env), elements),
  ),
  FrameStack: wrapper(Schema.Struct({ size: bounded("frames") }), (env, { size }) => Wrapper.frameStack(env, size)),
  MaxAndSkip: wrapper(Schema.Struct({ skip: bounded("count") }), (env, { skip }) =>
    Wrapper.maxAndSkip(withBox(env), skip),
  ),
  Grey: wrapper(Schema.Struct({}), (env) => Wrapper.grey(withBox(env))),
  Resize: wrapper(Schema.Struct({ rows: bounded("pixels"), columns: bounded("pixels") }), (env, { rows, columns }) =>
    Wrapper.resize(withBox(env), rows, columns),
  ),
  FireStarts: wrapper(
    Schema.Struct({ actions: Schema.Array(Schema.Union([bounded("index"), Schema.Array(real)])) }),
    (env, { actions }) => Wrapper.fireStarts(env, ...actions),
  ),
  StickyActions: wrapper(Schema.Struct({ probability: fraction }), (env, { probability }) =>
    Wrapper.stickyActions(env, probability),
  ),
  NoopStarts: wrapper(
    Schema.Struct({ noop: Schema.Union([bounded("index"), Schema.Array(real)]), most: bounded("count") }),
    (env, { noop, most }) => Wrapper.noopStarts(env, noop, most),
  ),
}

/** The Schemas of the options of all envs and wrappers that configs can name. */
export const optionSchemas: Readonly<Record<string, Schema.Codec<unknown, unknown>>> = Object.fromEntries(
  Object.entries(makers).map(([name, { schema }]) => [name, schema]),
)

/** Makes the env that a config describes. An unknown name or a wrong option fails with an error that names its key. */
export const fromConfig = (config: unknown, from: DecodeOptions): Effect.Effect<Env, ConfigError> => {
  if (typeof config === "string") return trying(() => byId(config), from, { unknown: "env" })
  if (!isPlain(config)) return Effect.fail(ConfigError.at(from, "", `expected an env's id, or its name with options`))
  const { name, ...options } = config
  if (typeof name !== "string") {
    return Effect.fail(ConfigError.at(from, "name", `expected an env's name, found ${display(name)}`))
  }
  const maker = Object.hasOwn(makers, name) ? makers[name] : undefined
  if (maker !== undefined) return maker.make(options, from)
  const hint = choiceHint(name, Object.keys(makers))
  return Effect.fail(ConfigError.at(from, "name", `unknown env "${shortened(name)}"; ${hint}`, { unknown: "env" }))
}

/**
 * Expands the id or name of an env that has options to `{ name, ...options }`, so that an override can change a single
 * option. Returns any other config unchanged.
 */
export const expandedConfig = (config: unknown): unknown => {
  if (typeof config !== "string") return config
  const env = builtIn.find(({ id }) => id === config)
  return (env && recipeOf(env)) ?? (Object.hasOwn(makers, config) ? { name: config } : config)
}
