/** Gives each episode of a batch its own random numbers, and saves where they come from. */
import * as Schema from "effect/Schema"
import { jsonText } from "../../../base/text/jsonText.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { invalid } from "../../../base/EnvError.ts"
import { type Stream, stream } from "../../../base/rng/Rng.ts"
import type { Snapshot } from "../BatchEnv.ts"

/** The random streams of a batch's episodes. */
export interface EpisodeSeeds {
  readonly numEnvs: number
  readonly firstIndex: number
  /** The seed; undefined before the first reset. */
  seed: number | undefined
  path: ReadonlyArray<string | number>
  /** The stream (seed, ...path, firstIndex + i, "episode") of each env i: the parent of its episodes' streams. */
  parents: ReadonlyArray<Stream>
}

export const seedsFor = (numEnvs: number, firstIndex: number): EpisodeSeeds => ({
  numEnvs,
  firstIndex,
  seed: undefined,
  path: [],
  parents: [],
})

/** Stores the seed and the path of the random streams, and makes `parents` from them. */
export const setSeed = (seeds: EpisodeSeeds, seed: number, path: ReadonlyArray<string | number>): void => {
  const { numEnvs, firstIndex } = seeds
  seeds.seed = seed
  seeds.path = path
  seeds.parents = Array.from({ length: numEnvs }, (_, index) => stream(seed, ...path, firstIndex + index, "episode"))
}

/** Returns the seed and the path as JSON, for the array `origin` of a snapshot. */
export const saveSeed = ({ seed, path }: EpisodeSeeds): Uint8Array =>
  utf8.encode(JSON.stringify({ seed: seed ?? null, path }))

/** Restores the seed of a snapshot. Returns false if the snapshot was taken before the first reset. */
export const restoreSeed = (seeds: EpisodeSeeds, { seed, path }: SeedOrigin): boolean => {
  seeds.seed = undefined
  if (seed === null) return false
  setSeed(seeds, seed, path)
  return true
}

const SeedOrigin = Schema.Struct({
  seed: Schema.NullOr(Schema.Number),
  path: Schema.Array(Schema.Union([Schema.String, Schema.Number])),
})
type SeedOrigin = typeof SeedOrigin.Type

const readOrigin = Schema.decodeUnknownOption(jsonText(SeedOrigin))

/** Reads the seed and the path, which a snapshot holds as JSON in its array `origin`. */
export const originOf = (env: string, { origin }: Snapshot): SeedOrigin => {
  const decoded = readOrigin(origin instanceof Uint8Array ? utf8.decode(origin) : undefined)
  if (decoded._tag === "Some") return decoded.value
  throw invalid(env, 'the snapshot doesn\'t fit: "origin" is missing or unreadable')
}
