/**
 * Finds built-in algorithms by name, for configs and commands. Algorithms that learn from data (`fromData`) can only be
 * made in code.
 */
import { Effect, type Schema } from "effect"
import { choiceHint } from "../../base/text/closest.ts"
import { ConfigError, type Plain } from "../../base/config/Config.ts"
import * as Bc from "./demonstrations/Bc.ts"
import * as Dagger from "./demonstrations/Dagger.ts"
import * as Gail from "./demonstrations/Gail.ts"
import * as Iql from "./demonstrations/Iql.ts"
import * as A2c from "./rollouts/A2c.ts"
import * as AlphaZero from "./planning/AlphaZero.ts"
import type { Algorithm } from "../learner/Algorithm.ts"
import * as CrossQ from "./replay/CrossQ.ts"
import * as Curiosity from "./rollouts/Curiosity.ts"
import * as Daac from "./rollouts/Daac.ts"
import * as Ddqn from "./rollouts/Ddqn.ts"
import * as Ddpg from "./replay/Ddpg.ts"
import * as DiscreteSac from "./replay/DiscreteSac.ts"
import * as Dqn from "./replay/Dqn.ts"
import * as Es from "./episodes/Es.ts"
import * as Ppo from "./rollouts/Ppo.ts"
import * as Randal from "./rollouts/Randal.ts"
import * as Rnd from "./rollouts/Rnd.ts"
import * as Separate from "./agents/Separate.ts"
import * as Sac from "./replay/Sac.ts"
import * as Td3 from "./replay/Td3.ts"
import * as Trpo from "./rollouts/Trpo.ts"
import * as Tqc from "./replay/Tqc.ts"
import * as Unreal from "./rollouts/Unreal.ts"
import * as Vin from "./rollouts/Vin.ts"

const algorithms: Readonly<Record<string, () => Algorithm>> = {
  a2c: () => A2c.make(),
  "alpha-zero": () => AlphaZero.make(),
  "cross-q": () => CrossQ.make(),
  curiosity: () => Curiosity.make(),
  daac: () => Daac.make(),
  ddpg: () => Ddpg.make(),
  ddqn: () => Ddqn.make(),
  "discrete-sac": () => DiscreteSac.make(),
  dqn: () => Dqn.make(),
  es: () => Es.make(),
  ppo: () => Ppo.make(),
  randal: () => Randal.make(),
  rnd: () => Rnd.make(),
  sac: () => Sac.make(),
  td3: () => Td3.make(),
  trpo: () => Trpo.make(),
  tqc: () => Tqc.make(),
  unreal: () => Unreal.make(),
  vin: () => Vin.make(),
}

/** The names of the algorithms that a config can choose for a policy, or for each policy of `separate`. */
export const names: ReadonlyArray<string> = Object.keys(algorithms)

/**
 * The algorithms that learn from data or from an expert, by name. A config can't hold the data, so the algorithms that
 * it makes only play what a run has learned.
 */
export const fromData: Readonly<Record<string, Algorithm>> = {
  bc: Bc.onlyPlays,
  dagger: Dagger.onlyPlays,
  gail: Gail.onlyPlays,
  iql: Iql.onlyPlays,
}

/** Returns the Schema of an algorithm's config, even if only code can make the algorithm. */
export const schemaOf = (name: string): Schema.Codec<Plain, Plain> =>
  (Object.hasOwn(fromData, name) ? fromData[name] : algorithms[name]()).schema

/**
 * Finds an algorithm like `find`, but also those that can only play what a run has learned, for validating a
 * checkpoint.
 */
export const findToPlay = (name: string): Algorithm | undefined =>
  name === Separate.name ? Separate.named((one) => findOneToPlay(one) ?? problemOf(one, names)) : findOneToPlay(name)

/** Finds an algorithm like `find`, but fails for an unknown name, with a suggestion. `source` begins the message. */
export const byName = (name: string, source: string): Effect.Effect<Algorithm, ConfigError> => {
  const algorithm = find(name)
  if (algorithm !== undefined) return Effect.succeed(algorithm)
  return Effect.fail(
    ConfigError.at({ source }, "algorithm", problemOf(name, [...names, Separate.name]), { unknown: "algorithm" }),
  )
}

/**
 * Returns the built-in algorithm with this name and its default settings; undefined if there is none. `separate` needs the
 * policies of a config.
 */
export const find = (name: string): Algorithm | undefined =>
  name === Separate.name ? Separate.named((one) => findOne(one) ?? problemOf(one, names)) : findOne(name)

const findOneToPlay = (name: string): Algorithm | undefined =>
  findOne(name) ?? (Object.hasOwn(fromData, name) ? fromData[name] : undefined)

const findOne = (name: string): Algorithm | undefined =>
  Object.hasOwn(algorithms, name) ? algorithms[name]() : undefined

/** Says why no config can choose an algorithm of this name. */
const problemOf = (name: string, candidates: ReadonlyArray<string>): string =>
  Object.hasOwn(fromData, name)
    ? `${name} learns from data or an expert, which a config can't hold, only a program`
    : `unknown algorithm "${name}"; ${choiceHint(name, candidates)}`
