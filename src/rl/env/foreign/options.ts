/**
 * Declares the config options of envs that run in other programs, and the service `ForeignEnvs` that makes such envs.
 */
import { Context, type Effect } from "effect"
import * as Schema from "effect/Schema"
import { bounded, positiveBelow, withDefault } from "../../../base/config/fields.ts"
import type { Env } from "../Env.ts"
import { type EnvError, invalid } from "../../../base/EnvError.ts"
import { fromServer, type OpenEnvOptions } from "../openenv/OpenEnv.ts"

const common = {
  /** The number of processes among which the envs of a batch are divided. Results don't depend on it. */
  processes: withDefault(bounded("programs"), 1),
  /** The number of seconds after which a step without a reply fails. */
  timeoutSeconds: withDefault(positiveBelow("seconds"), 60),
  /** The names of the environment variables that the program gets, besides `PATH`, `HOME` and others that hold no secrets. */
  variables: Schema.optionalKey(Schema.Array(Schema.NonEmptyString)),
}

const python = {
  /** The Python program. */
  python: withDefault(Schema.NonEmptyString, "python3"),
  ...common,
}

export const GymnasiumOptions = Schema.Struct({
  /** The env's id in Gymnasium, such as LunarLander-v3. */
  id: Schema.NonEmptyString,
  /** The arguments of `gymnasium.make`. */
  options: withDefault(Schema.Record(Schema.String, Schema.Json), {}),
  /**
   * The wrappers around the env, from the inside to the outside: each the name of one of `gymnasium.wrappers`, or a module
   * and its class, such as `effect_rl_wrappers.FireReset`, with arguments.
   */
  wrappers: withDefault(Schema.Array(Schema.Record(Schema.String, Schema.Json)), []),
  /** Whether masks in the env's info (`info["action_mask"]`, as Taxi has) forbid actions. */
  actionMasks: withDefault(Schema.Boolean, true),
  /**
   * Whether records and validations have whole games with the env's own rewards, whatever the wrappers do: clip rewards, or end
   * an episode with each life.
   */
  gameScores: withDefault(Schema.Boolean, false),
  ...python,
})

export const PettingZooOptions = Schema.Struct({
  /** The game's id in PettingZoo, such as classic/tictactoe_v3, or the Python module that makes it. */
  id: Schema.NonEmptyString,
  /** The arguments of the function that makes the game. */
  options: withDefault(Schema.Record(Schema.String, Schema.Json), {}),
  /** The wrappers around the game, from the inside to the outside: each the name of a function of Python, with arguments. */
  wrappers: withDefault(Schema.Array(Schema.Record(Schema.String, Schema.Json)), []),
  /** Whether all agents act at once (`parallel`) or take turns (`aec`); null: at once, if the game can do so. */
  api: withDefault(Schema.NullOr(Schema.Literals(["parallel", "aec"])), null),
  ...python,
})

export const ForeignOptions = Schema.Struct({
  /** The program that steps the envs, and its arguments. */
  command: Schema.NonEmptyArray(Schema.NonEmptyString),
  /** The env's name in that program. */
  id: Schema.NonEmptyString,
  /** The options that the program gets. */
  options: withDefault(Schema.Record(Schema.String, Schema.Json), {}),
  ...common,
})

export interface ForeignEnvsService {
  readonly gymnasium: (options: typeof GymnasiumOptions.Type) => Env
  readonly pettingZoo: (options: typeof PettingZooOptions.Type) => Env
  readonly command: (options: typeof ForeignOptions.Type) => Env
  /** Connects to a server of OpenEnv. */
  readonly openEnv: (options: OpenEnvOptions) => Effect.Effect<Env, EnvError>
}

/** The service that makes envs from configs. By default it throws an `EnvError`; `effect-rl/node` provides processes. */
export const ForeignEnvs = Context.Reference<ForeignEnvsService>("effect-rl/env/ForeignEnvs", {
  defaultValue: () => {
    const refuse = ({ id }: { readonly id: string }): never => {
      throw invalid(
        id,
        "its program needs a process, which this platform doesn't have; provide the Layers of effect-rl/node",
      )
    }
    return { gymnasium: refuse, pettingZoo: refuse, command: refuse, openEnv: fromServer }
  },
})
